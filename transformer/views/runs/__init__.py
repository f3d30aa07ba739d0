"""How do two runs differ?"""

from transformer.views.runs import branches, compare

VIEWS = (branches.VIEW, compare.VIEW)
