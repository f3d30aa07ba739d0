"""The project as an installed package: all of it is there, and it works from any folder."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import Parser
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from gradio_client import Client
from kit import serving
from packaging.requirements import Requirement

import transformer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_NETWORK = ("--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir")


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout; this is a copy without one")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The files of a fresh clone, in a folder where a build may leave things."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sources(clone, tmp_path_factory) -> Path:
    """The folder of the unpacked sdist, the first half of what `python -m build` makes."""
    folder = tmp_path_factory.mktemp("sources")
    build = f"from hatchling.build import build_sdist; print(build_sdist({str(folder)!r}))"
    archive = ran([sys.executable, "-c", build], clone).strip()
    with tarfile.open(folder / archive) as file:
        file.extractall(folder, filter="data")
    return folder / archive.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory) -> Path:
    """Made of the sdist, as `python -m build` does."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", *WITHOUT_NETWORK, "--wheel-dir", folder, sources)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory) -> Path:
    """The programs of a new environment with this one's packages and the project."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    python = programs / Path(sys.executable).name
    place = ran([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder)
    path = Path(place.strip()) / "tests.pth"
    path.write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip("--python", python, "install", "--no-compile", *WITHOUT_NETWORK, wheel)
    return programs


def ran(command: list[str | Path], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_contains_the_package_and_the_bundled_models(wheel):
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if ".dist-info/" not in name}
    names = {name for name in tracked() if name.startswith(("transformer/", "checkpoints/"))}
    assert inside == {re.sub("^checkpoints/", "transformer/checkpoints/", name) for name in names}
    assert {"transformer/py.typed", "transformer/checkpoints/stories/config.json"} < inside


def test_the_wheel_names_its_requirements_and_authors(wheel):
    """In ranges that contain the pins: another torch than the pinned one may be installed."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(file.read(name).decode())
    assert metadata["Version"] == transformer.__version__
    assert metadata["Author"] == "The Transformer Attention Visualizer authors"
    assert "attention" in metadata["Keywords"].split(",")
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert (metadata["License-Expression"], metadata["License-File"]) == ("MIT", "LICENSE")
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "train", "mcp", "hub", "ray", "docs", "test",
    }  # fmt: skip
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    ranges = {one.name: one.specifier for one in needed if one.marker is None}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    assert ranges.keys() == pins.keys()
    assert not [name for name, version in pins.items() if version not in ranges[name]]
    for torch in ("2.6.0", "2.9.1+cu128", "2.14.0"):
        assert torch in ranges["torch"]
    assert not [one for one in needed if "==" in str(one.specifier)]


def test_an_index_shows_the_readme_without_a_spaces_settings(wheel):
    """Its links to files lead nowhere there, and the commands are as they were."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(file.read(name).decode())
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# Transformer Attention Visualizer")
    assert "](" not in re.sub(r"\]\(https?:", "", text)
    assert "make static" in text


def test_the_readmes_python_runs_with_the_installed_package(programs, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    python = programs / Path(sys.executable).name
    printed = ran([python, "-c", f"{code}\nprint(transformer.__file__, run.text)"], tmp_path)
    place, _, text = printed.partition(" ")
    assert Path(place).is_relative_to(programs.parent)
    assert text.startswith("Once upon a time")
    assert (tmp_path / "head.html").stat().st_size > 10_000


def test_an_installed_package_serves_the_page_from_another_folder(programs, tmp_path):
    (about,) = programs.parent.rglob("transformer_attention_visualizer-*.dist-info")
    scripts = Distribution.at(about).entry_points
    assert {"transformer-generate", "transformer-train", "transformer-page"} <= scripts.names
    for script in scripts:
        assert (programs / script.name).is_file()
        assert callable(script.load())
    port, log = serving.free_port(), tmp_path / "log"
    command = [programs / "transformer-page", "--port", str(port), "--device", "cpu"]
    command += ["--checkpoints", "translate-en-fr"]
    bare = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    with log.open("w") as file:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=bare, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        serving.wait(f"http://127.0.0.1:{port}/", process, log)
        client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
        (answer,) = client.predict(["Go."], api_name="/translate")
        client.close()
    finally:
        serving.stop(process)
    assert answer["text"] == transformer.load("translate-en-fr").generate("Go.", beams=4).text
