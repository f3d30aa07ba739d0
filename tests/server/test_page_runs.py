"""Requests of the page: made again on any server, or refused in one translated line."""

import json
import threading
from typing import Any

import pytest
import torch
from kit import aio
from kit.client import CONTROLS, FORBIDDEN, SILENCED
from kit.hf_folders import byte_fallback, change, write
from kit.serving import CHAT_TEMPLATE, tiny_model, tiny_translator

from transformer import Model, load
from transformer.checks import InvalidRequest, check_number
from transformer.inference import deadline
from transformer.messages import speaking
from transformer.server.fields import WORDS, request_of_run, settings_of
from transformer.server.http import slots
from transformer.server.http.errors import MAX_SENTENCE, RunExpired, public_error
from transformer.server.http.guard import language_of
from transformer.server.http.limits import MAX_MADE
from transformer.server.kept.page_models import first_controls
from transformer.server.kept.page_runs import Regenerator, run_facts, run_of
from transformer.server.kept.service import (
    Service,
    check_input,
    check_interventions,
    check_texts,
    lines_of,
)
from transformer.server.page.presses import read_batch, works
from transformer.server.page.resources import resource_app


@pytest.fixture(scope="module")
def models(tiny_model: Model, tiny_encoder: Model) -> list[Model]:
    return [tiny_model, tiny_translator(), tiny_encoder]


@pytest.fixture(scope="module")
def here(models: list[Model]) -> Service:
    return Service(models)


@pytest.fixture
def there(models: list[Model]) -> Service:
    """Another server with the same models."""
    return Service(models)


GOOD = {"model": "tiny", "text": "Hello", "method": "greedy", "max_new_tokens": 3}
REQUESTS = {
    "sampled": ("tiny", {"temperature": 0.83, "top_k": 7, "top_p": 0.95, "seed": 11}),
    "barely sampled": ("tiny", {"temperature": 0.012345678901234567, "seed": 2**32 - 1}),
    "greedy": ("tiny", {}),
    "altered": (
        "tiny", {"interventions": [SILENCED, FORBIDDEN], "forced_tokens": [40, 41], "seed": 3},
    ),
    "searched": ("tiny-translator", {"beams": 3, "length_penalty": 0.5}),
    "translated, altered": (
        "tiny-translator",
        {"interventions": [{**SILENCED, "kind": "cross"}], "forced_tokens": [44]},
    ),
    "read": ("tiny-encoder", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_runs_request_makes_the_same_tokens_and_weights_again(here, name):
    model, options = REQUESTS[name]
    text = "The fox & <b>bird</b>,\n1 % “à” 🦊 +"
    if options is None:
        text = "The fox &\n1 % à 🦊 +"  # an encoder refuses more than it reads
        run = here.read(model, text)
    else:
        run = here.generate(model, text, max_new_tokens=9, **options)
    again = run_of(here, json.loads(json.dumps(request_of_run(run))))
    assert again is not run
    assert (again.model, again.ids, again.labels) == (run.model, run.ids, run.labels)
    assert again.request.text == text
    assert again.request.interventions == run.request.interventions
    assert again.request.forced_tokens == run.request.forced_tokens
    for site, record in run.trace.records.items():
        assert torch.equal(again.trace[site].pattern, record.pattern)


def test_a_message_is_read_by_the_chat_template_where_asked_for(tmp_path):
    import transformers

    write(tmp_path / "llama", "llama", 1, tokenizer=byte_fallback)
    change(tmp_path / "llama" / "tokenizer_config.json", chat_template=CHAT_TEMPLATE)
    model, plain = load(tmp_path / "llama"), tiny_model()
    service = Service([model, plain])
    text = "Who is the black cat? </s>"
    asked = {"model": model.name, "text": text, "max_new_tokens": 2, "read_as": "chat"}
    run = run_of(service, asked)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "llama")
    messages = [{"role": "user", "content": text}]
    ids = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert run.ids[: run.n_prompt] == tuple(ids["input_ids"])
    facts = run_facts(run, "key", model)
    assert facts["text"] == text
    assert facts["request"]["read_as"] == "chat"
    assert run_of(service, facts["request"]).ids == run.ids
    as_text = run_of(service, asked | {"read_as": "text"})
    assert as_text.ids == run_of(service, asked | {"read_as": None}).ids != run.ids
    assert request_of_run(as_text, chats=True)["read_as"] == "text"
    assert first_controls(plain)["read_as"] is None
    with pytest.raises(ValueError, match="has no chat template"):
        run_of(service, asked | {"model": plain.name})
    with pytest.raises(ValueError, match="read_as must be one of"):
        run_of(service, asked | {"read_as": "poem"})


@pytest.mark.parametrize("hidden", [True, False])
def test_a_batch_is_read_again_as_it_was(here, there, hidden):
    for name in ("tiny", "tiny-translator"):
        asked = {"model": name, "lines": "The fox\nTom ran home", "bare": not hidden}
        key = read_batch(here, "me", asked)["batch"]["batch"]
        Regenerator(there).make({key: asked})
        first, again = here.store.batch(key), there.store.batch(key)
        assert first.labels == again.labels
        for site in first.trace.sites:
            assert first.trace[site].pattern.equal(again.trace[site].pattern)


def test_an_unknown_run_is_regenerated_from_its_request(here, there):
    run = here.generate("tiny", "The fox", max_new_tokens=4)
    key = here.store.put(run)
    request = {"run": key, "site": "decoder.1.self", "head": 1, "numbers": True}
    made = request | {"made": {key: run_facts(run, key, here.model("tiny"))["request"]}}
    app = resource_app(there)
    answers = (aio.answer(app, "heatmap", "POST", json=data) for data in (request, made, request))
    lost, first, again = answers
    assert (lost.status_code, first.status_code) == (410, 200)
    assert again.content == first.content  # it is kept there now
    assert there.store.run(key).ids == run.ids


def test_every_server_has_the_same_examples_and_opens_with_them(here, there):
    assert here.examples == there.examples
    for name, (run, _) in here.examples.items():
        assert run_of(there, {"model": name}) is there.store.run(run)


def test_the_example_of_another_server_is_made_beside_a_pages_run(there):
    ids = ("example-0123456789abcdef", "browser-0123456789abcd")
    Regenerator(there).make({ids[0]: {"model": "tiny"}, ids[1]: GOOD})
    assert there.store.has_each([*ids]) == [True, True]
    compare = {"run": ids[1], "other": ids[0]}
    assert aio.answer(resource_app(there), "compare", params=compare).status_code == 200


def test_a_busy_server_asks_the_page_to_retry_a_regeneration(there, monkeypatch):
    monkeypatch.setattr(slots, "MAX_THREADS_WAITING", 0)
    with pytest.raises(RunExpired, match="The server is busy with other requests"):
        Regenerator(there).make({"d" * 22: GOOD})


def test_an_abandoned_regeneration_keeps_nothing(there):
    gone = threading.Event()
    gone.set()
    with (
        deadline.until(deadline.Deadline(60, gone)),
        pytest.raises(ValueError, match="nobody waits"),
    ):
        Regenerator(there).make({"b" * 22: GOOD})
    assert not there.store.has("b" * 22)


NO_RUNS: list[tuple[Any, str]] = [
    ([], "must be an object of at most 3 runs"),
    ({f"{place:022}": GOOD for place in range(MAX_MADE + 1)}, "at most 3 runs"),
    ({"../../etc/passwd-aaaaaa": GOOD}, "by its id"),
    ({"c" * 22: 7}, "how it was made"),
    ({"c" * 22: GOOD | {"model": "none"}}, "model must be one of"),
    ({"c" * 22: {"text": "Hello"}}, "how it was made"),
    ({"c" * 22: GOOD | {"name": "x"}}, "a request takes"),
    ({"c" * 22: GOOD | {"max_new_tokens": 1_000_000_000}}, "max_new_tokens"),
    ({"c" * 22: GOOD | {"text": "x" * 3000}}, "at most 2,000 characters"),
    ({"c" * 22: {"model": "tiny", "lines": "a\n" * 9}}, "from 1 to 8 texts"),
    ({"c" * 22: {"model": "tiny", "lines": "a" * 16_001}}, "at most 16,000 characters"),
]


def test_an_invalid_regeneration_is_refused(there):
    for made, sentence in NO_RUNS:
        with pytest.raises(ValueError, match=sentence):
            Regenerator(there).make(made)
        assert not there.store.has("c" * 22)


def test_invalid_controls_are_refused():
    for changed, sentence in (
        ({"temperature": None}, "temperature is empty: give a number"),
        ({"max_new_tokens": None, "method": "greedy"}, "max_new_tokens is empty"),
        ({"method": ["sample"]}, "method must be one of"),
        ({"hooks": []}, "a request takes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            settings_of(CONTROLS | changed)


LONG = InvalidRequest(
    "too_long", "the text must have at most {most} characters; got {got}", most=2000, got=3.5
)


def test_an_error_is_translated_with_the_errors_and_numbers_in_it():
    outer = InvalidRequest(
        "too_long", "text {number} of {n_texts}, counted from 0: {error}",
        number=1, n_texts=8, error=LONG,
    )  # fmt: skip
    english = "text 1 of 8, counted from 0: the text must have at most 2,000 characters; got 3.5"
    assert public_error(outer) == {"detail": english, "code": "too_long"}
    with speaking("de"):
        assert "höchstens 2.000 Zeichen" in public_error(outer)["detail"]
        assert "3,5" in public_error(outer)["detail"]
        assert str(outer) == english


def test_the_page_calls_a_setting_by_its_label(here):
    with pytest.raises(InvalidRequest, match="temperature must be a number from 0 to") as raised:
        check_number("temperature", -1, 0, 10)
    assert public_error(raised.value, WORDS)["detail"].startswith("Temperature (0 = greedy) must")
    (line,) = works(here)["runs"](GOOD | {"max_new_tokens": None})
    assert line["status"] == {"kind": "error", "text": "New tokens is empty: give a number"}


def test_a_batch_of_no_lines_is_refused(here):
    (line,) = works(here)["batches"]({"model": "tiny"})
    sentence = "the text is empty: write something in it first"
    assert line == {"status": {"kind": "error", "text": sentence}}


def test_what_one_request_may_ask_ends_where_the_limits_say(here):
    def stream(n: int) -> None:
        here.stream("tiny", "The fox", max_new_tokens=n)

    silence = [{"type": "ablate", "stack": "decoder", "layer": 0, "heads": [0]}]
    for check, allowed, beyond, sentence in (
        (check_input, "x" * 2_000, "x" * 2_001, "at most 2,000 characters; got 2,001"),
        (check_texts, ["a"] * 8, ["a"] * 9, "from 1 to 8 texts; got 9"),
        (check_texts, ["a"], [], "from 1 to 8 texts; got 0"),
        (lines_of, "\n".join(["x" * 1_000, " ", ""] * 8), "a\n" * 9, "from 1 to 8 texts; got 9"),
        (check_interventions, silence * 64, silence * 65, "at most 64 interventions; got 65"),
        (stream, 200, 201, "a whole number from 1 to 200; got 201"),
        (stream, 1, 0, "a whole number from 1 to 200; got 0"),
    ):
        check(allowed)
        with pytest.raises(ValueError, match=sentence):
            check(beyond)
    assert lines_of("a\n\n b \n") == ["a", " b "]


def test_any_error_is_one_short_line_with_a_code():
    assert public_error(ValueError("a\nb  c")) == {"detail": "a b c", "code": "invalid_request"}
    long = public_error(ValueError("start " + "x" * 10_000 + " end"))["detail"]
    assert long.startswith("start x")
    assert long.endswith("x end")
    assert len(long) == MAX_SENTENCE + 3
    for length, n_said in ((MAX_SENTENCE, MAX_SENTENCE), (MAX_SENTENCE + 1, MAX_SENTENCE + 3)):
        assert len(public_error(ValueError("x" * length))["detail"]) == n_said
    assert public_error(RecursionError("maximum depth"))["code"] == "too_deep"


def test_a_program_gets_english_for_any_accept_language():
    for path, query, language in (
        ("/", b"", "fr"),
        ("/", b"__lang=de", "de"),
        ("/resources/heatmap", b"", "en"),
        ("/resources/heatmap", b"__lang=de", "de"),
        ("/resources/runs", b"__lang=zh-CN", "zh"),
        ("/gradio_api/call/generate", b"", "en"),
        ("/viz/gradio_api/call/generate", b"", "en"),
    ):
        scope = {
            "path": path, "query_string": query, "headers": [(b"accept-language", b"fr")],
            "root_path": "/viz" if path.startswith("/viz") else "",
        }  # fmt: skip
        assert language_of(scope) == language
