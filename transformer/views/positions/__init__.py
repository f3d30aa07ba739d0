"""How does the network know where a token is?"""

from transformer.views.positions import positions, rotary

VIEWS = (positions.VIEW, rotary.VIEW)
