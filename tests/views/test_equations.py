"""Equation, code and numbers: every number is what plain PyTorch makes of the same weights."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from builders import model_of, tiny
from torch import Tensor

from transformer import Model, ModelConfig, Run, Tokenizer, views
from transformer.interventions.descriptions import Ablate, EditMask
from transformer.model.sites import Site
from transformer.views.equations import TOPICS, source
from transformer.views.equations.source import ROOT, Code

ROTARY = {
    "positions": "rotary", "norm_kind": "rms", "activation": "silu", "gated": True,
    "n_heads": 2, "n_key_heads": 1, "attention_bias": False, "feed_forward_bias": False,
    "padding_id": None,
}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("decoder", {"positions": "learned", "activation": "gelu"}),
    "translator": ("encoder-decoder", {"norm": "post", "scale_embeddings": True}),
    "llama": ("decoder", ROTARY),
}
# Whatever else changes a formula or its code.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("decoder", {"positions": "sinusoidal-halves", "norm_kind": "rms-plus-one"}),
    ("decoder", {"parallel": True, "activation": "gelu-tanh", "window": 3}),
    ("decoder", {"gated": True, "score_divisor": "d_model", "norm": "post", "norm_kind": "rms"}),
    ("encoder", {"norm": "post", "norm_embeddings": True, "padding_id": None}),
    ("encoder-decoder", ROTARY),
]
TEXT = "The fox said hello."


def asked(model: Model, run: Run, topic: str, **choice: Any) -> dict[str, Any]:
    """What the page gets of a topic: by default of the last site's head 1, at token 4."""
    lab = SimpleNamespace(ask=lambda question, *of, **more: question(model, *of, **more))
    given = {"topic": topic, "site": str(run.trace.sites[-1]), "head": 1, "query": 4} | choice
    return views.PICTURES["equation"].ask(lab, run, given=given, item=run)


def made(tokenizer: Tokenizer, family: str, changes: dict[str, Any], **settings: Any) -> Any:
    """A model and a run of it; an encoder's text is only read."""
    sizes = dict(vocab_size=tokenizer.vocab_size, padding_id=tokenizer.padding_id, d_ff=48)
    sizes |= dict(d_model=16, n_heads=2, n_layers=2, max_len=24)
    model = model_of("tiny", ModelConfig(**{"family": family, **sizes, **changes}), tokenizer, 4)
    if family == "encoder":
        return model, model.trace(TEXT)
    return model, model.generate(TEXT, max_new_tokens=5, **settings)


@pytest.fixture(scope="module", params=MODELS)
def pair(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> tuple[Model, Run]:
    """A GPT, a translator with norm after its blocks, a network like Llama; each sampled."""
    family, changes = MODELS[request.param]
    found: tuple[Model, Run] = made(
        tokenizer, family, changes, temperature=0.8, top_k=30, top_p=0.9, min_p=0.01, seed=1
    )
    return found


# --- the same by plain PyTorch --------------------------------------------------------------------


def normed(x: Tensor, norm: Any) -> Tensor:
    size = x.shape[-1:]
    if isinstance(norm, torch.nn.LayerNorm):
        return F.layer_norm(x, size, norm.weight, norm.bias, norm.eps)
    return F.rms_norm(x, size, norm.weight, norm.eps)


def rotated(x: Tensor, base: float) -> Tensor:
    """(H, T, D) as complex numbers, turned by p times each pair's angle."""
    half = x.shape[-1] // 2
    theta = base ** (-torch.arange(half).double() / half)
    angles = torch.arange(x.shape[1]).double()[:, None] * theta
    turned = torch.complex(x[..., :half], x[..., half:]).to(torch.complex128)
    turned = turned * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], dim=-1).float()


def attended(made: Any, config: Any, x: Tensor, memory: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Every number of an attention over x (T, C), and what it adds."""
    size = config.d_head
    q, k, v = (
        F.linear(of, one.weight, one.bias).unflatten(-1, (-1, size)).transpose(0, 1)
        for one, of in ((made.query, x), (made.key, memory), (made.value, memory))
    )
    before = q
    if config.positions == "rotary":
        q, k = rotated(q, config.rotary_base), rotated(k, config.rotary_base)
    k, v = (one.repeat_interleave(config.heads_per_key, dim=0) for one in (k, v))
    scores = q @ k.mT / math.sqrt(config.score_size)
    filled = scores.masked_fill(~mask, -math.inf)
    weights = filled.softmax(dim=-1)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    added = F.linear(heads.transpose(0, 1).flatten(1), made.output.weight, made.output.bias)
    return {
        "before": before, "after": q, "q": q, "k": k, "v": v, "scores": scores, "filled": filled,
        "weights": weights, "output": heads, "added": added,
    }  # fmt: skip


def fed(made: Any, config: Any, x: Tensor) -> dict[str, Tensor]:
    """Every number of a feed-forward."""
    bend = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}[config.activation]
    wide = F.linear(x, made.expand.weight, made.expand.bias)
    found = {"x": x, "wide": wide, "inner": bend(wide)}
    if config.gated:
        gate = F.linear(x, made.gate.weight, made.gate.bias)
        found |= {"gate": gate, "inner": bend(gate) * wide}
    return found | {"out": F.linear(found["inner"], made.contract.weight, made.contract.bias)}


def sub_layers(
    layer: Any, config: Any, x: Tensor, memory: Tensor | None, mask: Tensor
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """(kind, its numbers) of each sub-layer; "way" is how it goes back into the stream."""
    kinds = ["self", *(["cross"] if memory is not None else []), "feed_forward"]
    for kind in kinds:
        norm = getattr(layer, f"{kind}_residual").norm
        read = normed(x, norm) if config.norm == "pre" else x
        if kind == "feed_forward":
            numbers = fed(layer.feed_forward, config, read)
            added = numbers["out"]
        else:
            source = read if kind == "self" or memory is None else memory
            seen = mask if kind == "self" else torch.ones(len(read), len(source)).bool()
            numbers = attended(getattr(layer, f"{kind}_attention"), config, read, source, seen)
            added = numbers["added"]
        way = {"x": x, "added": added, "y": x + added}
        if config.norm == "pre":
            way |= {"normed": read, "out": x + added, "norm_of": x}
        else:
            way |= {"out": normed(x + added, norm), "norm_of": x + added}
        x = way["out"]
        way |= {"gain": norm.weight, "shift": getattr(norm, "bias", None)}
        yield kind, {**numbers, **{f"way.{name}": one for name, one in way.items()}}


def waves(length: int, size: int) -> Tensor:
    """PE by the paper's formula, one number at a time."""
    rows = [
        [
            (math.cos if at % 2 else math.sin)(p / 10_000 ** ((at - at % 2) / size))
            for at in range(size)
        ]
        for p in range(length)
    ]
    return torch.tensor(rows)


@dataclasses.dataclass
class Reference:
    """All numbers of a run, (stack, layer, kind) -> name -> tensor; inputs by stack; logits."""

    layers: dict[tuple[str, int, str], dict[str, Tensor]]
    inputs: dict[str, dict[str, Tensor]]
    logits: Tensor


def embedded(config: Any, embedding: Any, ids: tuple[int, ...]) -> dict[str, Tensor]:
    token = embedding.tokens.weight[list(ids)]
    if config.scale_embeddings:
        token = token * math.sqrt(config.d_model)
    found = {"token": token, "position": torch.zeros_like(token)}
    if config.positions == "learned":
        found["position"] = embedding.positions.table.weight[: len(ids)]
    elif config.positions == "sinusoidal":
        found["position"] = waves(len(ids), config.d_model)
    return found | {"sum": found["token"] + found["position"]}


@torch.no_grad()
def reference(model: Model, run: Run) -> Reference:
    """A run once more, by F.linear, F.layer_norm and the like from the bare weights."""
    network: Any = model.network
    config, layers, inputs = run.config, {}, {}
    memory = None
    stacks = [("decoder", getattr(network, "embedding", None), run.ids)]
    if run.source_ids:
        stacks = [
            ("encoder", network.source_embedding, run.source_ids),
            ("decoder", network.target_embedding, run.ids),
        ]
    for name, embedding, ids in stacks:
        inputs[name] = embedded(config, embedding, ids)
        x = inputs[name]["sum"]
        mask = torch.ones(len(ids), len(ids)).bool()
        mask = mask.tril() if name == "decoder" else mask
        stack = getattr(network, name)
        for at, layer in enumerate(stack.layers):
            for kind, numbers in sub_layers(layer, config, x, memory, mask):
                layers[name, at, kind] = numbers
                x = numbers["way.out"]
        x = x if stack.norm is None else normed(x, stack.norm)
        memory = x if name == "encoder" else None
    return Reference(layers, inputs, F.linear(x, network.head.weight, network.head.bias))


def check(answer: dict[str, Any], part: str, expected: Tensor) -> None:
    """A tensor's shown numbers are those of a row, and so is its count of numbers."""
    (found,) = [one for one in answer["tensors"] if one["part"] == part]
    assert found["cells"]
    for cell in found["cells"]:
        value = float(expected[int(cell["label"])])
        if value == -math.inf:
            assert cell["value"] == "−∞", (part, cell)
        else:
            assert cell["value"] == pytest.approx(value, abs=2e-4, rel=2e-4), (part, cell)
    assert len(found["cells"]) + found["more"] == len(expected), part
    if found["adds_up"] is not None:
        shown = sum(cell["value"] for cell in found["cells"])
        assert shown + (found["rest"] or 0) == pytest.approx(found["adds_up"], abs=1e-6)


def single(answer: dict[str, Any], part: str) -> float:
    """The value of a tensor that is one number."""
    (found,) = [one for one in answer["tensors"] if one["part"] == part]
    ((cell),) = found["cells"]
    return float(cell["value"])


# --- the numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [1, 4])
def test_a_heads_numbers_are_plain_pytorchs(pair, query):
    model, run = pair
    expected = reference(model, run)
    for site in run.trace.sites:
        choice = {"site": str(site), "head": 1, "query": query}
        numbers = expected.layers[site]
        row = {name: numbers[name][1] for name in ("q", "k", "v", "scores", "filled", "weights")}
        answer = asked(model, run, "attention", **choice)
        best = int(row["weights"][query].argmax())
        check(answer, "q", row["q"][query])
        check(answer, "k", row["k"][best])
        check(answer, "v", row["v"][best])
        check(answer, "output", numbers["output"][1, query])
        for part in ("scores", "weights"):
            check(answer, part, row[part][query])
        assert single(answer, "root") == pytest.approx(math.sqrt(run.config.d_head))
        assert len(answer["says"]) == 1 + (run.config.heads_per_key > 1)  # nothing altered
        answer = asked(model, run, "softmax", **choice)
        filled = row["filled"][query]
        check(answer, "scores", filled)
        check(answer, "exponentials", (filled - filled.max()).exp())
        check(answer, "weights", filled.softmax(dim=-1))
        assert single(answer, "largest") == pytest.approx(float(filled.max()), abs=1e-4)
        powers = float((filled - filled.max()).exp().sum())
        assert single(answer, "sum") == pytest.approx(powers, rel=1e-4)


@pytest.mark.parametrize("query", [1, 4])
def test_the_masks_are_those_that_hid_the_scores(pair, query):
    model, run = pair
    expected = reference(model, run)
    for site in run.trace.sites:
        answer = asked(model, run, "mask", site=str(site), query=query)
        n_keys = len(run.keys(site.stack, site.kind))
        parts = [one["part"] for one in answer["tensors"]]
        hides = (site.stack, site.kind) == ("decoder", "self")
        assert ("causal" in parts) == hides
        assert ("padding" in parts) == (run.config.padding_id is not None)
        may = [at <= query or not hides for at in range(n_keys)]
        if not parts:
            assert "There is no mask here" in answer["says"][0]
            continue
        (shown,) = [one for one in answer["tensors"] if one["part"] == "mask"]
        assert [cell["value"] for cell in shown["cells"]] == [
            str(may[int(cell["label"])]) for cell in shown["cells"]
        ]
        assert f"may read {sum(may)} of {n_keys} keys" in answer["says"][0]
        check(answer, "scores", expected.layers[site]["scores"][1, query])
        check(answer, "filled", expected.layers[site]["filled"][1, query])


def test_positions_are_those_of_the_formula(pair):
    model, run = pair
    expected = reference(model, run)
    for site in run.trace.sites:
        answer = asked(model, run, "positions", site=str(site))
        if run.config.positions == "rotary":
            numbers = expected.layers[site]
            check(answer, "before", numbers["before"][1, 4])
            check(answer, "after", numbers["after"][1, 4])
            size = run.config.d_head
            theta = 10_000.0 ** (-torch.arange(0, size, 2) / size)
            for part, value in {
                "theta": theta, "cos": (4 * theta).cos(), "sin": (4 * theta).sin(),
            }.items():  # fmt: skip
                check(answer, part, value)
            assert answer["says"][0].startswith("No vector is added to a token")
            continue
        for part in ("token", "position", "sum"):
            check(answer, part, expected.inputs[site.stack][part][4])
        if run.config.positions == "sinusoidal":
            size = run.config.d_model
            check(answer, "angle", 4 / 10_000 ** (torch.arange(0, size, 2) / size))
        assert single(answer, "p") == 4


def test_norm_residual_and_feed_forward_are_plain_pytorchs(pair):
    model, run = pair
    expected = reference(model, run)
    for site in run.trace.sites:
        answer = asked(model, run, "norm", site=str(site))
        numbers = expected.layers[site]
        parts = {one["part"] for one in answer["tensors"]}
        assert ("y" in parts) == (run.config.norm == "post")
        for part in parts & {"x", "added", "y", "normed", "out", "gain", "shift"}:
            whole = numbers[f"way.{part}"]
            check(answer, part, whole if part in ("gain", "shift") else whole[4])
        of = numbers["way.norm_of"][4]
        if run.config.norm_kind == "layer":
            assert single(answer, "mean") == pytest.approx(float(of.mean()), abs=1e-4)
            variance = float(of.var(correction=0))
            assert single(answer, "variance") == pytest.approx(variance, rel=1e-3)
        else:
            assert single(answer, "square") == pytest.approx(float((of * of).mean()), rel=1e-3)
        fed_forward = asked(model, run, "feed-forward", site=str(site))
        numbers = expected.layers[site.stack, site.layer, "feed_forward"]
        for one in fed_forward["tensors"]:
            check(fed_forward, one["part"], numbers[one["part"]][4])
        assert ("gate" in {one["part"] for one in fed_forward["tensors"]}) == run.config.gated


def test_the_filters_of_a_step_are_those_of_its_logits(pair):
    model, run = pair
    for step in run.steps:
        place = run.n_prompt + step.index
        answer = asked(model, run, "sampling", place=place)
        logits = reference(model, run).logits[place - 1]
        if run.config.output_padding_id is not None:
            logits[run.config.output_padding_id] = -math.inf
        scaled = logits / 0.8
        kept = scaled.masked_fill(scaled < scaled.sort(descending=True).values[29], -math.inf)
        shares = kept.softmax(dim=-1)
        before = torch.stack([shares[shares > one].sum() for one in shares])
        kept = kept.masked_fill(before >= 0.9, -math.inf)
        relative = kept.softmax(dim=-1) / kept.softmax(dim=-1).max()
        left = kept.masked_fill(relative < 0.01, -math.inf).softmax(dim=-1)
        for part, expected in {
            "logits": logits, "scaled": scaled, "top_p": before, "min_p": relative,
            "probabilities": left,
        }.items():  # fmt: skip
            check(answer, part, expected)
        assert single(answer, "temperature") == 0.8
        (taken,) = next(one for one in answer["tensors"] if one["part"] == "drawn")["cells"]
        assert taken["label"] == str(run.ids[place])
        assert taken["value"] == pytest.approx(float(left[run.ids[place]]), abs=2e-4)


# --- formula, code and numbers belong together ----------------------------------------------------


def parts_of(node: Any) -> set[str]:
    """Every part of a formula, or of an excerpt's pieces."""
    if isinstance(node, str):
        return set()
    own = {node[1]} - {""} if node and isinstance(node[0], str) else set()
    return own.union(*(parts_of(one) for one in node))


def in_code(answer: dict[str, Any]) -> set[str]:
    return {
        part
        for code in answer["code"]
        for line in code["lines"]
        for _, parts in line["pieces"]
        for part in parts
    }


def every_answer(model: Model, run: Run) -> Iterator[dict[str, Any]]:
    for site in run.trace.sites:
        for topic in TOPICS:
            yield asked(model, run, topic, site=str(site))


@pytest.mark.parametrize(("family", "changes"), [*MODELS.values(), *OTHERS])
def test_what_is_in_the_formula_is_in_the_code_and_the_tensors(tokenizer, family, changes):
    model, run = made(tokenizer, family, changes)
    shown = 0
    for answer in every_answer(model, run):
        tensors = [one["part"] for one in answer["tensors"]]
        assert len(tensors) == len(set(tensors))
        assert parts_of(answer["formula"]) == set(tensors) == in_code(answer), answer["topic"]
        assert answer["says"] or tensors
        assert not any("altered" in said for said in answer["says"]), answer["topic"]
        shown += bool(tensors)
    assert shown


def test_the_code_is_the_file_as_it_stands(pair):
    for answer in every_answer(*pair):
        for code in answer["code"]:
            lines = Path(ROOT, code["file"]).read_text(encoding="utf-8").splitlines()
            for line in code["lines"]:
                text = "".join(text for text, _ in line["pieces"])
                if line["number"] is not None:
                    stands, _, part = lines[line["number"] - 1].partition("  # equation: ")
                    assert stands.strip() == text.strip()
                    assert part in ("", *(one for _, parts in line["pieces"] for one in parts))


def lit(code: Code) -> list[tuple[str, list[str]]]:
    """The pieces that stand out, with their parts."""
    pieces = (piece for line in code.read()["lines"] for piece in line["pieces"])
    return [(text, parts) for text, parts in pieces if parts]


SCORES = "model.functional.attention_scores"


@pytest.mark.parametrize(
    ("symbol", "mark", "old", "new", "found"),
    [
        ("inference.sampling.keep_top_p", "top_p", "before >= p", "before > p", "before > p"),
        ("inference.sampling.keep_top_p", "top_p", "  # equation: top_p", "", None),
        (SCORES, ("q", "return «q» @"), "return q", "return q", "q"),
        (SCORES, ("q", "return «q» @"), "return q", "return 2 * q", None),
    ],
)  # fmt: skip
def test_a_line_that_was_edited_is_shown_as_it_is_now(monkeypatch, symbol, mark, old, new, found):
    read = inspect.getsource
    source._source.cache_clear()
    with monkeypatch.context() as changed:
        changed.setattr(inspect, "getsource", lambda of: read(of).replace(old, new))
        code = Code(symbol, mark)
        part = mark if isinstance(mark, str) else mark[0]
        assert lit(code) == ([] if found is None else [(found, [part])])
        text = "".join(text for line in code.read()["lines"] for text, _ in line["pieces"])
        assert new.strip() in text
        assert "# equation" not in text
        with pytest.raises(ValueError, match=r"there is no model\.functional\.nothing"):
            Code("model.functional.nothing").read()
    source._source.cache_clear()


# --- what there is not, and what was altered ------------------------------------------------------


def test_what_a_model_does_not_have_is_said(tokenizer):
    turning, written = made(tokenizer, "encoder-decoder", ROTARY, beams=2)
    answer = asked(turning, written, "positions", site="decoder.0.cross")
    assert answer["tensors"] == answer["formula"] == []
    assert "Cross-attention turns nothing either" in answer["says"][0]
    encoder, read = made(tokenizer, "encoder", {"padding_id": None})
    assert "writes no text" in asked(encoder, read, "sampling")["says"][0]
    assert "There is no mask here" in asked(encoder, read, "mask")["says"][0]
    gpt, _ = made(tokenizer, "decoder", {})
    assert "only read" in asked(gpt, gpt.trace(TEXT), "sampling")["says"][0]
    greedy = asked(gpt, gpt.generate(TEXT, max_new_tokens=2), "sampling", place=1)
    assert any("the first generated one is shown" in said for said in greedy["says"])
    assert any("greedy" in said for said in greedy["says"])


def test_a_beam_search_is_told_with_its_texts_and_their_ranks(tokenizer):
    model, run = made(tokenizer, "encoder-decoder", {}, beams=3, length_penalty=0.7)
    answer = asked(model, run, "sampling", place=run.n_prompt + 2)
    assert "found by a beam search with 3 beams" in answer["says"][0]
    assert parts_of(answer["formula"]) == in_code(answer)
    best = run.search.hypotheses[0]
    logits = reference(model, run).logits[run.n_prompt - 1 :][: len(best.ids)]
    gains = logits.log_softmax(dim=-1)[range(len(best.ids)), list(best.ids)]
    check(answer, "gain", gains)
    assert single(answer, "score") == pytest.approx(float(gains.sum()), abs=1e-3)
    assert single(answer, "length") == len(best.ids)
    assert single(answer, "penalty") == 0.7
    (ranked,) = [one for one in answer["tensors"] if one["part"] == "ranked"]
    first = ranked["cells"][0]["value"]
    assert first == pytest.approx(float(gains.sum()) / len(best.ids) ** 0.7, abs=1e-3)
    assert len(ranked["cells"]) == 3


def test_a_run_that_was_altered_is_told_so(tokenizer):
    model, intact = made(tokenizer, "decoder", {})
    site = Site("decoder", 1, "self")
    silent = model.generate(TEXT, max_new_tokens=2, interventions=[Ablate(*site[:2], heads=(1,))])
    told = {topic: " ".join(asked(model, silent, topic)["says"]) for topic in ("norm", "attention")}
    assert "something altered here" in told["norm"]
    assert "something altered here" not in told["attention"]  # its own weights are as they were
    bare = model.generate(
        TEXT, max_new_tokens=2, interventions=[EditMask("decoder", without=("causal",))]
    )
    assert "something altered here" in " ".join(asked(model, bare, "mask")["says"])
    with pytest.raises(ValueError, match="whose configuration is another"):
        asked(model, dataclasses.replace(intact, config=intact.config.replace(d_ff=7)), "norm")


def test_a_step_whose_window_slid_on_says_what_is_no_longer_known(tokenizer):
    model = tiny("tiny", "decoder", tokenizer, max_len=12)
    run = model.generate("The fox", max_new_tokens=14, temperature=1.0, top_k=4)
    assert run.trace_start
    answer = asked(model, run, "sampling", place=run.n_prompt)
    assert "no longer known" in answer["says"][-1]
    step = run.steps[0].candidates[0]
    (shown,) = [one for one in answer["tensors"] if one["part"] == "probabilities"]
    assert shown["cells"][0]["value"] == step.sampling_probability


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"topic": "sofmax"}, "topic must be one of"),
        ({"head": "mean"}, "numbers are shown of one head"),
        ({"head": 9}, "head must be a whole number"),
        ({"site": "decoder.9.self"}, r"no record of site decoder\.9\.self"),
    ],
)
def test_what_there_is_not_is_refused(tokenizer, choice, sentence):
    model, run = made(tokenizer, "decoder", {})
    with pytest.raises(ValueError, match=sentence):
        asked(model, run, **{"topic": "softmax", **choice})
