"""Where else a head does what it is named for, and where neurons are most active, against the files
of their measurements and the networks themselves."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer import bundled_names, load
from transformer.analysis.feed_forward import feed_forward_at
from transformer.views.attention.head_metrics import metrics_of
from transformer.views.journey.passages import answer_neuron_passages, answer_passages

HEADS = Path(__file__).resolve().parents[2] / "checkpoints/stories/heads.json"
# Its words come again, so that heads are named.
TEXT = "Tom had a red ball. Sue had a red hat. Tom saw Sue. Sue had a red ball and a red hat."


@pytest.fixture(scope="module")
def stories():
    model = load("stories", "cpu")
    return SimpleNamespace(model=lambda name: model), model.trace(TEXT)


def test_a_heads_passages_are_those_with_its_largest_numbers(stories):
    models, run = stories
    measured = json.loads(HEADS.read_text(encoding="utf-8"))
    heads = metrics_of(run, "decoder", "self").heads
    named = [head for head in heads if head.named_after is not None]
    assert len({head.named_after for head in named}) > 2
    for head in named:
        found = answer_passages(models, run, site=f"decoder.{head.layer}.self", head=head.head)
        (dossier,) = (
            one
            for one in measured["heads"]
            if (one["layer"], one["head"]) == (head.layer, head.head)
        )
        strongest = dossier["metrics"][head.named_after]["strongest"]
        texts = [measured["texts"][str(text)] for _, text in strongest][:3]
        assert [one["text"] for one in found["passages"]] == texts
        numbers = [one["number"] for one in found["passages"]]
        assert numbers == sorted(numbers, reverse=True)
        assert (found["label"], found["n_texts"]) == (head.label, 400)
    nameless = next(head for head in heads if head.named_after is None)
    found = answer_passages(models, run, site=f"decoder.{nameless.layer}.self", head=nameless.head)
    assert found["passages"] == []


def test_heads_that_were_not_measured_have_no_passages(stories, tiny_model):
    _, run = stories
    models = SimpleNamespace(model=lambda name: tiny_model)
    assert answer_passages(models, run, site="decoder.5.self", head=0)["passages"] == []


@pytest.mark.parametrize("name", bundled_names())
def test_a_neurons_sentence_read_again_has_the_recorded_activation(name):
    """At the marked token, in the run that a press on it makes."""
    model = load(name, "cpu")
    models = SimpleNamespace(model=lambda name: model)
    stack, layer = model.network.last_stack.name, model.config.n_layers - 1
    indices = [3, 500, 1023]
    found = answer_neuron_passages(models, name, stack=stack, layer=layer, neurons=[*indices, 9999])
    assert [*found["passages"]] == [str(index) for index in indices]
    assert found["n_sentences"] > 1000
    for index in indices:
        passage = found["passages"][str(index)]
        assert passage["token"]
        read = model.generate if model.config.family == "encoder-decoder" else model.trace
        run = read(passage["text"])
        neurons = feed_forward_at(model, run, stack, layer, neuron=index).neurons
        (neuron,) = (one for one in neurons if one.index == index)
        at = int(neuron.activations.abs().argmax())
        assert float(neuron.activations[at]) == pytest.approx(passage["activation"], abs=0.06)
        assert model.tokenizer.decode([run.ids[at]]).strip() == passage["token"]
    nothing = answer_neuron_passages(models, name, stack="encoder", layer=99, neurons=[1])
    assert nothing == {"passages": {}, "n_sentences": 0}


def test_neurons_that_were_not_measured_have_no_sentences(tiny_model):
    models = SimpleNamespace(model=lambda name: tiny_model)
    found = answer_neuron_passages(models, "tiny", stack="decoder", layer=1, neurons=[1])
    assert found == {"passages": {}, "n_sentences": 0}
