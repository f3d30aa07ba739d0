"""Activations of another text patched into a run, one layer and position at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer.analysis.text_before import TextBefore, check_made_by, in_parts
from transformer.checks import InvalidRequest, check_choice, check_whole, shortened
from transformer.inference.loaded import LoadedModel
from transformer.inference.progress import progress_bar
from transformer.inference.request_hooks import activations_of
from transformer.interventions.checks import check_site
from transformer.interventions.descriptions import PARTS
from transformer.interventions.hooks import ActivationCache, Patched, Replacement
from transformer.model.hooks import Point, unchanged
from transformer.model.sites import Site
from transformer.model.transformer import EncoderDecoder
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PatchEffect:
    """The effect of another run's activations on the next token, patched in at one position at a
    time.

    target: the id whose log-probability is measured, None with the caller's own metric; before: in
    this run; other: in the other run, after its last token. change: (L, T), what a patch at (layer,
    position) adds to it; or (L, H, T), for each head alone.
    """

    target: int | None
    before: float
    other: float
    change: Tensor


@torch.no_grad()
def patch_effect(
    model: LoadedModel,
    run: Run,
    other: str,
    position: int,
    *,
    stack: str = "decoder",
    part: str = "resid_post",
    kind: str = "self",
    target: int | None = None,
    metric: Callable[[Tensor], Tensor] | None = None,
    by_head: bool = False,
    progress: bool = True,
) -> PatchEffect:
    """Patch the activations of another text into the run, one layer and position at a time.

    position: the token of the run's ids that is predicted; only the text before it is read. target:
    the id to look at; None = the likeliest one after the other text (of a translator: after the
    same target tokens, from the other source). metric: what is measured in place of a
    log-probability, a function of logits (N, V), one row per patch, that returns (N,). by_head:
    part "z" of one head at a time. progress: whether a bar is shown on stderr. Raises ValueError
    for a layer or position that the network does not have.
    """
    check_choice("part", part, PARTS if not by_head else ["z"])
    check_site(Site(stack, 0, kind), run.config)
    text = TextBefore.of(model, run, position)
    theirs = activations_of(model, other, text.ids)
    there = _after(model, theirs)
    if target is not None:
        target = check_whole("target", target, 0, there.shape[1] - 1)
    wanted: int | None = None
    if metric is None:
        wanted = int(there.argmax()) if target is None else target
    elif not callable(metric):
        raise ValueError(f"a metric is a function of logits (N, V); got {shortened(metric)}")
    elif target is not None:
        raise ValueError("a target is of the usual metric; got metric= and target=; allowed: one")
    measured = partial(_measured, wanted if metric is None else metric)
    before = measured(text.logits([unchanged]))
    patches = _one_at_a_time(model, theirs, text, Point(part, stack, 0, kind), by_head)
    n_layers = run.config.n_layers_of(stack)
    sizes = (n_layers, *([run.config.n_heads] if by_head else []))
    rows = []
    with progress_bar("patching", n_layers, progress, unit="layer") as bar:
        for patch, count in patches:
            rows.append(measured(text.logits([patch], count)) - before)
            bar.update(patch.point.layer - bar.n)
    return PatchEffect(
        target=wanted,
        before=before.item(),
        other=measured(there).item(),
        change=torch.cat(rows).view(*sizes, -1).cpu(),
    )


def _measured(of: int | Callable[[Tensor], Tensor] | None, logits: Tensor) -> Tensor:
    """(N,): the log-probability of an id, or the caller's metric, of logits (N, V)."""
    if not callable(of):
        return logits.log_softmax(dim=-1)[:, of]
    values = of(logits)
    if not isinstance(values, Tensor) or values.shape != logits.shape[:1]:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(
            "a metric is a function of logits (N, V), a row a patch, that returns a tensor (N,); "
            f"of {tuple(logits.shape)} it returned {got}"
        )
    return values.float()


@torch.no_grad()
def most_changed(model: LoadedModel, run: Run, other: str) -> int:
    """The position of the run's own token that another source makes least likely, of all that the
    network predicted: ln p drops most there. Raises ValueError if it predicted none.
    """
    check_made_by(model, run)
    network = model.network
    assert isinstance(network, EncoderDecoder)
    ids = list(run.ids[: run.config.output_max_len + 1])
    if len(ids) < 2:
        raise InvalidRequest("no_prediction", "the network predicted no token in this run")

    def told(source: list[int]) -> Tensor:
        logits = network(
            torch.tensor([source], device=network.device),
            torch.tensor([ids[:-1]], device=network.device),
        )
        chosen = torch.tensor(ids[1:], device=network.device)[:, None]
        return logits[0].float().log_softmax(dim=-1).gather(-1, chosen)[:, 0]

    drop = told(list(run.source_ids)) - told(model.in_languages(run.request).prepare(other).source)
    return 1 + int(drop.argmax())


def _after(model: LoadedModel, theirs: ActivationCache) -> Tensor:
    """(1, V) logits of the next token of the run that the hook recorded."""
    network = model.generator_network
    last = theirs.activations[Point("resid_post", "decoder", model.config.output_n_layers - 1)]
    return network.lens(last[:, -1:])[0].float()


def _one_at_a_time(
    model: LoadedModel, theirs: ActivationCache, text: TextBefore, point: Point, by_head: bool
) -> Iterator[tuple[Patched, int]]:
    """(patch, rows) of batches, by layer, by head if they are patched alone, and by position."""
    n_heads = model.config.n_heads if by_head else 1
    read = text.source if point.stack == "encoder" else text.ids
    for layer in range(model.config.n_layers_of(point.stack)):
        at = point._replace(layer=layer, kind=point.kind if point.name == "z" else "")
        values = theirs.activations[at]
        n = min(len(read), values.shape[-2])
        for part in in_parts(range(n_heads * n), text.largest_batch):
            where = torch.zeros(
                len(part), n_heads, values.shape[-2], 1, dtype=torch.bool, device="cpu"
            )
            for row, each in enumerate(part):
                where[row, each // n, each % n] = True
            where = where if at.name == "z" else where[:, 0]
            yield Patched(at, Replacement(where, values)), len(part)


# ---- another text to patch from ----

_PAIRS = (
    ("cat", "dog"), ("boy", "girl"), ("boys", "girls"), ("man", "woman"), ("men", "women"),
    ("fox", "bear"), ("bird", "frog"), ("king", "queen"), ("mom", "dad"), ("black", "white"),
    ("red", "blue"), ("big", "little"), ("happy", "sad"), ("hot", "cold"), ("day", "night"),
    ("Tom", "Ben"), ("Lily", "Lucy"), ("he", "she"), ("his", "her"), ("ball", "toy"),
    ("park", "forest"), ("train", "bus"), ("book", "letter"), ("car", "house"), ("new", "old"),
)  # fmt: skip
_OTHERS = {word: other for pair in _PAIRS for word, other in (pair, pair[::-1])}
_WORD = re.compile(r"[^\W\d_]+")


def text_before(model: LoadedModel, run: Run, position: int) -> str:
    """The text to replace: a translator's source, else everything before the token at `position`
    (without the start token)."""
    if run.source_ids:
        return run.request.text
    return model.tokenizer.decode(run.ids[run.trace_start : position])


def variant(model: LoadedModel, text: str) -> str | None:
    """The text with one word replaced by another of the same length in tokens; None if no word has
    a replacement. The first of _PAIRS that fits is used, wherever its word is."""
    length = len(_ids(model, text))
    words = set(_WORD.findall(text))
    for pair in _OTHERS.items():  # animals before colours and so on
        for word, other in (pair, map(str.capitalize, pair)):
            if word in words:
                changed = re.sub(rf"\b{re.escape(word)}\b", other, text)
                if len(_ids(model, changed)) == length:
                    return changed
    return None


def _ids(model: LoadedModel, text: str) -> list[int]:
    prepared = model.prepare(text)
    return prepared.source or prepared.ids
