"""Equations: every number is what the network computed, as module hooks see it."""

import dataclasses
import itertools
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from kit.client import queries
from kit.models import model_of
from torch import Tensor
from transformers import RepetitionPenaltyLogitsProcessor

from transformer import Ablate, EditMask, Model, ModelConfig, Run, Site, Tokenizer
from transformer.model.functional import attention_scores
from transformer.views.model.architecture import answer_architecture
from transformer.views.model.equations import TOPICS
from transformer.views.model.source import ROOT, excerpt
from transformer.views.registry import PICTURES

ROTARY = {
    "positions": "rotary", "norm_kind": "rms", "activation": "silu", "gated": True,
    "n_heads": 2, "n_key_heads": 1, "attention_bias": False, "feed_forward_bias": False,
    "padding_id": None,
}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("decoder", {"positions": "learned", "activation": "gelu"}),
    "scaled": (  # every number that a network may be multiplied by
        "decoder",
        {
            "positions": "learned",
            "scale_embeddings": True,
            "embedding_scale": 3.0,
            "residual_scale": 0.5,
            "score_scale": 0.2,
        },
    ),
    "translator": ("encoder-decoder", {"norm": "post", "scale_embeddings": True}),
    "llama": ("decoder", ROTARY),
    "slower": (
        "decoder",
        ROTARY | {"rotary_scaling": "linear", "rotary_factor": 4.0, "rotary_multiplier": 1.25},
    ),
    "bloom": ("decoder", {"positions": "alibi"}),
    "neox": ("decoder", {"positions": "alibi", "parallel": True, "residual_scale": 0.5}),
}
NO_ROPE = ("full_attention", "sliding_attention_nope")
# Other settings that change a formula or its code.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("decoder", {"positions": "sinusoidal-halves", "norm_kind": "rms-plus-one"}),
    ("decoder", {"positions": "sinusoidal-fairseq"}),
    ("decoder", {"parallel": True, "activation": "gelu-tanh", "window": 3}),
    ("decoder", {"gated": True, "score_divisor": "d_model", "norm": "post", "norm_kind": "rms"}),
    ("encoder", {"norm": "post", "norm_embeddings": True, "n_token_types": 2, "padding_id": None}),
    ("decoder", ROTARY | {"rotary_scaling": "yarn", "rotary_factor": 2.0, "score_scale": 1.0}),
    ("encoder-decoder", ROTARY),
    ("decoder", ROTARY | {"norm": "both", "residual_scale": 0.5, "layer_types": NO_ROPE}),
    ("decoder", ROTARY | {"norm": "output", "norm_all_heads": True}),
    ("encoder-decoder", {"positions": "relative", "relative_buckets": 8, "norm_kind": "rms"}),
    ("decoder", {"positions": "relative-by-layer", "relative_buckets": 8, "score_cap": 2.0}),
]
TEXT = "The fox said hello."
SAMPLED = {"temperature": 0.8, "top_k": 30, "top_p": 0.9, "min_p": 0.01, "seed": 1}


def answer_of(model: Model, run: Run, topic: str, **choice: Any) -> dict[str, Any]:
    """The page's answer for a topic, by default for head 1 of the last site, at token 4."""
    given = {"topic": topic, "site": str(run.trace.sites[-1]), "head": 1, "query": 4} | choice
    return PICTURES["equations"].ask(queries(model), run, given=given)


def model_and_run(
    tokenizer: Tokenizer, family: str, changes: dict[str, Any], **settings: Any
) -> Any:
    """A model and one of its runs; an encoder only reads its text."""
    sizes = dict(vocab_size=tokenizer.vocab_size, padding_id=tokenizer.padding_id, d_ff=48)
    sizes |= dict(d_model=16, n_heads=2, n_layers=2, max_len=24)
    model = model_of("tiny", ModelConfig(**{"family": family, **sizes, **changes}), tokenizer, 4)
    if family == "encoder":
        return model, model.trace(TEXT)
    return model, model.generate(TEXT, max_new_tokens=5, **settings)


def angles(query: int, size: int) -> Tensor:
    """Radians of each pair at a position: p times the pair's frequency."""
    return query * 10_000.0 ** (-torch.arange(0, size, 2).double() / size)


class Recorded:
    """Inputs and outputs of each module, by its name, in one pass over a run's text."""

    @torch.no_grad()
    def __init__(self, model: Model, run: Run) -> None:
        self.run, self.config = run, run.config
        self.modules = dict(model.network.named_modules())
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        hooks = [
            module.register_forward_hook(partial(self.record, name))
            for name, module in self.modules.items()
        ]
        texts = [run.source_ids, run.ids] if run.source_ids else [run.ids]
        model.network(*(torch.tensor([ids]) for ids in texts))
        for hook in hooks:
            hook.remove()

    def record(self, name: str, _: Any, given: tuple[Any, ...], output: Any) -> None:
        if given and isinstance(output, Tensor):
            self.inputs[name], self.outputs[name] = given[0].squeeze(0), output.squeeze(0)

    def numbers(self, topic: str, site: Site, query: int) -> dict[str, Any]:
        """Every tensor of a topic, of head 1 and a token: its row, or its only number."""
        layer = f"{site.stack}.layers.{site.layer}"
        if topic == "norm":
            return self._norm(f"{layer}.{site.kind}", query)
        if topic == "feed-forward":
            part = f"{layer}.feed_forward"
            gate = {"gate": self.outputs[f"{part}.gate"][query]} if self.config.gated else {}
            return gate | {
                "read": self.inputs[part][query],
                "wide": self.outputs[f"{part}.expand"][query],
                "inner": self.inputs[f"{part}.contract"][query],
                "made": self.outputs[part][query],
            }
        if topic == "positions":
            return self._positions(site, query)
        record = self.run.trace[site]
        scores, weights = record.scores[0, 1, query], record.pattern[0, 1, query]
        may, best = record.allowed[0, query], int(weights.argmax())
        if topic == "mask":
            if (site.stack, site.kind) != ("decoder", "self"):
                return {}
            filled = scores.masked_fill(~may, -math.inf)
            lowest = torch.finfo(torch.float32).min
            return {"scores": scores, "filled": filled, "mask": may, "fill": lowest}
        size, scale = self.config.d_head, self.config.score_scale
        biased = f"{site.stack}.relative"
        bias = {"bias": self.outputs[biased][1, query]} if biased in self.outputs else {}
        values = self.outputs[f"{layer}.{site.kind}_attention.value"].unflatten(-1, (-1, size))
        return bias | {
            "q": record.q[0, 1, query], "k": record.k[0, 1, best],
            "root": 1 / scale if scale else math.sqrt(size),
            "scores": scores, "weights": weights,
            "v": values[best, 1 // self.config.heads_per_key],
            "output": self.inputs[f"{layer}.{site.kind}_attention.output"][query, size : 2 * size],
        }  # fmt: skip

    def _norm(self, place: str, query: int) -> dict[str, Any]:
        norm, name = self.modules[f"{place}_residual.norm"], f"{place}_residual.norm"
        of, normalised = self.inputs[name][query], self.outputs[name][query]
        added = self.outputs[f"{place}_attention"][query] * self.config.residual_scale
        first = self.config.norm == "pre"
        found = {"added": added, "gain": norm.weight, "stream": of if first else of - added}
        found |= (
            {
                "normalised": normalised,
                "out": self.outputs[place.rpartition(".")[0]][query]
                if self.config.parallel
                else of + added,
            }
            if first
            else {"norm_of": of, "out": normalised}
        )
        if not isinstance(norm, torch.nn.LayerNorm):
            return found | {"square": of.square().mean()}
        return found | {"mean": of.mean(), "variance": of.var(correction=0), "shift": norm.bias}

    def _positions(self, site: Site, query: int) -> dict[str, Any]:
        size, kind = self.config.d_head, self.config.positions
        if kind == "alibi":
            return {}
        if kind == "rotary":
            turn, longer = angles(query, size), self.config.rotary_multiplier
            turn = turn / self.config.rotary_factor
            before = self.outputs[f"{site.stack}.layers.{site.layer}.{site.kind}_attention.query"]
            return {
                "p": query, "theta": turn / query,
                "cos": longer * turn.cos(), "sin": longer * turn.sin(),
                "before": before[query, size : 2 * size],
                "after": self.run.trace[site].q[0, 1, query],
            }  # fmt: skip
        sides = {"encoder": "source_embedding", "decoder": "target_embedding"}
        name = sides[site.stack] if self.run.source_ids else "embedding"
        token, position = (
            self.outputs[f"{name}.{part}"][query] for part in ("tokens", "positions")
        )
        token = token * math.sqrt(self.config.d_model) if self.config.scale_embeddings else token
        token = token * self.config.embedding_scale
        angle = {"angle": angles(query, self.config.d_model)} if kind == "sinusoidal" else {}
        return {"p": query, "token": token, "position": position, "sum": token + position} | angle


def check(answer: dict[str, Any], part: str, expected: Any) -> None:
    """Compare a tensor's shown numbers, and their count, with a row or a single number."""
    (found,) = [one for one in answer["tensors"] if one["part"] == part]
    row = torch.as_tensor(expected)
    assert found["cells"]
    for cell in found["cells"]:
        value = row[int(cell["label"])] if row.ndim else row
        assert cell["value"] != -math.inf  # JSON has none
        words = {"True": True, "False": False, "−∞": -math.inf}
        shown = words[cell["value"]] if cell["value"] in words else float(cell["value"])
        assert shown == pytest.approx(value.item(), abs=2e-4, rel=1e-3), (part, cell)
    assert len(found["cells"]) + found["more"] == row.numel(), part
    letters, _, sizes = found["shape"].partition(" = ")
    assert letters.count("×") == sizes.count("×")
    assert int(sizes.split(" × ")[-1] or 1) == row.numel(), part


@pytest.mark.parametrize("name", MODELS)
def test_every_number_is_what_the_network_computed(tokenizer, name):
    model, run = model_and_run(tokenizer, *MODELS[name], **SAMPLED)
    seen = Recorded(model, run)
    for query, site, topic in itertools.product((1, 4), run.trace.sites, list(TOPICS)[:-1]):
        answer = answer_of(model, run, topic, site=str(site), query=query)
        wanted = {}
        if topic != "positions" or (run.config.positions, site.kind) != ("rotary", "cross"):
            wanted = seen.numbers(topic, site, query)
        assert {one["part"] for one in answer["tensors"]} == set(wanted), (topic, site)
        for part, numbers in wanted.items():
            check(answer, part, numbers)
        if topic == "mask" and wanted:
            may = wanted["mask"]
            assert f"may read {sum(may)} of {len(may)} keys" in answer["says"][-1]


@pytest.mark.parametrize(("family", "changes"), [*MODELS.values(), *OTHERS])
def test_formula_code_and_tensors_have_the_same_parts(tokenizer, family, changes):
    """For a sampled, a greedy and a read run; a topic without numbers says why."""
    model, sampled = model_and_run(tokenizer, family, changes, **SAMPLED)
    _, greedy = model_and_run(tokenizer, family, changes)
    penalised = [
        run
        for settings in (SAMPLED, {})
        if family != "encoder"
        for _, run in [model_and_run(tokenizer, family, changes, repetition_penalty=2, **settings)]
    ]
    runs, shown = (sampled, greedy, *penalised, model.trace(TEXT)), 0
    for run, site, topic in itertools.product(runs, sampled.trace.sites, TOPICS):
        answer = answer_of(model, run, topic, site=str(site))
        tensors = [one["part"] for one in answer["tensors"]]
        assert len(tensors) == len(set(tensors))
        in_code: set[str] = set()
        for code in answer["code"]:
            lines = Path(ROOT, code["file"]).read_text(encoding="utf-8").splitlines()
            for line in code["lines"]:
                in_code.update(*(parts for _, parts in line["pieces"]))
                text = "".join(text for text, _ in line["pieces"])
                if line["number"] is not None:
                    assert lines[line["number"] - 1].strip() == text.strip()
        in_formula = set(re.findall(r":(\w+)", " ".join(answer["formula"])))
        assert in_formula == set(tensors) == in_code, topic
        assert answer["says"] or tensors
        assert not any("altered" in said for said in answer["says"]), topic
        shown += bool(tensors)
    assert shown


def test_an_altered_run_is_reported_where_numbers_disagree(tokenizer):
    model, intact = model_and_run(tokenizer, "decoder", {})
    for alteration, topic, unaffected in (
        (Ablate("decoder", 1, heads=(1,)), "norm", "attention"),  # its weights are as they were
        (EditMask("decoder", without=("causal",)), "mask", None),
    ):
        run = model.generate(TEXT, max_new_tokens=2, interventions=[alteration])
        assert "something altered here" in " ".join(answer_of(model, run, topic)["says"])
        if unaffected:
            assert "something altered here" not in " ".join(
                answer_of(model, run, unaffected)["says"]
            )
    with pytest.raises(ValueError, match="whose configuration is another"):
        answer_of(model, dataclasses.replace(intact, config=intact.config.replace(d_ff=7)), "norm")


@pytest.mark.parametrize(("family", "window", "symbol"), [
    ("decoder", None, "causal_mask"), ("decoder", 3, "causal_mask"), ("encoder", 3, "window_mask"),
])  # fmt: skip
def test_the_code_of_a_mask_is_of_the_function_that_made_it(tokenizer, family, window, symbol):
    model, run = model_and_run(tokenizer, family, {"window": window})
    symbols = [piece["symbol"] for piece in answer_of(model, run, "mask")["code"]]
    assert symbols == [symbol, "masked_softmax"]


def test_only_tokens_that_were_put_there_are_said_to_be(tokenizer):
    model, _ = model_and_run(tokenizer, *MODELS["gpt"])
    run = model.generate(TEXT, max_new_tokens=3, forced_tokens=[5, 7], temperature=1.0, seed=1)
    said = [
        "it was put there" in " ".join(answer_of(model, run, "sampling", position=at)["says"])
        for at in range(run.n_prompt, run.n_prompt + 3)
    ]
    assert said == [True, True, False]


def test_penalised_logits_are_those_of_transformers(tokenizer):
    model, _ = model_and_run(tokenizer, *MODELS["gpt"])
    given = {"repetition_penalty": 1.5, "temperature": 0.7, "seed": 1}
    run = model.generate("The fox", max_new_tokens=16, **given)
    n_read = next(  # of a step in which a token of the text is among the likeliest
        n
        for n, step in enumerate(run.steps, run.n_prompt)
        if {one.id for one in step.candidates[:6]} & set(run.ids[:n])
    )
    ids = torch.tensor([run.ids[:n_read]])
    logits = model.network(ids)[:, -1].detach()
    processed = RepetitionPenaltyLogitsProcessor(1.5)(ids, logits)[0]
    processed[model.config.padding_id] = -math.inf  # is never generated
    answer = answer_of(model, run, "sampling", position=n_read)
    for part, expected in {
        "logits": logits[0],
        "penalised": processed,
        "scaled": processed / 0.7,
        "probabilities": (processed / 0.7).softmax(-1),
    }.items():
        check(answer, part, expected)


def test_a_name_that_is_gone_from_the_source_is_named_in_the_error():
    with pytest.raises(LookupError, match=r"functional.py: attention_scores has no `gone`"):
        excerpt(attention_scores, "q=gone", {"q"})


@pytest.mark.parametrize(("family", "changes"), [*MODELS.values(), *OTHERS])
def test_the_drawings_formulas_are_those_beside_the_code(family, changes, tokenizer):
    model, run = model_and_run(tokenizer, family, changes)
    drawn = {one["equation"]: one["formula"] for one in answer_architecture(run)["formulas"]}
    for topic in TOPICS.keys() - {"mask"} - ({"sampling"} if family == "encoder" else set()):
        places = [str(site) for site in run.trace.sites]
        found = [answer_of(model, run, topic, site=place)["formula"] for place in places]
        lines = drawn.get(topic, [])
        assert any(of[: len(lines)] == lines for of in found) if lines else not any(found)
