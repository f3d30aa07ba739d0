"""The entry point: unusable models and ports are reported, and other models are offered."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import psutil
import pytest
from gradio_client import Client
from kit import aio, prefork, serving
from kit.models import ONE_FILE, save_model, tiny

import transformer
from transformer import Model, serve
from transformer.server import http_server, launch
from transformer.server.http_server import listen
from transformer.server.service import Service
from transformer.server.store import KINDS

pytestmark = pytest.mark.slow

# Limits of a Space: processor time to start, and memory with all bundled models.
MOST_SECONDS, MOST_BYTES = 60, 1.5e9


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


def test_the_server_starts_within_its_limits_and_cleans_up(tmp_path, monkeypatch):
    """Interrupted while it generates. Ended by SIGTERM: server/test_process.py."""
    temporary, log = tmp_path / "temporary", tmp_path / "server.log"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GRADIO_TEMP_DIR", raising=False)
    names = transformer.bundled_names()

    def kept() -> list[str]:
        names = [path.name for path in temporary.iterdir()]
        return [name for name in names if not name.startswith("torchinductor_")]  # torch's own

    with serving.Server(log, names, start=subprocess.Popen) as server:
        assert server.cpu_s() < MOST_SECONDS
        assert [name[:12] for name in kept()] == ["transformer-"]
        client = Client(server.url, verbose=False, analytics_enabled=False)
        filled = client.predict("Once upon a [MASK].", model="fill-in", api_name="/fill")
        assert filled["text"] == "Once upon a time."
        for model in ("stories", "translate-en-fr"):
            for seed in range(3):
                data = {"model": model, "max_new_tokens": 60, "temperature": 0.8, "seed": seed}
                client.predict("Once upon a time", **data, api_name="/generate")
        client.close()
        assert psutil.Process(server.process.pid).memory_info().rss < MOST_BYTES
        with server.client() as client, ExitStack() as reading:
            health = client.get("health").json()
            assert list(health["weight_bytes"]) == names
            assert sum(health["weight_bytes"].values()) < health["memory_bytes"] < MOST_BYTES
            assert set(health["kept"]) == set(KINDS)
            assert health["kept"]["runs"]["count"] > 0
            assert health["kept_bytes"] == sum(one["bytes"] for one in health["kept"].values()) > 0
            data = ["Once upon a time", "stories", 200, *[None] * 4, 1, 1, 1.0, None, None]
            for _ in range(6):  # a text begins when its answer is read
                called = client.post("gradio_api/call/generate", json={"data": data}).json()
                event = f"gradio_api/call/generate/{called['event_id']}"
                reading.enter_context(client.stream("GET", event))
            aio.wait_until(lambda: client.get("health").json()["running"])
            server.process.send_signal(signal.SIGINT)
        assert server.process.wait(120) == 0
        assert kept() == []
        assert "Traceback" not in log.read_text()
