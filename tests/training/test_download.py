"""Sentence pairs fetched from a local server: what is kept, and every way it can fail."""

import io
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from transformer.training import download
from transformer.training.__main__ import main
from transformer.training.data import read_pairs
from transformer.training.download import download_pairs
from transformer.training.recipe import load_recipe
from transformer.training.tasks import TASKS


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Answers with the files of its folder, and remembers who asked."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder, agents = tmp_path / "pages", []
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            agents.append(self.headers["User-Agent"])

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        server.folder, server.agents = folder, agents
        server.url = lambda name: f"http://127.0.0.1:{server.server_port}/{name}"
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        yield server
        server.shutdown()


def archive(**files: str | bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in {"_about": "Who wrote this.", **files}.items():
            file.writestr(f"{name}.txt", text)
    return held.getvalue()


def word(index: int) -> str:
    return "".join("bcdfghklmnprstvw"[index >> shift & 15] + "a" for shift in (0, 4, 8))


def sentences(count: int) -> str:
    return "".join(
        f"I see the {word(i)}.\tJe vois le {word(i)}!\tCC-BY 2.0 (France) #{i}\n"
        for i in range(count)
    )


def test_an_archive_is_fetched_once_cleaned_and_split(server, tmp_path, capsys):
    text = sentences(3100) + "Stop!\tArrêtez!\n“I’m  here.”\t«J’y suis.»\n" + sentences(2)
    (server.folder / "fra-eng.zip").write_bytes(archive(fra=text.replace("\n", "\r\n")))
    folder = download_pairs(server.url("fra-eng.zip"), tmp_path / "cache")
    assert folder == tmp_path / "cache"
    splits = {name: read_pairs(folder / f"{name}.tsv") for name in ("train", "valid", "test")}
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": 102, "valid": 2000, "test": 1000
    }  # fmt: skip
    together = [pair for pairs in splits.values() for pair in pairs]
    expected = {(f"I see the {word(i)}.", f"Je vois le {word(i)} !") for i in range(3100)}
    assert set(together) == expected | {("Stop!", "Arrêtez !"), ('"I\'m here."', "« J'y suis. »")}
    assert "3,102 different pairs" in capsys.readouterr().out
    assert "Mozilla" in server.agents[0]  # the site turns Python's own name away

    (folder / "train.tsv").unlink()  # as after a kill: made again from the archive
    assert download_pairs(server.url("fra-eng.zip"), folder) == folder
    assert {name: read_pairs(folder / f"{name}.tsv") for name in splits} == splits
    assert len(server.agents) == 1


def test_a_recipe_is_trained_on_the_german_that_it_names(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (server.folder / "deu-eng.zip").write_bytes(
        archive(deu=sentences(3040).replace("Je vois le", "Ich sehe: „"))
    )
    data = f'[data]\ndownload = "{server.url("deu-eng.zip")}"'
    path = tmp_path / "mine.toml"
    path.write_text(f'task = "translation"\n{data}\n[model]\npreset = "pre-norm"\n')
    task = TASKS["translation"](load_recipe(str(path)), "download")
    assert (len(task.train), len(task.valid)) == (40, 2000)
    for _, target in task.train:  # French would have spaces before its signs
        assert target.startswith('Ich sehe: "')
        assert target.endswith("a!")
    assert len(list((tmp_path / "runs/data/deu-eng").iterdir())) == 4


def test_a_source_that_does_not_fit_the_recipe_gets_one_sentence(tmp_path, capsys):
    for recipe, source, sentence in (
        ("multi30k-en-fr", "download", "multi30k-en-fr names none; allowed: a folder"),
        ("stories", "download", "is for translation; stories learns from documents"),
        ("translate-en-fr", "hub:some/pairs", "got --data hub:some/pairs; allowed: a folder"),
    ):
        assert main([recipe, "--data", source, "--out", str(tmp_path / "o")]) == 2
        error = capsys.readouterr().err
        assert (sentence in error, error.count("\n")) == (True, 1)
        assert not (tmp_path / "o").exists()


FEW = archive(fra=sentences(50))


def test_an_answer_without_enough_pairs_gets_one_sentence(server, tmp_path):
    for place, (body, sentence) in enumerate((
        (None, "cannot download http.*: HTTP Error 404: .*; with no network"),
        (b"<html>no robots</html>", "must answer with a zip archive; got b'<html>no robots"),
        (archive(fra="a\tb", deu="a\tb"), "must hold one text file; got"),
        (archive(fra=b"\xc3(\tb"), "no usable archive.*delete it"),
        (archive(fra="I am.\tJe suis.\nI am"), r"line 2 must hold English, a tab.*got 'I am'"),
        (FEW, "3,000 sentences to validate and test with, and some to train, are needed"),
    )):  # fmt: skip
        if body is not None:
            (server.folder / "fra-eng.zip").write_bytes(body)
        with pytest.raises(ValueError, match=sentence):
            download_pairs(server.url("fra-eng.zip"), tmp_path / f"{place}")
        assert not list(tmp_path.glob("*/*.tsv"))


def test_too_large_an_answer_is_left(server, tmp_path, monkeypatch):
    (server.folder / "fra-eng.zip").write_bytes(FEW)
    monkeypatch.setattr(download, "LARGEST_BYTES", len(FEW) - 1)
    with pytest.raises(ValueError, match=f"larger than the allowed {len(FEW) - 1:,} bytes"):
        download_pairs(server.url("fra-eng.zip"), tmp_path)
    monkeypatch.setattr(download, "LARGEST_BYTES", len(FEW))
    monkeypatch.setattr(download, "LARGEST_TEXT_BYTES", 100)
    with pytest.raises(ValueError, match="text exceeds the allowed 100 bytes"):
        download_pairs(server.url("fra-eng.zip"), tmp_path)


def test_without_a_network_a_folder_is_asked_for_and_only_web_addresses_are_fetched(
    server, tmp_path
):
    address = server.url("fra-eng.zip")
    server.shutdown()
    server.server_close()
    with pytest.raises(ValueError, match="with no network, give --data a folder"):
        download_pairs(address, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    with pytest.raises(ValueError, match="must be an http or https address; got 'file:///etc/"):
        download_pairs("file:///etc/hosts.zip", tmp_path)
