"""The sentence at which each neuron is most active, against PyTorch's own hooks on the modules; and
the command that records it, interrupted too."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from kit.models import save_model

from transformer import load
from transformer.analysis.corpus import neurons
from transformer.analysis.corpus.__main__ import main

TEXTS = ["The fox said hello. The bird said no!", 'One day, a bird came. He. "The fox', "the fox"]
SENTENCES = ["The fox said hello.", "The bird said no!", "One day, a bird came."]


def test_sentences_are_whole_fit_a_line_and_come_once():
    long = "The fox said " + 20 * "hello " + "to the bird."
    assert list(neurons.sentences([*TEXTS, long, *TEXTS])) == SENTENCES
    assert list(neurons.sentences(["The fox\n\nsaid hello.  The bird\nsaid no!"])) == SENTENCES[:2]


@pytest.mark.parametrize("family", ["model", "encoder", "encoder_decoder"])
def test_recorded_neurons_are_where_pytorch_finds_them(family, request, tmp_path):
    model = request.getfixturevalue(f"tiny_{family}")
    peaks = neurons.over_sentences(model, lambda: TEXTS, tmp_path)
    found = neurons.recorded(model, peaks, TEXTS)
    assert found["n_sentences"] == peaks.n_read == 3
    network, is_special = model.network, model.tokenizer.is_special
    layers = network.last_stack.layers
    best = [[(0.0, -1, "")] * model.config.d_ff for _ in layers]
    for number, sentence in enumerate(SENTENCES):
        source, ids = neurons.ids_of(model, sentence)
        seen = []
        handles = [
            layer.feed_forward.contract.register_forward_pre_hook(
                lambda _, read, seen=seen: seen.append(read[0][0])
            )
            for layer in layers
        ]
        with torch.no_grad():
            network(*(torch.tensor([one]) for one in (source, ids) if one))
        for handle in handles:
            handle.remove()
        for layer, rows in enumerate(seen):
            rows[[is_special(one) for one in ids]] = 0
            for index in range(model.config.d_ff):
                at = int(rows[:, index].abs().argmax())
                value = float(rows[at, index])
                if abs(value) > abs(best[layer][index][0]) + 1e-6:
                    text = model.tokenizer.decode([ids[at]]).strip()
                    best[layer][index] = (value, number, text)
    stack = network.last_stack.name
    assert [*found["neurons"]] == [f"{stack}.0", f"{stack}.1"]
    for layer, expected in enumerate(best):
        told = found["neurons"][f"{stack}.{layer}"]
        rows = zip(*(told[name] for name in neurons.FIELDS), expected, strict=True)
        for sentence, start, length, activation, (value, number, token) in rows:
            if abs(value) < neurons.LEAST:
                assert sentence == neurons.NEVER
                continue
            assert found["sentences"][sentence][0] == SENTENCES[number]
            assert activation == pytest.approx(value, abs=0.06)
            shown = found["sentences"][sentence][-1][start : start + length]
            assert shown.strip("\ufffd") in (token, "")


def test_an_interrupted_recording_goes_on_and_other_texts_begin_anew(
    tiny_model, tmp_path, monkeypatch
):
    monkeypatch.setattr(neurons, "PART", 1)
    whole = neurons.over_sentences(tiny_model, lambda: TEXTS, tmp_path / "one")
    read = []
    peaks_of = neurons.peaks_of

    def counted(model, some):
        if len(read) == 2:
            raise KeyboardInterrupt
        read.extend(some)
        return peaks_of(model, some)

    monkeypatch.setattr(neurons, "peaks_of", counted)
    with pytest.raises(KeyboardInterrupt):
        neurons.over_sentences(tiny_model, lambda: TEXTS, tmp_path / "two")
    read.clear()
    resumed = neurons.over_sentences(tiny_model, lambda: TEXTS, tmp_path / "two")
    assert read == SENTENCES[2:]
    for name in ("activation", "sentence", "token"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    read.clear()
    neurons.over_sentences(tiny_model, lambda: TEXTS[1:], tmp_path / "two")
    assert read == SENTENCES[2:]  # the only one of these texts


def test_the_command_writes_neurons_that_a_checkpoint_loads(tiny_model, tmp_path, capsys):
    model, data, out = tmp_path / "tiny", tmp_path / "data.txt", tmp_path / "out"
    save_model(tiny_model, model, dtype="float32")
    data.write_text("\n".join(TEXTS))
    command = partial(main, [str(model), "--data", str(data), "--out", str(out), "--neurons"])
    command()
    assert str(out / "neurons.json") in capsys.readouterr().out
    content = json.loads((out / "neurons.json").read_text())
    (model / "neurons.json").write_text(json.dumps(content))
    loaded = load(str(model))
    assert loaded.neurons == content
    loaded.save(tmp_path / "again")
    assert load(str(tmp_path / "again")).neurons == content
    for field, value in (("length", 99), ("sentence", -2), ("start", -1)):
        damaged = json.loads(json.dumps(content))
        damaged["neurons"]["decoder.1"][field][3] = value
        (model / "neurons.json").write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match="is no usable file about neurons"):
            load(str(model))
    with pytest.raises(SystemExit, match="takes no --workers"):
        main([str(model), "--data", str(data), "--out", str(out), "--neurons", "--workers", "2"])
