"""Endpoints that alter the network, and what a text costs, against the Python calls."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError
from serving import Server

from transformer.analysis.ablation import head_importance, next_token
from transformer.analysis.held_out import broken
from transformer.analysis.logit_lens import surprise
from transformer.analysis.patching import patch_effect

TEXT = "The dog ran"
SILENCE = {"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0, 2]}
SETTINGS = {"max_new_tokens": 8, "interventions": [SILENCE]}


def test_generate_and_trace_alter_the_network_for_their_run_alone(
    client: Client, server: Server
) -> None:
    got = client.predict(TEXT, **SETTINGS, api_name="/generate")
    run = server.model.generate(TEXT, **SETTINGS)
    assert got["ids"] == list(run.ids)
    head = client.predict(got["run"], "decoder.1.self", 1, api_name="/attention")
    torch.testing.assert_close(
        torch.tensor(head["weights"]),
        run.trace["decoder.1.self"].pattern[0, 1],
        atol=1e-5,
        rtol=0,
    )
    intact = client.predict(TEXT, max_new_tokens=8, api_name="/generate")
    assert intact["ids"] == list(server.model.generate(TEXT, max_new_tokens=8).ids)
    read = client.predict(TEXT, interventions=[SILENCE], api_name="/trace")
    assert read["tokens"] == list(run.tokens[: run.n_prompt])


def test_taken_tokens_come_first(client: Client, server: Server) -> None:
    step = server.model.generate(TEXT, max_new_tokens=3).steps[0]
    taken = [step.candidates[1].id]
    got = client.predict(TEXT, max_new_tokens=5, forced_tokens=taken, api_name="/generate")
    run = server.model.generate(TEXT, max_new_tokens=5, forced_tokens=taken)
    assert got["ids"] == list(run.ids)
    assert got["ids"][got["n_prompt"]] == taken[0] != step.token


def test_importance_and_next_token_are_those_of_the_run(client: Client, server: Server) -> None:
    got = client.predict(TEXT, **SETTINGS, api_name="/generate")
    run = server.model.generate(TEXT, **SETTINGS)
    place = len(run.ids) - 2
    importance = client.predict(got["run"], place, "mean", api_name="/importance")
    wanted = head_importance(server.model, run, place, "mean")
    change = torch.tensor(importance["change"]["decoder self"])
    torch.testing.assert_close(change, wanted.change["decoder", "self"], atol=1e-4, rtol=0)
    assert importance["token"] == run.labels[place]
    foreseen = client.predict(got["run"], place, api_name="/next_token")
    both = next_token(server.model, run, place)
    assert [candidate["id"] for candidate in foreseen["candidates"]] == list(both.ids)
    for name, expected in (("intact", both.intact), ("altered", both.intervened)):
        shown = [candidate[name] for candidate in foreseen["candidates"]]
        assert shown == pytest.approx(expected.tolist(), abs=1e-5)


def test_patching_is_that_of_the_run(client: Client, server: Server) -> None:
    got = client.predict(TEXT, api_name="/trace")
    run = server.model.trace(TEXT)
    place = len(run.ids) - 1
    shown = client.predict(got["run"], "The cat ran", place, api_name="/patching")
    wanted = patch_effect(server.model, run, "The cat ran", place)
    assert (shown["target"], shown["before"]) == (
        wanted.target,
        pytest.approx(wanted.before, abs=1e-4),
    )
    torch.testing.assert_close(torch.tensor(shown["change"]), wanted.change, atol=1e-4, rtol=0)


def test_breaks_say_why_and_what_they_cost(client: Client, server: Server) -> None:
    shown = client.predict(api_name="/breaks")
    wanted = broken(server.model)
    assert [(each["what"], each["why"]) for each in shown] == [(b.what, b.why) for b in wanted]


def test_a_text_is_scored_token_by_token(client: Client, server: Server) -> None:
    got = client.predict(TEXT, api_name="/score")
    run = server.model.trace(TEXT)
    bits = [bit for bit in surprise(server.model, run) if bit is not None]
    assert got["total_bits"] == pytest.approx(sum(bits), rel=1e-4)
    assert got["bits_per_byte"] == pytest.approx(sum(bits) / len(TEXT.encode()), rel=1e-4)
    assert got["tokens"] == list(run.tokens)
    with pytest.raises(AppError, match="a target is for a translator"):
        client.predict(TEXT, target="Le chien", api_name="/score")


def test_a_translator_scores_a_target_and_its_end(client: Client, server: Server) -> None:
    model = server.translator
    got = client.predict("Hello", model.name, "Le chat", api_name="/score")
    target = [*model.tokenizer.encode("Le chat"), model.tokenizer.end_id]
    source, start = model.prepare("Hello")
    with torch.inference_mode():
        logits = model.network(torch.tensor([source]), torch.tensor([[*start, *target[:-1]]]))[0]
    nats = torch.nn.functional.cross_entropy(logits, torch.tensor(target), reduction="sum")
    assert got["total_bits"] == pytest.approx(
        nats.item() / torch.tensor(2.0).log().item(), rel=1e-3
    )


def test_positions_are_the_networks_own(client: Client, server: Server) -> None:
    got = client.predict(TEXT, api_name="/trace")
    shown = client.predict(got["run"], "decoder", api_name="/positions")
    matrix = server.model.trace(TEXT).position_matrices["decoder"]
    torch.testing.assert_close(torch.tensor(shown["matrix"]), matrix, atol=1e-5, rtol=0)
    with pytest.raises(AppError, match=r"stack must be one of \['decoder'\]; got 'encoder'"):
        client.predict(got["run"], "encoder", api_name="/positions")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"interventions": [{**SILENCE, "layer": 9}]}, "this network has no site decoder.9.self"),
        ({"interventions": [{"type": "explode"}]}, "an intervention's type must be one of"),
        ({"forced_tokens": [10**9]}, "a forced token must be an id from 0 to"),
        ({"interventions": [SILENCE] * 65}, "at most 64 interventions; got 65"),
    ],
)
def test_a_mistake_gets_the_sentence_that_python_gives(
    client: Client, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AppError, match=sentence):
        client.predict(TEXT, max_new_tokens=3, **settings, api_name="/generate")


def test_plain_http_submits_and_polls(server: Server) -> None:
    address = f"{server.url.rstrip('/')}/gradio_api/call/score"
    request = urllib.request.Request(
        address,
        data=json.dumps({"data": [TEXT, server.model.name, ""]}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{address}/{event}", timeout=20) as stream:
        lines = stream.read().decode().splitlines()
    assert lines[0] == "event: complete"
    (got,) = json.loads(lines[1].removeprefix("data: "))
    assert got["tokens"] == list(server.model.trace(TEXT).tokens)
