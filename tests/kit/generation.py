"""What the tests of generation share: a small network, prompts, and rows of steps."""

from kit.models import spread

from transformer import ModelConfig, Sampling, build_transformer
from transformer.inference.generation import generate

V, T_MAX, END = 37, 12, 2
SAMPLED = Sampling(temperature=1.3, top_k=9, top_p=0.95)
PROMPTS = [[2, 5, 9, 11], [2, 7], [2, 3, 4, 8, 30, 31, 17]]


def network(family="decoder", **changes):
    sizes = dict(vocab_size=V, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=T_MAX)
    config = ModelConfig(
        family=family, **{"padding_id": 0, "positions": "learned", **sizes, **changes}
    )
    return spread(build_transformer(config), seed=5).eval()


def continued(model, prompts, **settings):
    """For each row, the steps that it took."""
    settings = {"max_new_tokens": 8, "end_id": END, **settings}
    rows = [[] for _ in prompts]
    for steps in generate(model, prompts, **settings):
        assert len(steps) == len(prompts)
        for row, step in zip(rows, steps, strict=True):
            if step is not None:
                row.append(step)
    return rows


def tokens(rows):
    return [[step.token for step in row] for row in rows]
