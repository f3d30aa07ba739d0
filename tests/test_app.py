"""The entry point: unusable models and ports are reported, and other models are offered."""

import re
import socket
import sys

import pytest
from kit import prefork
from kit.models import ONE_FILE, save_model, tiny

from transformer import Model, serve
from transformer.server import launch
from transformer.server.http import http_server
from transformer.server.http.http_server import listen
from transformer.server.kept.service import Service

pytestmark = pytest.mark.slow


def test_a_damaged_checkpoint_is_reported_and_the_others_offered(
    tiny_model, tmp_path, capsys, monkeypatch
):
    load = serve.load

    def fails(name, *settings):
        if name.endswith("odd"):  # an unforeseen fault
            raise NotImplementedError("no such numbers")
        return load(name, *settings)

    monkeypatch.setattr(serve, "load", fails)
    for name in ("good", "cut", "shapeless", "odd"):
        save_model(tiny_model, tmp_path / name, dtype="float32")
    weights = (tmp_path / "cut" / ONE_FILE).read_bytes()
    (tmp_path / "cut" / ONE_FILE).write_bytes(weights[:-100])
    config = tmp_path / "shapeless" / "config.json"
    config.write_text(config.read_text().replace('"d_ff": 64', '"d_ff": 65'))
    names = [str(tmp_path / name) for name in ("cut", "good", "shapeless", "missing", "odd")]
    models = serve.load_all(names, "cpu")
    assert [model.name for model in models] == ["good"]
    assert isinstance(models[0], Model)
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 4
    assert all(line.startswith("not offered: ") for line in printed)
    assert "is not a readable safetensors file" in printed[0]
    assert "does not fit its config.json" in printed[1]
    assert "no checkpoint" in printed[2]
    assert printed[3].endswith("odd cannot be used: NotImplementedError: no such numbers")


def test_without_any_checkpoint_that_can_be_used_there_is_no_page():
    with pytest.raises(ValueError, match=r"(?s)no checkpoint 'a'.*no checkpoint 'b'"):
        serve.load_all(["a", "b"], "cpu")
    with pytest.raises(ValueError, match="no checkpoint to offer"):
        serve.load_all([], "cpu")


def test_two_folders_of_one_name_are_refused(tiny_model, tmp_path):
    for folder in ("a/mine", "b/mine", "b/other"):
        save_model(tiny_model, tmp_path / folder, dtype="float32")
    first, second, other = (str(tmp_path / name) for name in ("a/mine", "b/mine", "b/other"))
    sentence = f"two models are called 'mine': {first} and {second}; rename the folder of one"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        serve.load_all([first, other, second], "cpu")
    assert [model.name for model in serve.load_all([first, other], "cpu")] == ["mine", "other"]
    models = [tiny("mine", "decoder", tiny_model.tokenizer, seed) for seed in (1, 2)]
    sentence = "two models are called 'mine': model 1 and model 2; rena"
    with listen(port=0) as bound, pytest.raises(ValueError, match=sentence):
        launch(models, bound)


def test_a_model_whose_example_fails_is_reported_the_others_offered(
    tokenizer, tiny_model, capsys, monkeypatch
):
    deaf = tiny("deaf", "decoder", tokenizer, max_len=1)
    odd = tiny("odd", "encoder", tokenizer)
    trace = Model.trace

    def fails(model, texts, *settings):
        if model.name == odd.name and not isinstance(texts, str):
            raise NotImplementedError("no such numbers")
        return trace(model, texts, *settings)

    monkeypatch.setattr(Model, "trace", fails)
    service = Service([deaf, tiny_model, odd])
    assert list(service.models) == list(service.examples) == ["tiny"]
    assert capsys.readouterr().err.splitlines() == [
        "not offered: deaf reads too little at once for any text: max_len is 1",
        "not offered: odd cannot be used: NotImplementedError: no such numbers",
    ]
    with pytest.raises(ValueError, match=r"(?s)deaf reads too little.*odd cannot be used"):
        Service([deaf, odd])


def test_a_taken_or_impossible_port_ends_the_server_with_one_sentence():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        ended = prefork.run([sys.executable, "app.py", "--port", str(taken)])
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"cannot listen on 127.0.0.1 port {taken}: ")
    assert ended.stderr.count("\n") == 1
    with listen(port=taken) as bound:  # free again
        assert bound.getsockname() == ("127.0.0.1", taken)
    for port in (-1, 70_000):
        with pytest.raises(OSError, match=rf"port {port}: .*allowed: a free port from 1 to 65535"):
            listen("127.0.0.1", port)


def test_without_a_port_the_first_free_one_is_taken(monkeypatch):
    monkeypatch.delenv("GRADIO_SERVER_PORT", raising=False)
    with socket.socket() as other, socket.socket() as free:
        for each in (other, free):
            each.bind(("127.0.0.1", 0))
        other.listen()
        (taken, after) = (each.getsockname()[1] for each in (other, free))
        free.close()
        monkeypatch.setattr(http_server, "PORTS", (taken, after))
        with listen() as bound:
            assert bound.getsockname()[1] == after
        monkeypatch.setenv("GRADIO_SERVER_PORT", str(taken))
        with pytest.raises(OSError, match=f"port {taken}: "):
            listen()
