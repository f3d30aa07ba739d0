"""What is this network made of?"""

from transformer.views.model import architecture, equations

VIEWS = (architecture.VIEW, equations.VIEW)
