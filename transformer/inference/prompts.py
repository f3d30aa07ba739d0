"""Prompts as people have them, as requests: a text, ids, a pair of texts, or a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from transformer.checks import InvalidCall, check_each, check_text, check_texts, is_whole, shortened
from transformer.inference.loaded import LoadedModel
from transformer.model.config import ModelConfig
from transformer.runs.request import Request, request_of
from transformer.tokenizer import Tokenizer, pair_of
from transformer.tokenizer.chat import Message

Ids = Sequence[int] | Tensor | NDArray[np.int64]
Encoding = Mapping[str, Any]
Prompt = str | Ids | Encoding
Prompts = Sequence[str] | Sequence[Sequence[int]] | Sequence[Tensor] | Tensor | NDArray[np.int64]
Conversation = Sequence[Message]
MAX_IDS = 1_000_000


def is_batch(prompt: Any, messages: Any = None) -> bool:
    """Whether these are the prompts of several texts."""
    if messages is not None:
        return isinstance(messages, Sequence) and bool(messages) and _is_listed(messages[0])
    if isinstance(prompt, Mapping):
        prompt = prompt.get("input_ids")
    if isinstance(prompt, Tensor | np.ndarray):
        return prompt.ndim > 1
    return _is_listed(prompt) and not (bool(prompt) and all(map(is_whole, prompt)))


def requests_for(
    model: LoadedModel,
    prompts: Any,
    settings: Mapping[str, Any],
    *,
    messages: Sequence[Conversation] | None = None,
    text_pair: Sequence[str] | None = None,
) -> list[Request]:
    """A request for each of several prompts. Raises ValueError that says which is wrong."""
    rows = _rows(model, prompts) if messages is None else list(messages)
    pairs: Sequence[Any] = [None] * len(rows)
    if text_pair is not None:
        check_texts(text_pair)
        if len(text_pair) != len(rows):
            raise ValueError(f"each text needs one text_pair; got {len(text_pair)} for {len(rows)}")
        pairs = text_pair
    requests: list[Request] = []
    both = list(zip(rows, pairs, strict=True))

    def add(row: tuple[Any, Any]) -> None:
        prompt = {"messages": row[0]} if messages is not None else {"text_pair": row[1]}
        text = None if messages is not None else row[0]
        requests.append(request_for(model, text, settings, **prompt))

    check_each(both, add)
    if len({bool(request.input_ids) for request in requests}) > 1:
        raise ValueError("a batch is of texts or of ids; got both")
    return requests


def request_for(
    model: LoadedModel,
    prompt: Any,
    settings: Mapping[str, Any],
    *,
    messages: Conversation | None = None,
    text_pair: str | None = None,
) -> Request:
    """The request of one prompt.

    prompt: a text, ids, or what a tokenizer returned: input_ids, with token_type_ids and an
    attention_mask where it has them. messages: instead of the text, by the model's chat template.
    text_pair: the second text of a pair. Raises ValueError for anything else.
    """
    if messages is not None:
        if prompt is not None or text_pair is not None:
            raise ValueError("a prompt is a text or messages; got both")
        text, ids = conversation(model, messages)
        return request_of(text, {**settings, "input_ids": ids})
    if text_pair is not None:
        text, ids, types = _pair(model, prompt, text_pair)
        return request_of(text, {**settings, "input_ids": ids, "token_type_ids": types})
    if isinstance(prompt, str):
        return request_of(prompt, settings)
    if isinstance(prompt, Mapping) or _is_listed(prompt) or isinstance(prompt, Tensor | np.ndarray):
        ids, types = _given(model, prompt)
        fields = {"input_ids": ids} | ({"token_type_ids": types} if types else {})
        return request_of(text_of_ids(model.tokenizer, ids), {**settings, **fields})
    check_text(prompt)  # raises
    raise AssertionError


def text_of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Ids as the text of a request: without their special tokens, unless there is nothing else."""
    text = tokenizer.decode(ids)
    return text if text.strip() else "".join(tokenizer.labels(ids))


def conversation(model: LoadedModel, messages: Conversation) -> tuple[str, list[int]]:
    """Messages as the model reads them, text and ids, by its chat template. Raises ValueError where
    it has none, or for messages that it refuses."""
    template = model.tokenizer.chat_template
    if template is None:
        raise InvalidCall(
            "no_chat_template",
            "{name} has no chat template: its folder's tokenizer_config.json and "
            "chat_template.jinja name none; allowed: a text",
            name=model.name,
        )
    text = template.render(messages)
    return text, model.tokenizer.encode_chat(text)


def _pair(model: LoadedModel, first: Any, second: Any) -> tuple[str, list[int], tuple[int, ...]]:
    for text in (first, second):
        check_text(text)
    if model.config.family != "encoder":
        raise ValueError(
            f"a pair of texts is for an encoder alone; {model.name} is {model.config.family}"
        )
    ids, types = pair_of(model.tokenizer, first, second)
    return f"{first}\n{second}", ids, tuple(types) if model.config.n_token_types > 1 else ()


def _given(model: LoadedModel, prompt: Any) -> tuple[list[int], tuple[int, ...]]:
    """The ids of one text, and their types, without padding."""
    if not isinstance(prompt, Mapping):
        return _listed_ids("ids", prompt, model.config), ()
    if "role" in prompt:
        raise ValueError("a conversation is given by its name: messages=[...]")
    if "input_ids" not in prompt:
        raise ValueError(f"a tokenizer's output has input_ids; got {sorted(map(str, prompt))}")
    ids = _listed_ids("input_ids", prompt["input_ids"], model.config)
    kept = [True] * len(ids)
    if (mask := prompt.get("attention_mask")) is not None:
        kept = [bool(each) for each in _flat("attention_mask", mask)]
    types: list[int] = []
    if model.config.n_token_types > 1 and prompt.get("token_type_ids") is not None:
        types = _flat("token_type_ids", prompt["token_type_ids"])
    for name, row in (("attention_mask", kept), ("token_type_ids", types or ids)):
        if len(row) != len(ids):
            raise ValueError(f"{name} needs a number for each of {len(ids)} ids; got {len(row)}")
    ids = [index for index, keep in zip(ids, kept, strict=True) if keep]
    return ids, tuple(each for each, keep in zip(types, kept, strict=False) if keep)


def _rows(model: LoadedModel, prompts: Any) -> list[Any]:
    """The prompts of a batch, one per text."""
    if isinstance(prompts, Mapping):
        names = ("input_ids", "attention_mask", "token_type_ids")
        columns = {name: prompts[name] for name in names if prompts.get(name) is not None}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(prompts, Tensor | np.ndarray):
        rows, padding = list(prompts), model.config.padding_id
        if prompts.ndim == 2 and len(rows) > 1 and padding is not None:
            _check_no_padding(rows, padding)
        return rows
    if not isinstance(prompts, Sequence) or isinstance(prompts, str) or not prompts:
        check_texts(prompts)
    return list(prompts)


def _check_no_padding(rows: Sequence[Any], padding: int) -> None:
    """Raise ValueError for ids that begin or end with padding, which would be read as text."""
    for number, row in enumerate(rows):
        if padding in (int(row[0]), int(row[-1])):
            raise ValueError(
                f"row {number} of the ids has padding, {padding}, which would be read as text; "
                "allowed: a list of ids a text, or what a tokenizer returned, with its "
                "attention_mask"
            )


def _listed_ids(name: str, got: Any, config: ModelConfig) -> list[int]:
    ids = _flat(name, got)
    if not ids:
        raise ValueError(f"{name}: at least one id is needed; got none")
    if wrong := [index for index in ids if not 0 <= index < config.vocab_size]:
        raise ValueError(f"{name} must be from 0 to {config.vocab_size - 1}; got {wrong[0]}")
    return ids


def _flat(name: str, got: Any) -> list[int]:
    """Whole numbers: a list, an array or a tensor of one dimension; else raise ValueError."""
    values = got.tolist() if isinstance(got, Tensor | np.ndarray) else got
    if not _is_listed(values) or len(values) > MAX_IDS or not all(map(is_whole, values)):
        shape = f" of shape {tuple(got.shape)}" if isinstance(got, Tensor | np.ndarray) else ""
        raise ValueError(
            f"{name} must be whole numbers, a list, an array or a tensor (T,); got "
            f"{type(got).__name__}{shape or ' ' + shortened(got)}"
        )
    return [int(value) for value in values]


def _is_listed(got: Any) -> bool:
    return isinstance(got, Sequence) and not isinstance(got, str | bytes)
