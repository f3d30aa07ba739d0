"""What many tests share: a tokenizer, and small models whose random weights give varied output."""

import gc
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from kit.models import tiny
from kit.runs import batch_of, sampled_run, scripted_run
from playwright.sync_api import Browser, Playwright, sync_playwright

from tools import chromium
from transformer import Batch, Model, Run, Tokenizer, with_lens
from transformer.inference.deadline import Deadline, until
from transformer.views.export import html

SENTENCES = [
    "Once upon a time, a little fox lived at the edge of the forest.",
    "The fox said hello to the bird, and the bird said hello to the fox.",
    "Le renard était très fatigué ; il rêvait d'une forêt où l'été dure toujours.",
    "« Ça va ? » demanda l'oiseau. « Voilà le garçon qui mange des crêpes à Noël. »",
    "The bird sang 🎵 and the fox danced 🦊💃 until the moon 🌙 came out.",
    "One day\nthe forest\twas quiet.\n\nNobody said hello.",
]

gc.disable()  # while tests are collected: half the time that this takes

# Tensors here are tiny: a second thread only waits for the first (five times slower on two busy
# cores). Set here and not in a fixture, so that it holds before any other thread does tensor work.
torch.set_num_threads(1)

# The same examples in every run, however slow the machine is.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """--late 200: finds tests of the page that read too early."""
    parser.addoption(
        "--late", type=float, default=0, metavar="MS",
        help="how late pages draw and get responses; default 0",
    )  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long go first, so that several processes end at nearly the same time."""
    long = {
        item.path for item in items for name in ("browser", "slow") if item.get_closest_marker(name)
    }
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Exclude everything imported so far from garbage collection."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000)  # what tests leave is little compared with that


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same state of the global generator."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_deadline() -> Iterator[None]:
    """No test goes on with the deadline of the one before."""
    with until(Deadline(math.inf)):
        yield


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
def run(tiny_model: Model) -> Run:
    """Given tokens and six generated ones."""
    return sampled_run(tiny_model)


@pytest.fixture(scope="session")
def translation(tiny_encoder_decoder: Model) -> Run:
    """A run with encoder, decoder and cross attention."""
    run = tiny_encoder_decoder.generate("the fox said", max_new_tokens=7)
    return with_lens(tiny_encoder_decoder, run)


@pytest.fixture(scope="session")
def batch(tiny_model: Model) -> Batch:
    """Three sentences of different length, read by a decoder."""
    return batch_of(tiny_model, "the fox", "hello to the bird", "no")


@pytest.fixture(scope="session")
def two_way(tiny_encoder: Model) -> Batch:
    """Two sentences of different length, read by an encoder."""
    return batch_of(tiny_encoder, "the fox", "hello to the bird")


@pytest.fixture(scope="session")
def scripted(tiny_model: Model) -> Run:
    """A run whose text a page may take for scripts and markup."""
    return scripted_run(tiny_model)


@pytest.fixture(scope="session")
def scripted_page(scripted: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its self-contained page."""
    path = tmp_path_factory.mktemp("pages") / "run.html"
    html.write(scripted, path)
    return path


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Its synchronous face runs once a process."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """One Chromium for all tests."""
    path = chromium.find()
    opened = playwright.chromium.launch(executable_path=path, args=chromium.TEST_ARGUMENTS)
    yield opened
    opened.close()
