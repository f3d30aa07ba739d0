"""A row of a padded batch is its text alone: every analysis, intervention and view of it."""

import base64
import copy
import dataclasses
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kit.client import queries
from kit.models import config, ids, network, tiny
from kit.strategies import configurations, model_of_drawn

from transformer import (
    Ablate,
    Add,
    Batch,
    Break,
    EditMask,
    Model,
    ModelConfig,
    Patch,
    Run,
    with_lens,
)
from transformer.analysis import ablation, journey, logit_lens, patching
from transformer.analysis.atlas import atlas
from transformer.analysis.attention_flow import flow_weights
from transformer.analysis.continuation import continuation
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.label_scores import label_scores
from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.masked_token import masked_token
from transformer.analysis.row_arithmetic import row_arithmetic
from transformer.analysis.word_effects import without_words, word_effects
from transformer.inference.loaded import Prepared
from transformer.inference.request_hooks import hooks_for, hooks_for_rows
from transformer.inference.run_builder import batch_of, run_of
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import Intervention, without_padding_mask
from transformer.interventions.hooks import hooks_of
from transformer.model.heads import HEADS, LABEL_PROBABILITIES
from transformer.model.sites import sites_of
from transformer.runs.batch import read_batch
from transformer.runs.request import Request
from transformer.views.registry import PICTURES

TEXTS = [
    "The fox",
    "hello to the bird and the fox",
    "One day",
    "a little fox said",
    "sang the moon",
]
OTHER = "the bird said hello to the fox"
N_LEAST = 3  # tokens that each of them has
DRAWN: Counter[str] = Counter()


def altered(draw: random.Random, config: ModelConfig) -> Intervention:
    """Any intervention, at places that every text has."""
    site = draw.choice(sites_of(config))
    places = [None, draw.sample(range(N_LEAST), draw.randint(1, N_LEAST))]
    heads = [None, draw.sample(range(config.n_heads), draw.randint(1, config.n_heads))]
    at = dict(stack=site.stack, layer=site.layer)

    def values(*shape: int) -> list[Any]:
        return np.random.default_rng(draw.getrandbits(32)).normal(size=shape).tolist()

    def cells() -> list[tuple[int | None, int | None]]:
        pairs = [(draw.choice([None, 0, 1, 2]), draw.choice([None, 0, 1, 2])) for _ in range(2)]
        return [pair for pair in pairs if pair != (None, None)]

    def ablation() -> Intervention:
        part, by = draw.choice(["z", "mlp_out", "layer"]), draw.choice(["zero", "mean"])
        chosen = draw.choice(heads) if part == "z" else None
        return Ablate(
            **at, heads=chosen, kind=site.kind, by=by, part=part, positions=draw.choice(places)
        )

    def patch() -> Intervention:
        part, chosen = draw.choice(["resid_post", "z", "mlp_out"]), places[1] or [0]
        width = config.d_head if part == "z" else config.d_model
        put = draw.choice([dict(text=OTHER), dict(values=values(len(chosen), width))])
        own = heads[1] if part == "z" else None
        return Patch(**at, positions=chosen, part=part, heads=own, kind=site.kind, **put)

    def edit() -> Intervention:
        layer, without = draw.choice([None, site.layer]), draw.choice([[], ["causal"]])
        return EditMask(site.stack, layer, site.kind, without, cells(), cells())

    kinds = [ablation, ablation, patch, edit]
    kinds.append(lambda: Add(**at, vector=values(config.d_model), positions=draw.choice(places)))
    kinds.append(lambda: Break(draw.choice(breaks_of(config))))
    made = draw.choice(kinds)()
    DRAWN[type(made).__name__] += 1
    return made


def rows_of(draw: random.Random, model: Model, texts: Sequence[str]) -> list[Prepared]:
    """What each text is read as; an encoder-decoder's targets are of other lengths than sources."""
    rows = [model.prepare(text) for text in texts]
    if model.config.family != "encoder-decoder":
        return rows
    most = model.config.output_vocab_size - 1
    written = [[draw.randint(3, most) for _ in range(draw.randint(2, 7))] for _ in rows]
    return [Prepared(row.source, [*row.ids, *ids]) for row, ids in zip(rows, written, strict=True)]


def both(
    model: Model, texts: Sequence[str], rows: Sequence[Prepared], changes: Sequence[Intervention]
) -> tuple[Batch, list[Run]]:
    """The texts as one batch, and each alone."""
    requests = [Request(text=text, max_new_tokens=0, interventions=changes) for text in texts]
    alone = [
        run_of(model, request, row, [], ended=False, hooks=hooks_for(model, request, row))
        for request, row in zip(requests, rows, strict=True)
    ]
    hooks, outputs = hooks_for_rows(model, requests[0], texts, rows), [run.text for run in alone]
    return batch_of(model, texts, requests[0], rows, outputs, hooks), alone


def agree(found: Any, wanted: Any, where: str) -> None:
    """Equal, numbers to a ten-thousandth of the largest."""
    if isinstance(wanted, torch.Tensor):
        agree(found.detach().numpy(), wanted.detach().numpy(), where)
    elif isinstance(wanted, np.ndarray | float):
        found, wanted = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
        assert found.shape == wanted.shape, where
        size = 1 + np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
        np.testing.assert_allclose(found, wanted, atol=1e-4 * size, rtol=0, err_msg=where)
    elif dataclasses.is_dataclass(wanted) and not isinstance(wanted, Run | torch.nn.Module):
        for field in dataclasses.fields(wanted):
            name = field.name
            agree(getattr(found, name), getattr(wanted, name), f"{where}.{name}")
    elif isinstance(wanted, Mapping) and "bdata" in wanted:  # an array of a figure
        agree(
            *(np.frombuffer(base64.b64decode(x["bdata"]), x["dtype"]) for x in (found, wanted)),
            where,
        )
    elif isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys(), where
        for key in wanted:
            agree(found[key], wanted[key], f"{where}[{key}]")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), where
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            agree(one, other, f"{where}[{number}]")
    elif not isinstance(wanted, torch.nn.Module):
        assert found == wanted, where


def same_run(found: Run, wanted: Run) -> None:
    """All fields, and all that the trace has."""
    for field in (
        "ids",
        "labels",
        "source_ids",
        "source_labels",
        "special_ids",
        "n_prompt",
        "text",
        "stopped",
        "request",
        "weights",
        "altered_by",
        "logits",
        "position_matrices",
    ):
        agree(getattr(found, field), getattr(wanted, field), field)
    for name in ("embed", "pos_embed", "residuals"):
        agree(getattr(found.trace, name), getattr(wanted.trace, name), name)
    assert found.trace.sites == wanted.trace.sites
    for site in wanted.trace.sites:
        one, other = found.trace[site], wanted.trace[site]
        assert one.allowed.equal(other.allowed), site
        for name in ("scores", "pattern", "q", "k", "v"):
            agree(getattr(one, name), getattr(other, name), f"{site} {name}")


def asked(draw: random.Random, model: Model, run: Run) -> dict[str, Callable[[Run], Any]]:
    """Every analysis of a run, with arguments that are drawn."""
    site = draw.choice(run.trace.sites)
    head, place = draw.randrange(run.config.n_heads), draw.randint(1, len(run.ids))
    row = draw.randrange(len(run.queries(site.stack)))
    layer, part = site.layer, draw.choice(["resid_post", "z", "mlp_out"])
    kinds = dict(stack=site.stack, kind=site.kind)
    by = draw.choice(["zero", "mean"])
    return {
        "logit_contribution": lambda run: logit_contribution(model, run, place),
        "head_importance": lambda run: ablation.head_importance(model, run, place, by),
        "next_token": lambda run: ablation.next_token(model, run, place),
        "log_probabilities_at": lambda run: ablation.log_probabilities_at(model, run, place),
        "intact_ids": lambda run: ablation.intact_ids(model, run),
        "broken_ids": lambda run: ablation.broken_ids(model, run),
        "broken_guess": lambda run: ablation.broken_guess(model, run, place - 1),
        "journey": lambda run: journey.journey(model, run),
        "journey at": lambda run: journey.journey(model, run, place - 1),
        "without_head": lambda run: journey.without_head(model, run, site, head),
        "continuation": lambda run: continuation(model, run, None, str(site), head),
        "telling": lambda run: journey.telling(model, run),
        "word_effects": lambda run: word_effects(model, run),
        "without_words": lambda run: without_words(model, run, [1]),
        "patch_effect": lambda run: patching.patch_effect(
            model, run, OTHER, place, part=part, by_head=part == "z", **kinds
        ),
        "most_changed": lambda run: patching.most_changed(model, run, OTHER),
        "masked_token": lambda run: masked_token(model, run, place - 1),
        "label_scores": lambda run: label_scores(model, run),
        "lens": lambda run: with_lens(model, run).lens,
        "text_cost": lambda run: logit_lens.text_cost(model, run, run.text),
        "head_metrics": lambda run: head_metrics(run, **kinds),
        "row_arithmetic": lambda run: row_arithmetic(run, site, head, row),
        "layer": lambda run: layer_at_position(model, run, site.stack, layer, row),
        "atlas": lambda run: atlas(run, **kinds),
        "flow": lambda run: flow_weights(run, which="mean", layer=layer, **kinds),
        "rollout": lambda run: flow_weights(run, which="rollout", layer=layer, **kinds),
    }  # fmt: skip


def answer(question: Callable[[Run], Any], run: Run) -> Any:
    """Its result, or the sentence with which it is refused."""
    try:
        return question(run)
    except (ValueError, AssertionError) as error:  # another family
        return str(error)


SAME = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
SIZES = dict(max_len=24, target_max_len=None, target_vocab_size=None, n_layers=2)


@SAME
@given(drawn=configurations(**SIZES), seed=st.integers(0, 2**32 - 1))
def test_a_row_of_a_batch_is_its_text_alone(tokenizer, drawn, seed):
    draw = random.Random(f"{seed} {drawn}")  # seeds come in few
    model = model_of_drawn(drawn, tokenizer)
    model.network.double()
    texts = draw.sample(TEXTS, draw.randint(2, 4))
    rows = rows_of(draw, model, texts)
    changes = [altered(draw, model.config) for _ in range(draw.choice([0, 0, 1, 1, 2]))]
    batch, alone = both(model, texts, rows, changes)
    row = draw.randrange(len(texts))
    found, wanted = batch[row], alone[row]
    same_run(found, wanted)
    for name, question in asked(draw, model, wanted).items():
        result = answer(question, wanted)
        agree(answer(question, found), result, f"{name} with {changes}")
        DRAWN["refusals" if isinstance(result, str) else "analyses"] += 1
    DRAWN[drawn.family] += 1
    print(dict(DRAWN))


@pytest.mark.parametrize(
    ("head", "probabilities"),
    [
        (name, probabilities)
        for name, head in HEADS.items()
        for probabilities in LABEL_PROBABILITIES
        if head.labelled and (head.pool is None or probabilities != "one token")
    ],
)
def test_a_row_of_a_batch_has_the_scores_that_it_has_alone(tokenizer, head, probabilities):
    labels = dict(labels=("good", "bad", "none"), label_probabilities=probabilities)
    model = tiny("scorer", "encoder", tokenizer, head=head, **labels)
    batch = model.trace(TEXTS)
    for row, text in enumerate(TEXTS):
        found, wanted = (label_scores(model, run) for run in (batch[row], model.trace(text)))
        agree(found, wanted, text)
        agree(batch[row].logits, model.trace(text).logits, text)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_no_intervention_reads_padding_on_either_side(family, left):
    changes: list[Any] = [[Break(name)] for name in breaks_of(config(family))]
    for site in sites_of(config(family)):
        for by in ("zero", "mean"):
            changes += [[Ablate(*site[:2], kind=site.kind, by=by, heads=[0])]]
            changes += [[Ablate(*site[:2], by=by, part=part)] for part in ("mlp_out", "layer")]
        # Nothing, or everything, is allowed to every query.
        every = [(None, key) for key in range(9)]
        nothing = EditMask(*site, forbid=every)
        changes += [[nothing], [EditMask(*site, allow=every)]]
        for pattern in (Break("hard-attention"), Break("uniform-attention")):
            changes += [[nothing, pattern], [pattern, nothing]]
    model = network(family).double()
    texts, two = [ids(1, 5), ids(1, 3)], family == "encoder-decoder"

    def padded(rows):
        is_text = torch.arange(5)[None] < torch.tensor([[x.shape[1]] for x in rows])
        pads = [(5 - x.shape[1], 0) if left else (0, 5 - x.shape[1]) for x in rows]
        filled = [F.pad(x, pad, value=7) for x, pad in zip(rows, pads, strict=True)]
        return torch.cat(filled), is_text.flip(-1) if left else is_text

    tokens, is_text = padded(texts)
    for change in changes:
        hooks = hooks_of(change, model.config)
        told = dict(src_is_text=is_text, tgt_is_text=is_text) if two else dict(is_text=is_text)
        whole = model(*[tokens] * (1 + two), hooks=hooks, **told)
        for row, text in enumerate(texts):
            alone = model(*[text] * (1 + two), hooks=hooks)[0]
            agree(whole[row][is_text[row]], alone, str(change))


def test_a_batch_with_padding_read_as_text_keeps_it_and_is_not_analysed(tiny_encoder):
    changes = without_padding_mask(tiny_encoder.config)
    batch = tiny_encoder.trace(TEXTS, changes)
    row = batch[0]
    assert len(row.ids) == len(batch[1].ids)
    pattern = row.trace["encoder.0.self"].pattern
    agree(pattern.sum(-1), torch.ones(pattern.shape[:-1]), "rows")
    with pytest.raises(ValueError, match="this run was made with padding read as text"):
        journey.journey(tiny_encoder, row)


@pytest.mark.parametrize("model", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_a_view_of_a_row_is_that_of_its_text(model, request, tmp_path):
    model = request.getfixturevalue(model)
    exact = copy.deepcopy(model.network).double()  # texts of figures have rounded numbers
    model = dataclasses.replace(model, network=exact, engine=None)
    draw, texts = random.Random(0), TEXTS[:3]
    batch, alone = both(model, texts, rows_of(draw, model, texts), [])
    matrices = {stack: matrix.float() for stack, matrix in batch.position_matrices.items()}
    batch, first = (
        dataclasses.replace(item, position_matrices=matrices) for item in (batch, alone[0])
    )
    batch.to_npz(tmp_path / "batch.npz")
    site = first.trace.sites[-1]
    given = dict(site=str(site), stack=site.stack, kind=site.kind, position=1, other=OTHER)
    n_views = 0
    for picture in PICTURES.values():
        if picture.subject not in ("run", "run or batch"):
            continue
        wanted = {p.name: given[p.name] for p in picture.parameters if p.name in given}
        of = [queries(model)] if picture.network else []

        def shown(run, picture=picture, of=of, wanted=wanted):
            found = picture.ask(*of, run, given=wanted)
            return json.loads(json.dumps(found, cls=plotly.utils.PlotlyJSONEncoder))

        expected = answer(shown, first)
        for read in (batch, read_batch(tmp_path / "batch.npz")):
            agree(answer(shown, read[0]), expected, picture.name)
        n_views += not isinstance(expected, str)
    print(n_views, "views of", model.name)
    assert n_views > 10
