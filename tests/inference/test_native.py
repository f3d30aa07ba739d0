"""The compiled step's library: built once, rebuilt when it is damaged, and done without."""

import contextlib
import os
import resource
import sys
import time

import pytest
import torch
from kit import prefork

from transformer.inference.engines import c_compiler as native
from transformer.inference.engines import library_cache

# Less optimization: what is cached does not depend on speed.
QUICK = tuple("-O0" if flag == "-O3" else flag for flag in native.FLAGS)
COMMAND = [
    sys.executable, "-c",
    "from transformer.inference.engines import c_compiler; "
    f"c_compiler.FLAGS, c_compiler.quickest = {QUICK!r}, lambda library: (1, 0, 2); "
    "found = c_compiler.compiled_step(); print(found is not None and found.kernels == (1, 0, 2))",
]  # fmt: skip


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nested"))
    monkeypatch.setattr(native, "FLAGS", QUICK)
    monkeypatch.setattr(native, "quickest", lambda library: (1, 0, 2))
    native._temporary.cache_clear()
    return tmp_path / "nested" / "transformer-attention-visualizer"


def built():
    """A new look for the function, as another process would."""
    return native.compiled_step.__wrapped__()


def elsewhere():
    """Build in a separate process; its answer."""
    return prefork.run(COMMAND).stdout.strip()


def test_the_library_and_its_quickest_kernels_are_found_once_and_kept(cache, monkeypatch):
    assert built().kernels == (1, 0, 2)
    (library,) = cache.iterdir()
    before = library.stat().st_mtime_ns
    monkeypatch.setattr(native, "quickest", lambda library: (0, 0, 0))
    assert built().kernels == (1, 0, 2)
    assert [path.stat().st_mtime_ns for path in cache.iterdir()] == [before]
    assert cache.stat().st_mode & 0o077 == 0


def test_the_quickest_kernel_is_taken_for_each_type(monkeypatch):
    seconds = {}

    def multiplied(library, kernel, weights, x, out):
        wait = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}[weights.dtype]
        seconds["now"] = seconds.get("now", 0.0) + (1.0 if kernel == wait else 2.0)

    library = type("Library", (), {"kernel_facts": lambda self, *_: 3})()
    monkeypatch.setattr(native, "multiplied", multiplied)
    monkeypatch.setattr(native.time, "thread_time", lambda: seconds.get("now", 0.0))
    assert native.quickest(library) == (0, 1, 2)


def test_a_kernel_says_what_it_reads_at_once():
    assert str(native.Kernel(32, 4, 512)) == (
        "vectors of 32 bytes, 4 rows at once, 512 bytes prefetched"
    )
    assert str(native.Kernel(16, 1, 0)) == "vectors of 16 bytes, row by row"


def flipped(path):
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) // 3 + 64):
        data[place] ^= 0xFF
    path.write_bytes(data)


def piped(path):
    path.unlink()
    os.mkfifo(path)


def linked(path):
    elsewhere = path.parent.parent / "elsewhere.so"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@pytest.mark.slow
def test_a_library_that_is_not_as_it_was_written_is_never_loaded(cache):
    """In separate processes, since damage to a loaded library ends its process."""
    assert elsewhere() == "True"
    (library,) = cache.iterdir()
    whole = library.read_bytes()
    for damage in (flipped, piped, linked):
        damage(library)
        assert elsewhere() == "True"
        (library,) = cache.iterdir()  # its name says what was measured, which may be another kernel
        assert not library.is_symlink()
        assert library.read_bytes() == whole


@pytest.mark.parametrize(("mode", "own"), [(0o770, True), (0o707, True), (0o700, False)])
def test_a_folder_that_others_may_write_to_is_not_used(cache, mode, own, monkeypatch):
    cache.mkdir(parents=True)
    cache.chmod(mode)
    if not own:
        monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    assert (built() is not None) == own  # the temporary folder has another owner too
    assert list(cache.iterdir()) == []
    if own:  # nor one that cannot be made
        monkeypatch.setenv("XDG_CACHE_HOME", __file__)
        assert built() is not None


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false", 'gcc "', "gcc \\"])
def test_without_a_working_compiler_there_is_no_function(cache, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert built() is None


@pytest.fixture
def called(tmp_path, monkeypatch):
    """The file in which a process of a compiler that never ends writes again and again."""
    script = tmp_path / "cc"
    script.write_text(
        f"#!/bin/sh\n(while :; do echo >> {tmp_path}/called; sleep 0.05; done) &\nwait\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    return tmp_path / "called"


def test_a_hanging_compiler_is_killed_with_its_children(cache, called, monkeypatch, capfd):
    monkeypatch.setattr(library_cache, "COMPILE_S", 1.0)
    assert built() is None
    written = called.stat().st_size
    time.sleep(0.3)
    assert called.stat().st_size == written > 0
    assert capfd.readouterr().err.count("did not end") == 1


def test_on_a_full_disk_nothing_is_compiled(cache, called):
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, most[1]))
    try:
        assert built() is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert not called.exists()


def test_a_compiler_without_openmp_or_the_cpu_gets_fewer_flags(cache, monkeypatch):
    found = [("-march=unknown",), ("-fno-such-openmp",), ("-fopenmp-simd",)]
    monkeypatch.setattr(native, "variants", lambda *_: found)
    assert built().flags == ("-fopenmp-simd",)


def test_each_machine_is_compiled_for_with_its_own_flags(tmp_path):
    openmp = tmp_path / "libomp.dylib"
    for machine, system, flags in (
        ("x86_64", "Linux", ("-march=native", "-fopenmp")),
        ("aarch64", "Linux", ("-mcpu=native", "-fopenmp")),
        ("arm64", "Darwin", ("-mcpu=native", "-fopenmp-simd")),
    ):
        assert native.variants(machine, system, openmp)[0] == flags
    openmp.touch()
    on_a_mac = native.variants("arm64", "Darwin", openmp)
    assert {"-mcpu=native", "-Xpreprocessor", "-fopenmp"} <= set(on_a_mac[0])
    assert all("-march=native" not in flags for flags in on_a_mac)


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(cache, tmp_path):
    paths = [tmp_path / f"told-{place}" for place in range(2)]
    with contextlib.ExitStack() as files:
        opened = [files.enter_context(path.open("w")) for path in paths]
        started = [prefork.Process(COMMAND, stdout=file, stderr=file) for file in opened]
    assert [process.wait(120) for process in started] == [0] * 2
    assert [path.read_text().strip() for path in paths] == ["True"] * 2
    assert len(list(cache.iterdir())) == 1
