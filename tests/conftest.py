"""What many tests share: a tokenizer, and small models whose random weights give varied output."""

from __future__ import annotations

from collections.abc import Iterator

import chromium
import pytest
import torch
from builders import tiny
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from transformer import Model, Tokenizer

SENTENCES = [
    "Once upon a time, a little fox lived at the edge of the forest.",
    "The fox said hello to the bird, and the bird said hello to the fox.",
    "Le renard était très fatigué ; il rêvait d'une forêt où l'été dure toujours.",
    "« Ça va ? » demanda l'oiseau. « Voilà le garçon qui mange des crêpes à Noël. »",
    "The bird sang 🎵 and the fox danced 🦊💃 until the moon 🌙 came out.",
    "One day\nthe forest\twas quiet.\n\nNobody said hello.",
]

# Tensors here are tiny: a second thread only waits for the first (five times slower on two busy
# cores). Set here and not in a fixture, so that it holds before any other thread does tensor work.
torch.set_num_threads(1)

# The same examples in every run, however slow the machine is.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same state of the global generator."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Byte-level BPE of 320 tokens with English, French and emoji merges."""
    return Tokenizer.train(SENTENCES * 3, 320)


@pytest.fixture(scope="session")
def tiny_model(tokenizer: Tokenizer) -> Model:
    """A GPT of 2 layers x 2 heads x 16 features that reads 32 tokens."""
    return tiny(
        "tiny", "decoder", tokenizer,
        d_ff=64, max_len=32, positions="learned", activation="gelu", head_bias=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def tiny_encoder_decoder(tokenizer: Tokenizer) -> Model:
    """An encoder-decoder of 2 + 2 layers x 2 heads x 16 features that reads 24 tokens."""
    return tiny("tiny-translator", "encoder-decoder", tokenizer)


@pytest.fixture(scope="session")
def tiny_encoder(tokenizer: Tokenizer) -> Model:
    """A BERT of 2 layers x 2 heads x 16 features that reads 28 tokens."""
    return tiny(
        "tiny-encoder", "encoder", tokenizer,
        d_ff=40, max_len=28, norm="post", positions="learned", activation="gelu",
    )  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests: Playwright's synchronous face runs once a process."""
    path = chromium.find()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=chromium.ARGUMENTS)
        yield opened
        opened.close()
