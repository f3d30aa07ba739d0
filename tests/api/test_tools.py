"""The endpoints as tools over MCP, asked by a real client; nothing else becomes a tool."""

import asyncio
import json
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pytest
import torch
from kit import aio
from kit.client import ENDPOINTS
from kit.serving import running
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from transformer.server.http.limits import MAX_CALLS, MAX_VISITOR_RUNS
from transformer.server.programs import api as tools

# On a machine that does much else, the framework's own request to itself runs out of time, and its
# tool then fails without a word.
pytestmark = pytest.mark.slow

TRIES = 4


def in_session(ask: Callable[[ClientSession], Any]) -> Any:
    async def session() -> Any:
        async with (
            streamable_http_client(f"{running().url}gradio_api/mcp/") as (incoming, outgoing, _),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            return await ask(session)

    return aio.run(session())


def asked(*calls: tuple[str, dict[str, Any]]) -> list[types.CallToolResult]:
    """What a client of the protocol gets for these calls, one after the other."""

    async def ask(session: ClientSession) -> list[types.CallToolResult]:
        return [await session.call_tool(name, arguments) for name, arguments in calls]

    return in_session(ask)


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def values_of(result: types.CallToolResult) -> Any:
    assert not result.isError, text_of(result)
    return json.loads(text_of(result))


def test_exactly_the_endpoints_are_tools_with_descriptions():
    listed = in_session(ClientSession.list_tools).tools
    assert {tool.name for tool in listed} == set(ENDPOINTS)
    for tool in listed:
        assert tool.description
        assert tool.description.endswith((".", ". "))
        assert not any(sign in tool.description for sign in ("  ", "Args:", "None)"))
        for name, schema in tool.inputSchema["properties"].items():
            assert schema["description"], f"{tool.name}: {name}"


def test_a_refusal_is_the_endpoints_own_sentence_and_is_not_logged():
    before = len(running().log.read_text(encoding="utf-8"))
    calls = [
        ("generate", {"text": " "}, "empty_text: the text is empty: write something in it first"),
        (
            "generate",
            {"text": "a", "model": "gpt"},
            "unknown_choice: model must be one of ",
        ),
        ("attention", {"run": "guessed"}, "run_expired: the server no longer keeps this run"),
        ("no_such_tool", {}, "no_such_tool"),
    ]
    found = asked(*[(name, arguments) for name, arguments, _ in calls])
    for result, (name, _, sentence) in zip(found, calls, strict=True):
        assert result.isError, name
        assert sentence in text_of(result)
    written = running().log.read_text(encoding="utf-8")[before:]
    assert not [word for word in ("no_such_tool", "gpt", "guessed") if word in written]


def test_tool_runs_do_not_evict_each_other():
    texts = [f"Text {place} & <b>“bird”</b>" for place in range(MAX_VISITOR_RUNS + 2)]
    made = asked(*[("trace", {"text": text}) for text in texts])
    place = {"run": values_of(made[0])["run"], "site": "decoder.1.self", "head": 2}
    (head,) = map(values_of, asked(("attention", place)))
    weights = running().model.trace(texts[0]).trace["decoder.1.self"].pattern[0, 2]
    assert torch.tensor(head["weights"]).allclose(weights, atol=1e-5)


def test_calls_at_the_same_time_get_their_own_results_and_end():
    texts = [f"{place} fox" for place in range(MAX_CALLS // 2)]  # a session may have two under way

    async def one(text: str) -> dict[str, Any]:
        async def ask(session: ClientSession) -> Any:
            for _ in range(TRIES):
                made = await session.call_tool("generate", {"text": text})
                if not made.isError or text_of(made):
                    break
            return values_of(made)

        return await asyncio.to_thread(in_session, ask)

    async def all_of_them() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(one, texts))

    found = aio.run(all_of_them())
    alone = [list(running().model.generate(text, max_new_tokens=40).ids) for text in texts]
    assert [made["ids"] for made in found] == alone


@pytest.mark.parametrize("version", [None, "1.28.0", "2.3.0"])
def test_without_the_package_the_option_is_refused_in_one_sentence(version, monkeypatch):
    def installed(name: str) -> str:
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(tools.metadata, "version", installed)
    sentence = (
        rf"needs the package mcp>=1.28.1,<2; installed: {version or 'none'}; allowed: pip install"
    )
    with pytest.raises(ValueError, match=sentence):
        tools.check_tools()
