"""Rotary positions against their definition, and their pictures against the network's numbers."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.models import tiny

from transformer import Break
from transformer.analysis.rotary import angles_of, rotates
from transformer.analysis.rotary import rotated_pair as a_pair_of
from transformer.model.rotary import RotarySettings, frequencies_of
from transformer.views.attention.heatmap import attention_heatmap
from transformer.views.positions.rotary import (
    VIEW,
    rotary_angles,
    rotary_distance,
    rotary_pair,
)

EDGE = 64 / (2 * math.pi)  # with it the first pair's wavelength is exactly the longest


@settings(max_examples=40)
@given(
    scaling=st.sampled_from(["none", "dynamic", "linear", "llama3", "yarn", "longrope"]),
    length=st.integers(8, 2_000),
    bounds=st.floats(0.1, 20).flatmap(lambda low: st.tuples(st.just(low), st.floats(low + 1, 60))),
    base=st.sampled_from([100.0, 10_000.0]),
    factor=st.sampled_from([2.0, 8.0]),
)
@example(scaling="llama3", length=64, bounds=(EDGE, 4 * EDGE), base=100.0, factor=4.0)
@example(scaling="llama3", length=64, bounds=(EDGE / 4, EDGE), base=100.0, factor=4.0)
@example(scaling="yarn", length=2_000, bounds=(0.1, 60.0), base=20.0, factor=8.0)  # clipped
def test_scaled_frequencies_are_those_of_transformers(scaling, length, bounds, base, factor):
    import transformers
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    low, high = bounds
    rope = {"rope_type": "default" if scaling == "none" else scaling, "rope_theta": base}
    rope |= {"factor": factor} if scaling != "none" else {}
    if scaling == "llama3":
        rope |= {"low_freq_factor": low, "high_freq_factor": high}
    elif scaling == "yarn":
        rope |= {"beta_slow": low, "beta_fast": high}
    elif scaling == "longrope":
        factors = tuple(1.0 + high / 7 * pair for pair in range(16))
        rope |= {"short_factor": [*factors], "long_factor": [9.0] * 16}
    if scaling in ("llama3", "yarn", "longrope"):
        rope["original_max_position_embeddings"] = length
    theirs = transformers.LlamaConfig(head_dim=32, rope_parameters=rope)
    wanted = LlamaRotaryEmbedding(theirs).inv_freq
    values = dict(scaling=scaling, size=32, base=base, factor=factor, low=low, high=high)
    values |= {"pair_factors": factors} if scaling == "longrope" else {}
    found = frequencies_of(RotarySettings(**values, multiplier=1.0, trained_len=length))
    torch.testing.assert_close(found, wanted, rtol=3e-7 if scaling == "yarn" else 0, atol=0)


@pytest.fixture(scope="module")
def run(tokenizer):
    changes = dict(positions="rotary", n_heads=4, n_key_heads=2, rotary_size=2, d_model=16)
    model = tiny("turning", "decoder", tokenizer, **changes)
    return model.generate("the fox said hello", max_new_tokens=4)


def test_the_pictures_show_the_networks_own_angles_and_vectors(run):
    angles = angles_of(run, "decoder.1.self")
    np.testing.assert_allclose(angles[:, 0], np.arange(24) % (2 * np.pi), atol=1e-5)
    drawn = rotary_angles(run)
    np.testing.assert_allclose(drawn.data[0].z, np.degrees(angles[: len(run.ids)]), atol=1e-2)
    found = a_pair_of(run, "decoder.1.self", 3, 5, 2)
    record = run.trace["decoder.1.self"]
    np.testing.assert_allclose(found.q, record.q[0, 3, 5], atol=1e-6)
    np.testing.assert_allclose(found.k, record.k[0, 3, 2], atol=1e-6)
    assert found.score_at(5, 2) == pytest.approx(float(record.scores[0, 3, 5, 2]), abs=1e-5)
    arrows = rotary_pair(run, "decoder.1.self", 3, 5, 2).data
    assert [arrow.x[1] for arrow in arrows] == [
        found.q_before[0], found.q[0], found.k_before[0], found.k[0],
    ]  # fmt: skip
    lengths = [float(np.hypot(arrow.x[1], arrow.y[1])) for arrow in arrows]
    assert lengths[:2] == pytest.approx([lengths[0]] * 2)


def test_each_layer_is_shown_with_its_own_rotation(tokenizer):
    """Rotated back, the first layer's vectors are those of a network that rotates nothing."""
    for kind, base in (("full_attention", 10_000.0), ("sliding_attention", 50.0)):
        changes = dict(layer_types=(kind,), window=9, sliding_rotary_base=50.0, score_scale=0.3)
        changes["rotary_multiplier"] = 1.25  # of layers that read the whole text
        model = tiny("two", "decoder", tokenizer, positions="rotary", norm="pre", **changes)
        run, still = (
            model.trace("the fox said hello", interventions=breaks)
            for breaks in ([], [Break("no-rotation")])
        )
        assert model.config.rotary_of(0).base == base
        found = a_pair_of(run, "decoder.0.self", 1, 5, 2)
        record = still.trace["decoder.0.self"]
        np.testing.assert_allclose(found.q_before, record.q[0, 1, 5], atol=1e-5)
        np.testing.assert_allclose(found.k_before, record.k[0, 1, 2], atol=1e-5)
        assert found.score_at(5, 2) == pytest.approx(found.score, abs=1e-5)
        assert rotates(run, "decoder.0.self")
        assert not rotates(still, "decoder.0.self")
    nope = tiny("nope", "decoder", tokenizer, positions="rotary", layer_types=(
        "full_attention_nope", "full_attention",
    ))  # fmt: skip
    (together, *_) = VIEW.pictures
    asked = [
        together.ask(nope.trace("the fox"), given={"site": f"decoder.{n}.self"}) for n in (0, 1)
    ]
    assert [answer["is_rotary"] for answer in asked] == [False, True]


def test_a_rotary_score_depends_on_distance_alone(run):
    drawn = rotary_distance(run, "decoder.0.self", 1, 6, 4)
    assert drawn.layout.meta["moved"] < 1e-4
    line, here = drawn.data
    assert list(here.x) == [2]
    assert line.y[2] == pytest.approx(here.y[0], abs=1e-4)
    assert max(line.y) - min(line.y) > 1e-3


@pytest.mark.parametrize("broken", [None, "no-scale", "model-scale"])
@pytest.mark.parametrize("cap", [None, 0.5])
def test_the_score_by_distance_is_the_one_that_the_run_had(tokenizer, cap, broken):
    model = tiny("capped", "decoder", tokenizer, positions="rotary", score_cap=cap)
    breaks = [Break(broken)] if broken and cap is None else []
    run = model.trace("the fox said hello", interventions=breaks)
    drawn = rotary_distance(run, "decoder.1.self", 1, 5, 3)
    assert ("√d" in drawn.layout.yaxis.title.text) == (cap is None)
    titled = attention_heatmap(run, "decoder.1.self", 1, stage="scores").layout.title.subtitle.text
    assert ("√d" in titled) == (cap is None)
    line, here = drawn.data
    assert here.y[0] == pytest.approx(float(run.trace["decoder.1.self"].scores[0, 1, 5, 3]))
    assert line.y[2] == pytest.approx(here.y[0], abs=1e-4)
    assert drawn.layout.meta["moved"] < 1e-4


def test_networks_without_rotary_positions_have_no_rotary_picture(run, tiny_model):
    (together, *_) = VIEW.pictures
    answer = together.ask(run, given={"site": "decoder.0.self", "head": 1, "pair": 7})
    assert (answer["is_rotary"], answer["n_pairs"], answer["pair"].layout.meta["pair"]) == (
        True,
        1,
        0,
    )
    first = a_pair_of(run, "decoder.0.self", 0, 0)  # with itself
    assert (first.query, first.key) == (0, 0)
    last = a_pair_of(run, "decoder.0.self", 0)  # with the token before it
    assert (last.query, last.key) == (len(run.ids) - 1, len(run.ids) - 2)
    for name, place in itertools.product(("query", "key"), (-1, len(run.ids))):
        with pytest.raises(ValueError, match=f"{name} must be .* got {place}"):
            a_pair_of(run, "decoder.0.self", 0, **{"query": 0, name: place})
    assert together.ask(tiny_model.trace("the fox"), given={}) == {"is_rotary": False}
