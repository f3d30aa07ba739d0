"""The compiled step's library: built once, rebuilt when it is damaged, and done without."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

from transformer.inference import native

COMMAND = [
    sys.executable, "-c",
    "from transformer.inference import native; print(native.read_token() is not None)",
]  # fmt: skip


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native._temporary.cache_clear()
    return tmp_path / "transformer-attention-visualizer"


def built():
    """A new look for the function, as another process would."""
    return native.read_token.__wrapped__()


def test_the_library_is_compiled_once_and_kept(cache):
    assert built() is not None
    (library,) = cache.iterdir()
    before = library.stat().st_mtime_ns
    assert built() is not None
    assert [path.stat().st_mtime_ns for path in cache.iterdir()] == [before]
    assert cache.stat().st_mode & 0o077 == 0


def test_a_damaged_library_is_compiled_again(cache):
    run = functools.partial(
        subprocess.run, COMMAND, check=True, capture_output=True, text=True,
        cwd=native.SOURCE.parents[2],
    )  # fmt: skip
    assert run().stdout.strip() == "True"
    (library,) = cache.iterdir()
    whole = library.stat().st_size
    library.write_bytes(b"not a library")
    assert run().stdout.strip() == "True"
    assert library.stat().st_size == whole


def test_a_cache_that_cannot_be_made_is_done_without(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert built() is not None


def test_a_user_without_a_home_is_served_too(monkeypatch):
    def homeless(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(native.Path, "expanduser", homeless)
    native._temporary.cache_clear()
    assert built() is not None


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_working_compiler_there_is_no_function(cache, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert built() is None


def test_a_compiler_that_knows_no_openmp_or_cpu_is_asked_for_less(cache, monkeypatch):
    monkeypatch.setattr(native, "VARIANTS", (("-march=unknown",), *native.VARIANTS[2:]))
    assert built() is not None


def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(cache):
    started = [
        subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, cwd=native.SOURCE.parents[2])
        for _ in range(3)
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in started] == ["True"] * 3
    assert len(list(cache.iterdir())) == 1
