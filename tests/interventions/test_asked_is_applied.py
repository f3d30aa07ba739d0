"""What was asked of a network was applied, or is refused in a sentence."""

import copy
import dataclasses
import random
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kit.strategies import configurations, model_of_drawn

from transformer import Ablate, Add, Break, EditMask, Patch, with_lens
from transformer.analysis.ablation import head_importance, next_token
from transformer.analysis.continuation import continuation
from transformer.analysis.journey import journey, without_head
from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.logit_lens import streams_of
from transformer.analysis.patching import patch_effect
from transformer.interventions.hooks import hooks_of
from transformer.model.hooks import POINTS
from transformer.model.sites import KINDS, sites_of

TEXT = "hello to the bird"
DRAWN: Counter[str] = Counter()
QUICK = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate]
)
SIZES = dict(max_len=24, target_max_len=None, target_vocab_size=None, n_layers=2)


@QUICK
@given(drawn=configurations(**SIZES), seed=st.integers(0, 2**32 - 1))
def test_a_hook_is_called_at_its_place_or_refused(tokenizer, drawn, seed):
    draw, model = random.Random(f"{seed} {drawn}"), model_of_drawn(drawn, tokenizer)
    for _ in range(20):
        parts = [draw.choice(["encoder", "decoder", "decodr", ""]), str(draw.choice([0, 1, 2, 99])),
                 draw.choice([*KINDS, "z"])]  # fmt: skip
        place = ".".join([*parts[: draw.randint(0, 3)], draw.choice([*POINTS])])
        seen = []

        def count(point, value, seen=seen):
            seen.append(point)

        count.fused = draw.random() < 0.5
        try:
            model.trace(TEXT, hooks=[(place, count)])
        except ValueError:
            DRAWN["refused"] += 1
        else:
            assert seen, place
            DRAWN["called"] += 1
    print(dict(DRAWN))


@QUICK
@given(drawn=configurations(**SIZES), seed=st.integers(0, 2**32 - 1))
def test_an_intervention_changes_the_text_or_is_refused(tokenizer, drawn, seed):
    draw, model = random.Random(f"{seed} {drawn}"), model_of_drawn(drawn, tokenizer)
    model.network.double()
    config, intact = model.config, model.trace(TEXT)
    for _ in range(10):
        site = draw.choice(sites_of(config))
        at, place = dict(stack=site.stack, layer=site.layer), draw.randint(0, 9)
        places = draw.choice([[place], np.array([place]), torch.tensor([place])])
        numbers = [float(n % 7) + 1 for n in range(config.d_model)]
        change = draw.choice(
            [
                Add(**at, vector=numbers, positions=places),
                Ablate(**at, part="layer", positions=places),
                Patch(**at, positions=places, values=[numbers]),
            ]
        )
        read = intact.source_ids if site.stack == "encoder" and intact.source_ids else intact.ids
        if place >= len(read):
            with pytest.raises(ValueError, match=f"the text has places from 0 to {len(read) - 1}"):
                model.trace(TEXT, [change])
            DRAWN["beyond"] += 1
            continue
        run = model.trace(TEXT, [change])
        streams = zip(
            run.trace.residuals[site.stack], intact.trace.residuals[site.stack], strict=True
        )
        assert any(not torch.equal(one, other) for one, other in streams), change
        DRAWN["changed"] += 1
    print(dict(DRAWN))


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
@pytest.mark.parametrize("part", ["resid_post", "z", "mlp_out"])
def test_rows_of_values_go_to_the_positions_that_they_are_given_for(tiny_model, part, rows):
    kept = {}
    hooks = [(f"decoder.1.{part}", lambda point, value: kept.setdefault("value", value.clone()))]
    intact = tiny_model.trace(TEXT, hooks=hooks)
    own = kept["value"][0]
    values = [(own[:, row] if part == "z" else own[row]).tolist() for row in rows]
    same = tiny_model.trace(TEXT, [Patch("decoder", 1, rows, part=part, values=values)])
    torch.testing.assert_close(same.logits, intact.logits, atol=1e-5, rtol=0)


WRONG = [
    ("values of resid_post are of shape", [Patch("decoder", 0, [1], values=[[1.0]])]),
    ("values of resid_post are of shape", [Patch("decoder", 0, [1], values=[[1.0] * 15])]),
    ("values of z are of shape", [Patch("decoder", 0, [1], part="z", values=[[1.0] * 16])]),
    ("values of z are of shape", [Patch("decoder", 0, [1], part="z", values=[[[1.0] * 8]])]),
    ("has places from 0 to", [EditMask("decoder", allow=[(1, 20)])]),
    ("has places from 0 to", [EditMask("decoder", forbid=[(20, None)])]),
]


@pytest.mark.parametrize(("words", "changes"), WRONG)
def test_values_and_cells_of_another_size_are_refused(words, changes, tiny_model):
    for texts in (TEXT, [TEXT, "the fox"]):
        with pytest.raises(ValueError, match=words):
            tiny_model.trace(texts, changes)


RESULTS = [
    ("decoder.1.mlp_out", lambda point, value: 0, "return a tensor, or None .* got int"),
    (
        "decoder.1.mlp_out",
        lambda point, value: value[:, :1],
        r"torch.float32 of shape \(1, \d+, 16",
    ),
    ("z", lambda point, value: value.mean(2, keepdim=True), "a hook at decoder.0.self.z must"),
    ("resid_post", lambda point, value: value.double(), "must return torch.float32"),
    ("mask", lambda point, value: torch.ones(3, 3), "must return torch.bool"),
    ("pos_embed", lambda point, value: value[:2], "a hook at decoder.0.pos_embed must"),
    ("position_ids", lambda point, value: value.float(), "must return torch.int64"),
]


@pytest.mark.parametrize(("place", "hook", "words"), RESULTS)
def test_a_hook_that_returns_something_else_gets_a_sentence(place, hook, words, tiny_model):
    with pytest.raises(ValueError, match=words):
        tiny_model.trace(TEXT, hooks=[(place, hook)])


def test_a_change_in_place_does_not_reach_the_stream_recorded_before(tiny_model):
    def emptied(point, value):
        value.zero_()

    run = tiny_model.trace(TEXT, hooks=[("decoder.1.resid_pre", emptied)])
    intact = tiny_model.trace(TEXT)
    assert torch.equal(run.hidden_states[1], intact.hidden_states[1])
    assert not torch.equal(run.hidden_states[2], intact.hidden_states[2])
    assert run.altered_by == "own hooks"


def test_settings_without_an_effect_are_refused(tiny_model, tiny_encoder_decoder):
    hooks = [("decoder.0.mlp_out", lambda point, value: 0 * value)]
    for texts in ("the fox", ["the fox"]):
        with pytest.raises(ValueError, match="a beam search takes no hooks"):
            tiny_encoder_decoder.generate(texts, beams=2, hooks=hooks)
        with pytest.raises(ValueError, match="seeds and samples need a temperature"):
            tiny_model.generate(texts, seed=3)
    with pytest.raises(ValueError, match="seeds and samples need a temperature"):
        tiny_model.samples("the fox", 2)


def test_a_network_in_training_mode_is_refused(tiny_model):
    network = copy.deepcopy(tiny_model.network).train()
    model, run = dataclasses.replace(tiny_model, network=network), tiny_model.trace(TEXT)
    for ask in (
        lambda: model.trace(TEXT), lambda: model.generate(TEXT, max_new_tokens=2),
        lambda: journey(model, run), lambda: with_lens(model, run),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is in training mode"):
            ask()


def analyses(model, run):
    return [
        lambda: journey(model, run), lambda: without_head(model, run, "decoder.0.self", 0),
        lambda: continuation(model, run), lambda: with_lens(model, run),
        lambda: logit_contribution(model, run, 2), lambda: head_importance(model, run, 2),
        lambda: next_token(model, run, 2), lambda: patch_effect(model, run, "the fox", 2),
        lambda: layer_at_position(model, run, "decoder", 0, 1),
        lambda: streams_of(model, run, "decoder"),
    ]  # fmt: skip


def test_no_analysis_mixes_a_run_with_another_network(tiny_model):
    hooks = [("decoder.1.self.v", lambda point, value: 2 * value)]
    runs = [
        tiny_model.trace(TEXT, hooks=hooks),
        tiny_model.generate(TEXT, max_new_tokens=2, hooks=hooks),
    ]
    runs.append(tiny_model.trace([TEXT, "the fox"], hooks=hooks)[0])
    for run in runs:
        for ask in analyses(tiny_model, run):
            with pytest.raises(ValueError, match="this run was made with own hooks"):
                ask()
    seen = tiny_model.trace(TEXT, hooks=[("z", lambda point, value: None)])
    assert all(ask() is not None for ask in analyses(tiny_model, seen))  # it changed nothing
    network = copy.deepcopy(tiny_model.network)
    model = dataclasses.replace(tiny_model, network=network)
    with torch.no_grad():
        network.decoder.layers[0].feed_forward.expand.weight.mul_(1.01)
    for ask in analyses(model, tiny_model.trace(TEXT)):
        with pytest.raises(ValueError, match="the weights of tiny are not those that made this"):
            ask()


@pytest.mark.parametrize("change", [
    Ablate("decoder", 0, [1], positions=[9]),
    Add("decoder", 0, torch.linspace(-3, 3, 16), positions=[9, 30]),
    Patch("decoder", 0, [9], values=[[2.0] * 16]),
    EditMask("decoder", 1, forbid=[(31, 9), (None, 12)]),
])  # fmt: skip
def test_positions_count_from_the_first_token_after_the_window_slid(change, tiny_model):
    run = tiny_model.generate(TEXT, max_new_tokens=32, interventions=[change])
    assert run.trace_start > 0
    # The same by hand: each token is predicted from its window, where the place has moved.
    for end in (len(run.ids) - 1, run.n_prompt + 27):
        start = max(0, end - 32)
        moved = moved_by(change, start)
        ids = torch.tensor([run.ids[start:end]])
        hooks = [] if moved is None else hooks_of([moved], tiny_model.config)
        with torch.inference_mode():
            logits = tiny_model.network(ids, hooks=hooks)[0, -1]
        step = run.steps[end - run.n_prompt]
        chosen = logits.softmax(-1)[run.ids[end]].item()
        assert step.chosen.probability == pytest.approx(chosen, rel=1e-3)


def moved_by(change, start):
    """The intervention for a window that begins at `start`; None if it is before."""
    if isinstance(change, EditMask):
        cells = [tuple(None if at is None else at - start for at in cell) for cell in change.forbid]
        left = [cell for cell in cells if all(at is None or at >= 0 for at in cell)]
        return dataclasses.replace(change, forbid=left)
    left = [at - start for at in change.positions if at >= start]
    return dataclasses.replace(change, positions=left) if left else None


def test_a_text_longer_than_a_decoder_reads_is_refused_or_said(tiny_model):
    text = "the fox said hello to the bird " * 8
    with pytest.raises(
        ValueError, match=r"reads at most 32 at once; allowed: .* load\(\.\.\., max"
    ):
        tiny_model.trace(text)
    run = tiny_model.generate(text, max_new_tokens=2)
    assert any("only the last 32 are read" in warning for warning in run.warnings)
    assert not tiny_model.generate(TEXT, max_new_tokens=2).warnings
    with pytest.raises(ValueError, match="the text has places from"):
        tiny_model.generate(text, interventions=[Ablate("decoder", 0, positions=[0])])


def test_a_place_that_the_text_ended_before_is_said(tiny_encoder_decoder):
    change = Ablate("decoder", 0, positions=[8])
    stop = tiny_encoder_decoder.generate("the fox", max_new_tokens=1).text[:1]
    run = tiny_encoder_decoder.generate(
        "the fox", max_new_tokens=9, stop=stop, interventions=[change]
    )
    assert len(run.ids) <= 8
    assert any("ended before place 8" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    "heads", [np.array([1]), torch.tensor([1]), [np.int64(1)], [torch.tensor(1)]]
)
def test_heads_of_numpy_and_tensors_are_read(heads, tiny_model):
    changes = [Ablate("decoder", np.int64(0), heads), Break("no-scale")]
    run = tiny_model.trace(TEXT, changes)
    assert run.request.interventions[0] == Ablate("decoder", 0, [1])
    assert run.to_json(attention=False)
