"""Which tokens does each head read?"""

from transformer.views.attention import attention, attention_math, corpus, head_metrics

VIEWS = (attention.VIEW, attention_math.VIEW, corpus.VIEW, head_metrics.VIEW)
