"""Results do not depend on PyTorch's default dtype and device, which other libraries change."""

import ast
import json
import sys
from pathlib import Path

import pytest
import torch
from kit import prefork
from kit.models import network

from transformer.inference.decode_session import Buffers
from transformer.inference.engines.compiled import CompiledDecoder, engine_of
from transformer.inference.engines.memory import address_of, new_floats

PACKAGE = Path(prefork.ROOT) / "transformer"
FACTORIES = {"empty", "zeros", "ones", "full", "arange", "tensor", "rand", "randn", "randperm"}
# A model loaded before the default changes, and one after, must write what nothing changed wrote.
PROGRAM = """
import json, sys, torch
from transformer import Ablate, Add, Patch, load
from transformer.analysis.ablation import head_importance
from transformer.analysis.journey import journey

def found(model):
    text = "Once upon a time"
    sampled = dict(temperature=0.9, top_k=40, top_p=0.95, repetition_penalty=1.1, seed=3)
    runs = [model.generate(text, max_new_tokens=8, **more) for more in ({}, sampled)]
    runs += model.generate([text, "A cat"], max_new_tokens=4)
    rows, width = [[0.5] * 256], model.config.d_model
    changed = [Patch("decoder", 1, [0], values=rows), Add("decoder", 0, [0.1] * 256)]
    traced = model.trace(text, [*changed, Ablate("decoder", 1, [2], by="mean", positions=[0])])
    traced_too = model.trace([text, "A cat sat on it"], changed)
    parts = journey(model, runs[0]).parts
    change = head_importance(model, runs[0], len(runs[0].ids)).change
    return {
        "texts": [run.text for run in runs],
        "engines": [run.engine for run in runs],
        "types": [str(traced.logits.dtype), str(traced_too.logits.dtype)],
        "numbers": [
            float(traced.logits.sum()), float(traced_too.logits[0].sum()), parts.total,
            *(float(heads.sum()) for heads in change.values()),
            *(float(runs[0].trace[site].pattern.square().sum()) for site in runs[0].trace.sites),
        ],
    }

NAMES = ("stories", "translate-en-fr")
models = [load(model) for model in NAMES]
numbers = {"plain": [[found(model) for model in models]]}
for name in sys.argv[1:]:
    if name == "meta":
        torch.set_default_device(name)
    else:
        torch.set_default_dtype(getattr(torch, name))
    before = [found(model) for model in models]
    numbers[name] = [before, [found(load(model)) for model in NAMES]]
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
print(json.dumps(numbers))
"""


def test_a_default_dtype_or_device_changes_no_text_and_no_number():
    """In a separate process, which a step that writes past its memory would end."""
    names = ["float64", "bfloat16", "float16", "meta"]
    ended = prefork.run([sys.executable, "-c", PROGRAM, *names])
    assert ended.returncode == 0, ended.stderr
    results = json.loads(ended.stdout)
    (plain,) = results.pop("plain")
    assert [*results] == names
    for name, changed in results.items():
        for model, *both in zip(plain, *changed, strict=True):
            assert model["types"] == ["torch.float32"] * 2
            for found in both:
                numbers = pytest.approx(model["numbers"], abs=2e-3, rel=1e-5)
                assert found["numbers"] == numbers, name
                assert {**found, "numbers": 0} == {**model, "numbers": 0}, name


def allocations(path):
    """(line, names of the keyword arguments) of each tensor that a file makes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "torch" and node.func.attr in FACTORIES:
                yield node.lineno, node.func.attr, {keyword.arg for keyword in node.keywords}


def test_every_tensor_of_a_pass_names_its_device():
    rooms = ("inference", "interventions", "analysis", "runs")
    files = [path for room in rooms for path in (PACKAGE / room).rglob("*.py")]
    made = [(path.name, *each) for path in files for each in allocations(path)]
    assert len(made) > 40
    assert [each[:3] for each in made if "device" not in each[-1]] == []


def test_an_engine_makes_its_floats_in_one_place():
    files = [*(PACKAGE / "inference/engines").glob("*.py"), PACKAGE / "inference/decode_session.py"]
    floats = [
        (path.name, line)
        for path in files
        for line, name, _ in allocations(path)
        if name in FACTORIES - {"tensor", "arange"}  # ids and positions
    ]
    assert [name for name, _ in floats] == ["memory.py"]
    addresses = [path.name for path in files if ".data_ptr()" in path.read_text(encoding="utf-8")]
    # The first compares addresses, the second looks for pages: neither gives one to C as floats.
    assert sorted(addresses) == ["changes.py", "description.py", "memory.py"]


@pytest.mark.parametrize(
    "wrong",
    [
        torch.zeros(8, dtype=torch.float64),
        torch.zeros(8, dtype=torch.bfloat16),
        torch.zeros(8, device="meta"),
        torch.zeros(4, 4)[:, :2],
        torch.zeros(7),
    ],
)
def test_c_gets_no_address_of_other_memory(wrong):
    assert address_of(new_floats(8), 8)
    with pytest.raises(ValueError, match="the compiled step needs"):
        address_of(wrong, 8)


@pytest.mark.parametrize("family", ["decoder", "encoder-decoder"])
def test_buffers_that_are_too_small_never_reach_c(family):
    engine = engine_of(network(family, n_key_heads=1))
    if not isinstance(engine, CompiledDecoder):
        pytest.skip("no C compiler")
    buffers = Buffers.empty(engine.network.config, 4 * (family != "decoder")).tensors
    assert engine.reader(buffers)
    for number, buffer in enumerate(buffers):
        if buffer.numel():
            short = [*buffers]
            short[number] = buffer[:-1].contiguous()
            with pytest.raises(ValueError, match="needs memory for"):
                engine.reader(short)
