"""The likeliest tokens after a position, with a head or other parts switched off."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import torch

from transformer.analysis.text_before import check_made_by
from transformer.inference.decode_session import session_of
from transformer.inference.generation import generate
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.request_hooks import hooks_for
from transformer.interventions.descriptions import Ablate, Intervention
from transformer.model.sites import Site
from transformer.runs.run import Run

N_WRITTEN = 8  # tokens of a continuation
SENTENCE_ENDS = (".", "!", "?")


@torch.no_grad()
def continuation(
    model: LoadedModel,
    run: Run,
    position: int | None = None,
    site: str | None = None,
    head: int = 0,
) -> tuple[int, ...]:
    """Ids of the likeliest tokens after `position`, to the end of the sentence, at most N_WRITTEN;
    with one head switched off if `site` names its place, or on again if it is off.

    Empty for a model that does not generate, and for an unknown head.
    """
    check_made_by(model, run)
    position = model.last_read(run) if position is None else position
    interventions = run.request.interventions
    if site is not None:
        interventions = _switched(interventions, Site.parse(site), head)
    return written_with(model, run, position, interventions)


def written_with(
    model: LoadedModel, run: Run, position: int, interventions: Sequence[Intervention]
) -> tuple[int, ...]:
    """`continuation` with other interventions than the run's; empty if the network does not support
    them."""
    if not run.config.generates:
        return ()
    prompt, forced = run.ids[: run.n_prompt], run.ids[run.n_prompt : position + 1]
    source, ids = list(run.source_ids), run.ids[: position + 1]
    try:
        request = run.request.greedy(
            max_new_tokens=len(forced), forced_tokens=forced, interventions=interventions
        )
        hooks = hooks_for(model, request, Prepared(source, list(prompt)))
    except ValueError:
        return ()
    steps = generate(
        model.generator_network,
        [ids],
        sources=[source] if source else None,
        max_new_tokens=N_WRITTEN,
        end_ids=model.tokenizer.end_ids,
        session=session_of(model.engine, hooks),
        hooks=hooks,
    )
    return tuple(one_sentence(model, (step.token for (step,) in steps if step)))


def _switched(made: Sequence[Intervention], at: Site, head: int) -> tuple[Intervention, ...]:
    """Interventions with one head switched off, or on again if it is off at every position."""
    left: list[Intervention] = []
    is_off = False
    for change in made:
        heads = change.heads if isinstance(change, Ablate) and change.site == at else None
        if (
            not isinstance(change, Ablate)
            or change.positions is not None
            or head not in (heads or ())
        ):
            left.append(change)
            continue
        is_off = True
        if others := [other for other in heads or () if other != head]:
            left.append(dataclasses.replace(change, heads=others))
    return tuple(left) if is_off else (*left, Ablate(at.stack, at.layer, (head,), at.kind))


def one_sentence(model: LoadedModel, tokens: Iterable[int]) -> Iterator[int]:
    """The tokens up to an end token, or with the first that ends a sentence."""
    for token in tokens:
        if token in model.tokenizer.end_ids:
            return
        yield token
        if any(end in model.tokenizer.label(token) for end in SENTENCE_ENDS):
            return
