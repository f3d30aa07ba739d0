"""Long prompts of a network stored in bfloat16: rounded if the CPU gains by it, else exact."""

from functools import cache

import pytest
import torch
from kit.hf_folders import write

import transformer
from benchmarks.peers import theirs
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines import c_compiler
from transformer.inference.engines.compiled import CompiledDecoder

pytestmark = pytest.mark.filterwarnings("ignore")
FEW, MANY = 32, 70  # tokens: the most that are never rounded; the many are no multiple of a tile


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Llama in bfloat16."""
    place = tmp_path_factory.mktemp("rounded") / "llama"
    write(place, "llama", dtype=torch.bfloat16)
    return place


@pytest.fixture(scope="module")
def peers(folder):
    """ids, and transformers' logits after each, in float32 and in bfloat16."""
    ids = [5 + n * n % 60 for n in range(MANY)]
    with torch.inference_mode():
        wide, narrow = (
            theirs(folder, "eager", dtype)(torch.tensor([ids])).logits[0].float()
            for dtype in (torch.float32, torch.bfloat16)
        )
    return ids, wide, narrow


@pytest.fixture
def logits_of(folder, monkeypatch):
    """A function: the logits after each of ids; rounds: whether this CPU is said to gain by it."""

    def logits(ids, *, rounds, dtype="auto"):
        step = c_compiler.compiled_step()._replace(rounds=rounds)
        monkeypatch.setattr(c_compiler, "compiled_step", cache(lambda: step))
        network = transformer.load(folder, dtype=dtype).network
        return DecodeSession(CompiledDecoder(network)).begin(ids, n_logits=len(ids))

    return logits


def test_a_long_prompt_is_nearer_to_float32_than_bfloat16_of_transformers(peers, logits_of):
    ids, wide, narrow = peers
    difference = logits_of(ids, rounds=True) - wide
    assert difference.pow(2).mean() < (narrow - wide).pow(2).mean() / 2
    is_rounded = float(difference.abs().max()) > 1e-3
    assert is_rounded == ("avx512_bf16" in c_compiler._cpu())


@pytest.mark.parametrize(("rounds", "dtype", "n"), [
    (False, "auto", MANY), (True, "float32", MANY), (True, "float16", MANY), (True, "auto", FEW),
])  # fmt: skip
def test_other_products_of_bfloat16_weights_are_exact(peers, logits_of, rounds, dtype, n):
    ids, wide, _ = peers
    logits = logits_of(ids[:n], rounds=rounds, dtype=dtype)
    torch.testing.assert_close(logits, wide[:n], atol=1e-4, rtol=1e-4)
