"""The files of the network in the browser: of the served weights, at addresses of their own."""

import dataclasses
from typing import Any

import httpx
import pytest
import torch
from kit import aio
from kit.models import tiny

from transformer import Model, load
from transformer.server.kept.service import Service
from transformer.server.page.in_browser import InBrowser


@pytest.fixture(scope="module")
def named_alike(tiny_model: Model) -> Model:
    """Another checkpoint than the bundled one of this name."""
    return dataclasses.replace(tiny_model, name="stories")


@pytest.fixture(scope="module")
def in_browser(named_alike: Model, tiny_encoder: Model) -> InBrowser:
    return InBrowser(Service([named_alike, tiny_encoder]))


@pytest.fixture(scope="module")
def told(in_browser: InBrowser) -> dict[str, Any]:
    return dict(in_browser.engine({"model": "stories"}))


def read(in_browser: InBrowser, address: str, method: str = "GET") -> httpx.Response:
    return aio.answer(in_browser, f"/{address}", method)


def test_the_files_hold_the_served_weights_and_are_kept_for_ever(
    in_browser, told, named_alike, tmp_path
):
    for address, size in told["files"].items():
        answer = read(in_browser, address)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert len(answer.content) == size == int(answer.headers["content-length"])
        (tmp_path / address.rpartition("/")[2]).write_bytes(answer.content)
    saved = load(tmp_path).network.state_dict()
    for name, weights in named_alike.network.state_dict().items():
        assert torch.equal(saved[name], weights), name
    assert read(in_browser, told["kernel"]).content[:4] == b"\0asm"


def test_an_address_changes_with_the_weights_and_an_old_one_is_gone(in_browser, told, tokenizer):
    other = tiny("stories", "decoder", tokenizer, seed=7, max_len=40)
    changed = InBrowser(Service([other])).engine({"model": "stories"})
    assert not set(changed["files"]) & set(told["files"])
    old = read(in_browser, next(iter(changed["files"])))
    assert (old.status_code, old.headers["cache-control"]) == (404, "no-store")
    assert read(in_browser, next(iter(told["files"])), "POST").status_code == 405


def test_a_model_of_another_name_is_the_servers(in_browser):
    with pytest.raises(ValueError, match="tiny-encoder"):
        in_browser.engine({"model": "tiny-encoder"})
    assert read(in_browser, "weights/tiny-encoder/x/config.json").status_code == 404
