"""The compiled step on every kind of CPU that this CPU can emulate, with every kernel."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch
from kit.models import spread

from transformer import build_transformer
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines import c_compiler, library_cache
from transformer.inference.engines.compiled import engine_of

pytestmark = pytest.mark.slow

# Less optimization than usual: results are compared, not speed.
FLAGS = tuple("-O1" if flag == "-O3" else flag for flag in c_compiler.FLAGS)
LEVELS = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
WIDTHS = {"sse2": {16}, "avx2": {32}, "avx512vl": {32, 64}}
SIZES = [1, 7, 16, 31, 64, 129, 200]  # of rows: less than a vector, whole ones, and cut


def levels():
    """Kinds of CPU, each with what this one must have; the last is what it is."""
    try:
        known = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        known = []
    return [level for level, needed in LEVELS.items() if needed in known] + ["native"]


LEVELS_OF = {"gcc": levels(), "clang": ["x86-64", "native"]}
WAYS = [(name, level) for name in LEVELS_OF if shutil.which(name) for level in LEVELS_OF[name]]


@pytest.fixture(scope="module", params=WAYS, ids=str)
def library(request, tmp_path_factory):
    """The step, compiled by a compiler for a kind of CPU, without threads if it must be."""
    compiler, level = request.param
    for threads in ("-fopenmp", "-fopenmp-simd"):
        command = [compiler, *FLAGS, f"-march={level}", threads, str(c_compiler.SOURCE)]
        noted = library_cache.kept(
            tmp_path_factory.mktemp("step"), "step", c_compiler.SYMBOL, command,
            note=lambda library: "0", fits=lambda library, note: True,
        )  # fmt: skip
        if noted is not None:
            break
    found = {kernel.width for kernel in c_compiler.kernels_of(noted.library)}
    assert found == WIDTHS.get(LEVELS.get(level), found)
    return noted.library


@pytest.mark.parametrize("n_tokens", [1, 2, 4, 7, 32, 33, 50])  # many: panel by panel
def test_every_kernel_and_weight_type_agrees_with_float64(library, n_tokens):
    generator = torch.Generator().manual_seed(0)
    for kind in c_compiler.TYPES:
        for size in [*SIZES, 770]:  # more than a panel is deep
            weights = torch.randn(75, size, generator=generator).to(kind)
            weights[0, 0] = 6e-8 if kind == torch.float16 else 1e-30  # subnormal in float16
            x = torch.randn(n_tokens, size, generator=generator)
            exact = x.double() @ weights.double().T
            for kernel in range(len(c_compiler.kernels_of(library))):
                out = torch.full((n_tokens, 75), float("nan"))
                c_compiler.multiplied(library, kernel, weights, x, out)
                torch.testing.assert_close(out.double(), exact, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("size", [2, 30, 32, 46, 96, 2000])  # more pairs than a panel is deep
def test_rounded_products_are_those_of_bfloat16_numbers(library, size):
    generator = torch.Generator().manual_seed(0)
    for n_tokens in (1, 5, 50):
        weights = torch.randn(75, size, generator=generator).bfloat16()
        x = torch.randn(n_tokens, size, generator=generator)
        out = torch.full((n_tokens, 75), float("nan"))
        if c_compiler.multiplied_rounded(library, weights, x, out):
            exact = x.bfloat16().double() @ weights.double().T
            torch.testing.assert_close(out.double(), exact, atol=2e-4, rtol=1e-5)
        else:
            assert out.isnan().all()


def test_a_cpu_that_multiplies_bfloat16_is_used_so(library, request):
    can = "native" in request.node.name and "avx512_bf16" in c_compiler._cpu()
    x, out = torch.ones(40, 8), torch.empty(40, 4)
    weights = torch.ones(4, 8, dtype=torch.bfloat16)
    assert c_compiler.multiplied_rounded(library, weights, x, out) == can


@pytest.mark.parametrize("preset", ["gpt", "vaswani-2017"])
def test_every_variant_of_the_step_reads_as_the_network_does(library, preset, monkeypatch):
    changes = dict(vocab_size=43, d_model=72, n_heads=3, n_layers=2, d_ff=150, max_len=64)
    network = spread(build_transformer(preset, **changes)).eval()
    ids = torch.tensor([[5, 7, 2, *(3 + n * n % 37 for n in range(58))]])
    source = torch.tensor([[3, 9, 4, 4, 2]])
    with torch.inference_mode():
        given = [] if preset == "gpt" else [source]
        wanted = network(*given, ids)[0, 2:]
    read = ids[0].tolist()
    for kernel in range(len(c_compiler.kernels_of(library))):
        step = c_compiler.step_of(library, (kernel,) * len(c_compiler.TYPES))
        monkeypatch.setattr(c_compiler, "compiled_step", cache(lambda step=step: step))
        session = DecodeSession(engine_of(network, "compiled"))
        found = [session.begin(read[:3], *(one[0].tolist() for one in given))[0]]
        found += [session.read(token) for token in read[3:]]
        torch.testing.assert_close(torch.stack(found), wanted, atol=1e-4, rtol=1e-4)
        for n in (20, 61):  # few and many are read side by side
            session.begin(read[:2], *(one[0].tolist() for one in given))
            at_once = session.read(*read[2:n])
            torch.testing.assert_close(at_once, wanted[n - 3], atol=1e-4, rtol=1e-4)


def computed(*command, run_by=()):
    """The numbers that the step prints on the CPU that this command compiles it for."""
    program = Path(command[-1])
    source = Path(__file__).with_name("step_on_another_cpu.c")
    flags = [*FLAGS, f"-I{c_compiler.SOURCE.parent}", str(source)]
    flags = [flag for flag in flags if flag not in ("-fPIC", "-shared")]
    subprocess.run([command[0], *flags, *command[1:-1], "-o", program, "-lm"], check=True)
    printed = subprocess.run([*run_by, program], check=True, capture_output=True, text=True).stdout
    return torch.tensor([float(line) for line in printed.split()])


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")),
    reason="needs Debian's gcc-aarch64-linux-gnu and qemu-user",
)
def test_an_arm_cpu_computes_the_same_numbers(tmp_path):
    here = computed("gcc", "-march=native", "-fopenmp", str(tmp_path / "here"))
    arm = "aarch64-linux-gnu-gcc"
    for flags in (["-fopenmp"], ["-mcpu=neoverse-v1", "-fopenmp-simd"]):
        there = computed(
            arm, *flags, "-static", str(tmp_path / "there"), run_by=["qemu-aarch64", "-cpu", "max"]
        )
        torch.testing.assert_close(there, here, atol=1e-5, rtol=1e-5)
