"""A conversation as the text that a chat model was trained with, by the template in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer.checks import InvalidCall, shortened, text_of

Message = Mapping[str, Any]
FILE = "chat_template.jinja"
# Written behind the last message, so that its end is found in the text.
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template of messages, rendered in Jinja's sandbox as transformers renders it.

    special: what the template may name, as "bos_token" and its text.
    """

    source: str
    special: Mapping[str, str] = field(default_factory=dict)

    def render(self, messages: Sequence[Message]) -> str:
        """The conversation as text, up to where the model is to write.

        If the last message is the assistant's, it is to be continued; otherwise the model's turn
        begins. Raises ValueError for values that are not messages, and in the template's own words
        for those that it refuses.
        """
        from jinja2 import TemplateError

        check_messages(messages)
        chat = [dict(message) for message in messages]
        continued = chat[-1]["role"] == "assistant"
        if continued:
            chat[-1]["content"] += _TAG
        try:
            text = str(
                self._compiled.render(
                    messages=chat, tools=None, documents=None, add_generation_prompt=not continued,
                    **self.special,
                )
            )  # fmt: skip
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise InvalidCall(
                "invalid_messages",
                "the model's chat template refuses these messages: {error}",
                error=str(error) or type(error).__name__,
            ) from error
        if not continued:
            return text
        end = text.rfind(_TAG.strip())
        if end < 0:
            raise InvalidCall(
                "invalid_messages",
                "the model's chat template leaves out the assistant's last message, so it cannot "
                "be continued; allowed: a last message of the user",
            )
        kept = text[:end]
        return kept if text.startswith(_TAG, end) else kept.rstrip()

    @cached_property
    def _compiled(self) -> Any:
        return _environment().from_string(self.source)


def check_messages(messages: Any) -> None:
    """Raise ValueError unless these are messages, each with a role and a text."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence) or not messages:
        raise ValueError(
            'messages are a list such as [{"role": "user", "content": "Hello"}]; got '
            f"{shortened(messages)}"
        )
    for message in messages:
        parts = message if isinstance(message, Mapping) else {}
        if not all(isinstance(parts.get(name), str) for name in ("role", "content")):
            raise ValueError(
                f'each message has a "role" and a "content", both texts; got {shortened(message)}'
            )


def read_template(folder: Path, settings: Mapping[str, Any]) -> ChatTemplate | None:
    """The template of a folder: chat_template.jinja, else the one in `settings`, those of
    tokenizer_config.json; None without one, or for one that Jinja cannot read."""
    from jinja2 import TemplateError

    try:
        parts = json.loads(text_of(folder / "special_tokens_map.json"))
    except (OSError, ValueError, RecursionError):
        parts = {}
    try:
        source: Any = text_of(folder / FILE)
    except (OSError, ValueError):
        source = settings.get("chat_template")
    if isinstance(source, list):  # several, by name
        named = {
            template.get("name"): template.get("template")
            for template in source
            if isinstance(template, dict)
        }
        source = named.get("default")
    if not isinstance(source, str):
        return None
    tokens = {**(parts if isinstance(parts, dict) else {}), **settings}
    names = {
        name: str(value["content"] if isinstance(value, dict) else value)
        for name, value in tokens.items()
        if name.endswith("_token") and (isinstance(value, str) or _is_token(value))
    }
    template = ChatTemplate(source, names)
    try:
        _ = template._compiled
    except TemplateError:
        return None
    return template


def _is_token(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def _environment() -> Any:
    """Jinja's sandbox with what templates of transformers may use."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """{% generation %}, which marks what the assistant wrote, and changes no text."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    class Variables(Namespace):
        """A template's own variables, none of which reaches Python's attributes."""

        def __setitem__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                raise TemplateError(f"a template may not set {name}")
            super().__setitem__(name, value)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["namespace"] = Variables
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment
