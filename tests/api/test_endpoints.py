"""The named endpoints give what the Python calls give, and the same sentences."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError
from serving import NAMES, Server

SAMPLED = {"max_new_tokens": 12, "temperature": 0.9, "top_k": 20, "seed": 5}


def test_models_lists_every_model_with_its_configuration(client: Client, server: Server) -> None:
    models = client.predict(api_name="/models")
    assert [model["name"] for model in models] == list(NAMES)
    assert models[0]["n_heads"] == server.model.config.n_heads
    assert models[0]["n_parameters"] == server.model.n_parameters


def test_only_the_named_endpoints_are_public(client: Client) -> None:
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(endpoints) == {
        "/models", "/generate", "/translate", "/fill", "/trace", "/batch", "/attention",
        "/positions", "/limits", "/importance", "/next_token", "/patching", "/breaks", "/score",
        "/view", "/views",
    }  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [{"max_new_tokens": 9}, {"max_new_tokens": 9, "temperature": 0, "top_k": 9}, SAMPLED],
)
def test_generate_gives_what_python_gives(
    client: Client, server: Server, settings: dict[str, Any]
) -> None:
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


def test_attention_of_a_generated_run_equals_the_trace(client: Client, server: Server) -> None:
    got = client.predict("The dog ran", **SAMPLED, api_name="/generate")
    run = server.model.generate("The dog ran", **SAMPLED)
    head = client.predict(got["run"], "decoder.1.self", 2, api_name="/attention")
    record = run.trace["decoder.1.self"]
    torch.testing.assert_close(
        torch.tensor(head["weights"]), record.pattern[0, 2], atol=1e-5, rtol=0
    )
    torch.testing.assert_close(torch.tensor(head["scores"]), record.scores[0, 2], atol=1e-4, rtol=0)
    assert head["allowed"] == record.allowed[0].tolist()
    assert head["queries"] == head["keys"] == list(run.tokens)


def test_trace_reads_without_generating(client: Client, server: Server) -> None:
    got = client.predict("The dog ran", api_name="/trace")
    assert got["steps"] == []
    assert got["stopped"] == "read"
    assert got["tokens"] == list(server.model.trace("The dog ran").tokens)


def test_a_batch_is_padded_and_each_row_reads_as_it_does_alone(
    client: Client, server: Server
) -> None:
    texts = ["The fox.", "The dog ran to the park."]
    got = client.predict(texts, api_name="/batch")
    lengths = [sum(row) for row in got["is_token"]]
    assert lengths[0] < lengths[1] == len(got["tokens"][0])
    alone = server.model.trace(texts[0]).trace["decoder.0.self"].pattern[0, 1]
    head = client.predict(got["run"], "decoder.0.self", 1, 0, api_name="/attention")
    weights = torch.tensor(head["weights"])[: lengths[0], : lengths[0]]
    torch.testing.assert_close(weights, alone, atol=1e-5, rtol=0)
    assert not any(head["allowed"][0][lengths[0] :])


def test_the_bundled_model_answers_by_name(client: Client) -> None:
    got = client.predict("Once upon a time", "stories", 8, api_name="/generate")
    assert got["model"] == "stories"
    assert 1 <= len(got["steps"]) <= 8
    assert got["text"].startswith("Once upon a time")


BAD = [
    ({"text": ""}, "the text is empty"),
    ({"text": "   \n"}, "the text is empty"),
    ({"text": "a" * 100_000}, "at most 2,000 characters; got 100,000"),
    ({"text": 7}, "must be a string; got int"),
    ({"text": "Hi", "temperature": -1}, "temperature must be a number from 0.01 to 10; got -1"),
    ({"text": "Hi", "temperature": "hot"}, "temperature must be a number"),
    ({"text": "Hi", "top_k": 0}, "top_k must be a whole number"),
    ({"text": "Hi", "top_k": 2.5}, "top_k must be a whole number"),
    ({"text": "Hi", "top_p": 1.5}, "top_p must be a number"),
    (
        {"text": "Hi", "max_new_tokens": 100_000},
        "max_new_tokens must be a whole number from 1 to 200",
    ),
    ({"text": "Hi", "max_new_tokens": "many"}, "max_new_tokens must be a whole number"),
    ({"text": "Hi", "seed": -1}, "seed must be a whole number"),
    (
        {"text": "Hi", "model": "gpt-9"},
        re.escape(f"model must be one of {list(NAMES)}"),
    ),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD)
def test_a_bad_value_gives_its_sentence_and_the_next_request_is_served(
    client: Client, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AppError, match=sentence):
        client.predict(**arguments, api_name="/generate")
    assert client.predict("Hi", "tiny", 1, api_name="/generate")["text"].startswith("Hi")


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([], "from 1 to 8 texts; got 0"),
        (["a"] * 9, "from 1 to 8 texts; got 9"),
        (["a", ""], "the text is empty"),
        ("a single string", "must be a list of strings; got str"),
        (["a", 3], "must be a string; got int"),
    ],
)
def test_a_bad_batch_gives_its_sentence(client: Client, texts: Any, sentence: str) -> None:
    with pytest.raises(AppError, match=sentence):
        client.predict(texts, api_name="/batch")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("decoder.9.self", 0), "no record of site decoder.9.self"),
        (("nowhere", 0), "a site is written STACK.LAYER.KIND"),
        (("decoder.0.self", 3), "head must be a whole number from 0 to 2"),
        (("decoder.0.self", 0, 1), "row must be a whole number from 0 to 0"),
    ],
)
def test_a_place_that_is_not_there_gives_its_sentence(
    client: Client, arguments: tuple[Any, ...], sentence: str
) -> None:
    run = client.predict("Hi", api_name="/trace")["run"]
    with pytest.raises(AppError, match=sentence):
        client.predict(run, *arguments, api_name="/attention")


def test_a_packed_head_and_packed_positions_hold_the_same_numbers(client: Client) -> None:
    run = client.predict("Hi there", "tiny", 2, api_name="/generate")["run"]
    for api_name, where, names in (
        ("/attention", ("decoder.1.self", 2, 0), ("scores", "weights", "allowed")),
        ("/positions", ("decoder",), ("matrix",)),
    ):
        listed = client.predict(run, *where, api_name=api_name)
        packed = client.predict(run, *where, packed=True, api_name=api_name)
        for name in names:
            sent = packed[name]
            flat = np.frombuffer(base64.b64decode(sent["base64"]), sent["dtype"])
            assert flat.reshape(sent["shape"]).tolist() == listed[name]
        assert packed | dict.fromkeys(names) == listed | dict.fromkeys(names)


def test_a_large_matrix_is_given_packed_or_not_at_all(client: Client) -> None:
    text = "Once upon a time a little fox met a bird. " * 16
    run = client.predict(text, "stories", api_name="/trace")
    side = len(run["ids"])
    assert side > 128
    told = rf"{side**2:,} numbers are too many for nested lists; allowed: at most 16,384, or pack"
    with pytest.raises(AppError, match=told):
        client.predict(run["run"], api_name="/attention")
    packed = client.predict(run["run"], packed=True, api_name="/attention")
    assert packed["weights"]["shape"] == [side, side]
    with pytest.raises(AppError, match="packed must be true or false; got 1"):
        client.predict(run["run"], packed=1, api_name="/attention")


def test_an_unknown_run_gives_its_sentence(client: Client) -> None:
    with pytest.raises(AppError, match="no longer keeps this run"):
        client.predict("guess", api_name="/attention")


@pytest.mark.parametrize(
    "text", ["🦊💃🌙", "\x00\x01\x02", "<script>alert(1)</script>", "{{value}}"]
)
def test_odd_text_is_read_as_it_is(client: Client, text: str) -> None:
    got = client.predict(text, "tiny", 3, api_name="/generate")
    assert got["text"].startswith(text)


def test_translate_gives_each_text_the_search_it_gets_alone(client: Client, server: Server) -> None:
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


def test_a_translated_batch_is_padded_on_both_sides(client: Client, server: Server) -> None:
    texts = ["The fox.", "The dog ran to the park."]
    got = client.predict(texts, "tiny-translator", api_name="/batch")
    batch = server.translator.translate_batch(texts, max_new_tokens=200)
    assert batch.target_ids is not None
    assert got["translations"] == list(batch.outputs)
    assert got["target_ids"] == batch.target_ids.tolist()
    head = client.predict(got["run"], "decoder.0.cross", 0, 0, api_name="/attention")
    n_source = sum(got["is_token"][0])
    assert all(not any(row[n_source:]) for row in head["allowed"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"texts": ["Hi", " "]}, "text 1 of 2, counted from 0: the text is empty"),
        ({"texts": ["Hi"], "beams": 99}, "beams must be a whole number from 1 to 16; got 99"),
        ({"texts": ["Hi"], "length_penalty": 9}, "length_penalty must be a number from 0 to 5"),
        ({"texts": ["Hi"], "model": "tiny"}, "translating needs an encoder-decoder; tiny is"),
        ({"texts": ["word " * 60]}, "tokens long; tiny-translator reads at most 40"),
    ],
)
def test_a_bad_translation_gives_its_sentence(
    client: Client, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AppError, match=sentence):
        client.predict(**{"model": "tiny-translator", **arguments}, api_name="/translate")


def test_only_an_encoder_alone_fills_in(client: Client) -> None:
    with pytest.raises(AppError, match=r"only an encoder alone .*; tiny is decoder"):
        client.predict("The [MASK] ran.", "tiny", api_name="/fill")


@pytest.mark.parametrize("text", ["🦊💃🌙", "Ça va où ?", "漢字かな", "\x00\x01", "<b>x</b>"])
def test_odd_sources_are_translated_or_refused_but_never_break(client: Client, text: str) -> None:
    (got,) = client.predict([text], "tiny-translator", 2, 1.0, 5, api_name="/translate")
    assert len(got["steps"]) <= 5
    assert "".join(got["source_tokens"]).endswith("<|endoftext|>")


def test_a_view_is_asked_by_its_declaration(client: Client) -> None:
    listed = client.predict(api_name="/views")
    (declared,) = [
        picture
        for view in listed
        for picture in view["pictures"]
        if picture["name"] == "candidates"
    ]
    assert [parameter["name"] for parameter in declared["parameters"]] == ["step"]
    run = client.predict("Once upon a time", max_new_tokens=3, api_name="/generate")["run"]
    got = client.predict("candidates", run, {"step": 1}, api_name="/view")
    assert got["figure"]["data"][0]["type"] == "bar"
    assert got["window"][1] - got["window"][0] >= 1
    numbers = client.predict("worked", run, {"query": 0}, api_name="/view")
    assert sum(numbers["weights"]) == pytest.approx(1, abs=1e-5)
    with pytest.raises(AppError, match=r"step must be a whole number from 0; got 'x'"):
        client.predict("candidates", run, {"step": "x"}, api_name="/view")
    with pytest.raises(AppError, match="picture must be one of"):
        client.predict("nothing", run, None, api_name="/view")
