"""Which token comes next, and why?"""

from transformer.views.prediction import masked, prediction

VIEWS = (masked.VIEW, prediction.VIEW)
