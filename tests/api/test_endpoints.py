"""The named endpoints give what the Python calls give, and the same sentences: asked by the real
client."""

import base64
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError
from kit.serving import NAMES, Shared, running

from transformer.analysis.ablation import head_importance, next_token
from transformer.interventions.breaks import BREAKS, breaks_of
from transformer.views.export import export

pytestmark = pytest.mark.slow

TEXT = "The dog ran"
SILENCE = {"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0, 2]}
SETTINGS = {"max_new_tokens": 8, "interventions": [SILENCE]}


@pytest.fixture(scope="module")
def server() -> Shared:
    return running()


@pytest.fixture(scope="module")
def client(server: Shared) -> Iterator[Client]:
    client = Client(server.url, verbose=False, analytics_enabled=False)
    yield client
    client.close()


def test_models_and_breaks_are_listed_with_descriptions(client, server):
    models = client.predict(api_name="/models")
    assert [model["name"] for model in models] == list(NAMES)
    assert models[0]["n_heads"] == server.model.config.n_heads
    assert models[0]["n_parameters"] == server.model.n_parameters
    intact, *others = client.predict(api_name="/breaks")
    assert intact["why"] == "The network as it was trained."
    wanted = {what: BREAKS[what] for what in breaks_of(server.model.config)}
    assert {each["what"]: each["why"] for each in others} == wanted


@pytest.mark.parametrize(
    "settings",
    [
        {"max_new_tokens": 9, "temperature": 0, "top_k": 9},
        {"max_new_tokens": 12, "temperature": 0.9, "top_k": 20, "seed": 5},
        SETTINGS,
        {"max_new_tokens": 5, "forced_tokens": [70, 71]},
    ],
)
def test_generate_gives_the_same_as_python(client, server, settings):
    got = client.predict("Once upon a time", **settings, api_name="/generate")
    run = server.model.generate("Once upon a time", **settings)
    assert (got["text"], got["tokens"], got["ids"]) == (run.text, list(run.tokens), list(run.ids))
    assert [step["id"] for step in got["steps"]] == [step.token for step in run.steps]
    for shown, step in zip(got["steps"], run.steps, strict=True):
        assert shown["window"] == list(step.window)
        wanted = [(c.id, c.probability, c.sampling_probability) for c in step.candidates]
        for candidate, (index, before, after) in zip(shown["candidates"], wanted, strict=True):
            assert candidate["id"] == index
            assert candidate["probability"] == pytest.approx(before, abs=1e-5)
            assert candidate["sampling_probability"] == pytest.approx(after, abs=1e-5)
    head = client.predict(got["run"], "decoder.1.self", 2, api_name="/attention")
    record = run.trace["decoder.1.self"]
    weights, scores = torch.tensor(head["weights"]), torch.tensor(head["scores"])
    torch.testing.assert_close(weights, record.pattern[0, 2], atol=1e-5, rtol=0)
    torch.testing.assert_close(scores, record.scores[0, 2], atol=1e-4, rtol=0)
    assert head["allowed"] == record.allowed[0].tolist()
    assert head["queries"] == head["keys"] == list(run.tokens)


def test_a_batch_is_padded_and_each_row_reads_as_it_does_alone(client, server):
    got = client.predict(["The fox.", "The dog ran to the park."], api_name="/batch")
    short, long = (sum(row) for row in got["is_token"])
    assert short < long == len(got["tokens"][0])
    head = client.predict(got["run"], "decoder.0.self", 1, 0, api_name="/attention")
    weights = torch.tensor(head["weights"])[:short, :short]
    alone = server.model.trace("The fox.").trace["decoder.0.self"].pattern[0, 1]
    torch.testing.assert_close(weights, alone, atol=1e-5, rtol=0)
    assert not any(head["allowed"][0][short:])


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(("generate", {"text": "Hi"} | wrong, sentence) for wrong, sentence in [
        ({"text": "a" * 2001}, "at most 2,000 characters; got 2,001"),
        ({"model": "gpt-9"}, f"model must be one of {list(NAMES)}"),
        ({"interventions": [SILENCE] * 65}, "at most 64 interventions; got 65"),
    ]),
    ("batch", {"texts": ["a"] * 9}, "from 1 to 8 texts; got 9"),
    ("batch", {"texts": "a single string"}, "must be a list of strings; got str"),
    *(("translate", {"model": "tiny-translator", "texts": ["Hi"]} | wrong, sentence)
      for wrong, sentence in [
        ({"texts": ["Hi", " "]}, "text 1 of 2, counted from 0: the text is empty"),
    ]),
    *(("attention", {"run": "RUN"} | wrong, sentence) for wrong, sentence in [
        ({"run": "guess"}, "no longer keeps this run"),
        ({"packed": 1}, "packed must be true or false; got 1"),
    ]),
    ("score", {"text": "Hi", "target": "Le chien"}, "only a translator takes a target"),
    ("view", {"picture": "heatmap", "run": "RUN", "parameters": [["row", 1]]},
     "parameters must be an object; got [['row', 1]]"),
]  # fmt: skip


def test_a_bad_value_gives_the_same_error_as_in_python(client):
    run = client.predict("Hi", api_name="/trace")["run"]
    for name, arguments, sentence in REFUSED:
        given = {key: run if value == "RUN" else value for key, value in arguments.items()}
        with pytest.raises(AppError, match=re.escape(sentence)):
            client.predict(**given, api_name=f"/{name}")


def test_a_large_matrix_is_given_packed_or_not_at_all(client, server):
    text = "Once upon a time a little fox met a bird. " * 16
    run = client.predict(text, "stories", api_name="/trace")
    side = len(run["ids"])
    assert side > 128
    sentence = (
        rf"{side**2:,} numbers are too many for nested lists; allowed: at most 16,384, or pack"
    )
    with pytest.raises(AppError, match=sentence):
        client.predict(run["run"], api_name="/attention")
    packed = client.predict(run["run"], packed=True, api_name="/attention")
    assert packed["weights"]["shape"] == [side, side]

    run = client.predict(TEXT, api_name="/trace")["run"]
    matrix = server.model.trace(TEXT).position_matrices["decoder"].numpy()
    listed = client.predict(run, "decoder", api_name="/positions")["matrix"]
    sent = client.predict(run, "decoder", packed=True, api_name="/positions")["matrix"]
    flat = np.frombuffer(base64.b64decode(sent["base64"]), sent["dtype"])
    np.testing.assert_allclose(flat.reshape(sent["shape"]), matrix, atol=1e-6)
    np.testing.assert_allclose(listed, matrix, atol=1e-6)


def test_translate_gives_each_text_the_search_it_gets_alone(client, server):
    texts = ["The fox.", "The dog ran to the park."]
    got = client.predict(texts, "tiny-translator", 3, 1.0, 12, api_name="/translate")
    for text, answer in zip(texts, got, strict=True):
        run = server.translator.generate(text, beams=3, max_new_tokens=12)
        assert run.search is not None
        assert (answer["text"], answer["ids"]) == (run.text, list(run.ids))
        assert answer["source_tokens"] == list(run.source_labels)
        assert [found["text"] for found in answer["hypotheses"]] == list(run.search.texts)
        scores = [found["score"] for found in answer["hypotheses"]]
        assert scores == pytest.approx([h.score for h in run.search.hypotheses], abs=1e-4)
        head = client.predict(answer["run"], "decoder.1.cross", 1, api_name="/attention")
        assert head["queries"] == list(run.labels)
        assert head["keys"] == list(run.source_labels)


def test_a_view_is_asked_by_its_declaration(client):
    pictures = [one for view in client.predict(api_name="/views") for one in view["pictures"]]
    (declared,) = [one for one in pictures if one["name"] == "candidates"]
    assert [parameter["name"] for parameter in declared["parameters"]] == ["step"]
    run = client.predict("Once upon a time", max_new_tokens=3, api_name="/generate")["run"]
    got = client.predict("candidates", run, {"step": 1}, api_name="/view")
    assert got["figure"]["data"][0]["type"] == "bar"
    numbers = client.predict("attention_math", run, {"query": 0}, api_name="/view")
    assert sum(numbers["weights"]) == pytest.approx(1, abs=1e-5)


def test_trace_alters_the_network_for_its_run_alone(client, server):
    for altered in ([SILENCE], None):
        got = client.predict(TEXT, interventions=altered, api_name="/trace")
        run = server.model.trace(TEXT, altered or ())
        assert (got["stopped"], got["steps"], got["tokens"]) == ("read", [], list(run.tokens))
        head = client.predict(got["run"], "decoder.1.self", 1, api_name="/attention")
        weights, record = torch.tensor(head["weights"]), run.trace["decoder.1.self"]
        torch.testing.assert_close(weights, record.pattern[0, 1], atol=1e-5, rtol=0)


def test_importance_and_next_token_are_those_of_the_run(client, server):
    got = client.predict(TEXT, **SETTINGS, api_name="/generate")
    run = server.model.generate(TEXT, **SETTINGS)
    place = len(run.ids) - 2
    importance = client.predict(got["run"], place, "mean", api_name="/importance")
    change = torch.tensor(importance["change"]["decoder self"])
    wanted = head_importance(server.model, run, place, "mean").change["decoder", "self"]
    torch.testing.assert_close(change, wanted, atol=1e-4, rtol=0)
    assert importance["token"] == run.labels[place]
    shown = client.predict(got["run"], place, api_name="/next_token")["candidates"]
    both = next_token(server.model, run, place)
    assert [candidate["id"] for candidate in shown] == list(both.ids)
    for name, expected in (("intact", both.intact), ("altered", both.intervened)):
        assert [one[name] for one in shown] == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_bits_of_a_long_text_are_over_the_bytes_that_were_read(client, server):
    text = "Привет, мир! " * 20
    got = client.predict(text, api_name="/score")
    model = server.model
    ids = model.tokenizer.encode(text, special=True)[-model.config.max_len :]
    with torch.inference_mode():
        logits = model.network(torch.tensor([ids[:-1]]))[0]
    nats = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum")
    assert got["total_bits"] == pytest.approx(nats.item() / math.log(2), rel=1e-3)
    assert got["n_bytes"] == len(model.tokenizer.to_bytes(ids[1:])) < len(text.encode()) / 2
    assert got["bits_per_byte"] == got["total_bits"] / got["n_bytes"]
    assert got["tokens"] == list(model.tokenizer.labels(ids))


@pytest.mark.parametrize(
    ("name", "text", "settings"),
    [
        ("model", 'Say "it\'s\n{0}"', {"max_new_tokens": 6, "temperature": 0.9, "seed": 5}),
        ("model", TEXT, SETTINGS),
        ("model", TEXT, {"max_new_tokens": 0, "interventions": [SILENCE]}),
        ("translator", TEXT, {"max_new_tokens": 6, "beams": 3, "length_penalty": 0.5}),
    ],
)
def test_the_exported_program_gets_the_run_of_the_page(server, name, text, settings):
    run = vars(server)[name].generate(text, **settings)
    site = str(run.trace.sites[-1])
    made = export(run, form="py", site=site, head=1, address=server.url)
    names: dict[str, Any] = {}
    exec(made["text"], names)
    names["client"].close()
    assert names["run"]["tokens"] == list(run.tokens)
    np.testing.assert_allclose(names["weights"], run.trace[site].pattern[0, 1], atol=1e-5)
