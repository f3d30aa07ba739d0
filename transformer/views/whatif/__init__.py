"""What changes if a part of the network is changed?"""

from transformer.views.whatif import ablation, breaks, contribution, effect, patching

VIEWS = (ablation.VIEW, breaks.VIEW, contribution.VIEW, effect.VIEW, patching.VIEW)
