"""The tables of norms, activations and positions: one line in each adds one, everywhere."""

import math
import re

import pytest
import torch
from kit.interventions import FAMILIES, given, read
from kit.models import T_MAX, C, config, network
from torch import nn

from transformer import Trace
from transformer.model.positions import POSITIONS, Encoding
from transformer.model.primitives import ACTIVATIONS, NORMS, Activation, Norm
from transformer.model.summary import blocks
from transformer.views.model.architecture import architecture
from transformer.views.model.block_text import text_of


class Ramp(nn.Module):
    """Positions for the tests: place p adds p / max_len to every feature, and a trained factor."""

    def __init__(self, max_len, d_model):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))
        ramp = torch.arange(max_len)[:, None] / max_len
        self.register_buffer("matrix", ramp.expand(max_len, d_model), persistent=False)

    def forward(self, positions):
        return self.factor * self.matrix[positions]


def says(settings, kind):
    """The words of the first block of a kind."""
    made = config(**settings)
    return text_of(made, next(block for block in blocks(made) if block.kind == kind))


ODD = Norm(
    title="Odd norm", does="Divides {size} features", make=lambda size, eps: nn.RMSNorm(size, eps)
)
SINUS = Activation(title="Sinus", does="waves", function=torch.sin)
RAMP = Encoding(title="Ramp", does="Up to {max_len}.", short="one", make=Ramp)


ADDED = [  # to which table, for which field and kind of block, and what is said of it
    (NORMS, "norm_kind", "norm", ODD, "Odd norm of .* Divides 12 features"),
    (ACTIVATIONS, "activation", "feed_forward", SINUS, r"Sinus acts on each of them \(waves\)"),
    (POSITIONS, "positions", "positions", RAMP, rf"^Up to {T_MAX}\.$"),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("table", "field", "block", "entry", "said"), ADDED)
def test_one_line_in_a_table_is_computed_counted_and_drawn(
    table, field, block, entry, said, family, monkeypatch
):
    monkeypatch.setitem(table, "odd", entry)
    for placement in ("pre", "post"):
        made = config(family, **{field: "odd"}, norm=placement, norm_embeddings=True)
        model = network(**{"family": family, **made.to_dict()})
        total = sum(block.n_parameters for block in blocks(made))
        assert total == model.n_parameters
        assert architecture(made).layout.meta["n_parameters"] == total
        text = given(model)
        torch.testing.assert_close(read(model, text, trace=Trace()), read(model, text))
    assert re.search(said, says({field: "odd"}, block).does)
    forward, x = model.last_stack.layers[0].feed_forward, torch.randn(2, 5, C)
    if table is ACTIVATIONS:
        torch.testing.assert_close(forward(x), forward.contract(torch.sin(forward.expand(x))))
    norms = {type(m) for m in model.modules() if isinstance(m, nn.LayerNorm | nn.RMSNorm)}
    assert norms == {nn.RMSNorm if table is NORMS else nn.LayerNorm}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_an_activation_acts_on_each_number_alone_and_leaves_large_ones(kind):
    function, x = ACTIVATIONS[kind].function, torch.linspace(-30, 30, 61)
    torch.testing.assert_close(function(x), torch.stack([function(one) for one in x]))
    assert function(x)[-1] == 30
    assert math.isclose(float(function(x)[0]), 0, abs_tol=1e-6)


@pytest.mark.parametrize("kind", POSITIONS)
def test_the_words_of_an_encoding_contain_its_sizes(kind):
    part = "self" if POSITIONS[kind].is_rotary else "positions"
    assert "{" not in says(dict(positions=kind), part).does
