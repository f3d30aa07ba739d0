"""A text in which words are hidden, as people type it: [MASK]."""

from __future__ import annotations

from transformer.tokenizer import Tokenizer

HIDDEN = "[MASK]"


def hidden_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """What an encoder alone reads of a text: the token that hides for each [MASK], which takes the
    space before it along, as a token of ours holds it.

    As `Tokenizer.prompt` where the tokenizer has no such token or the text no [MASK].
    """
    if tokenizer.mask_id is None or HIDDEN not in text:
        return tokenizer.prompt(text)
    before, behind = around(tokenizer)
    *pieces, last = text.split(HIDDEN)
    ids: list[int] = []
    for piece in pieces:
        ids += [*_encoded(tokenizer, piece.removesuffix(" ")), tokenizer.mask_id]
    return [*before, *ids, *_encoded(tokenizer, last), *behind]


def around(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids that a prompt has before and behind those of its text."""
    whole, part = tokenizer.prompt("a"), tokenizer.encode("a")
    start = next(at for at in range(len(whole)) if whole[at : at + len(part)] == part)
    return whole[:start], whole[start + len(part) :]


def _encoded(tokenizer: Tokenizer, piece: str) -> list[int]:
    return tokenizer.encode(piece) if piece else []
