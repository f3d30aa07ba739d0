"""What may a token read?"""

from transformer.views.masks import edit_mask, masks

VIEWS = (edit_mask.VIEW, masks.VIEW)
