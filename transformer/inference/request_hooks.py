"""The hooks that apply a request's interventions to a model's network."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from transformer.checks import InvalidCall, InvalidRequest, check_each
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.interventions.descriptions import Patch, check_all, places_of
from transformer.interventions.hooks import ActivationCache, hooks_of, joined
from transformer.model.hooks import Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.runs.request import Request


def check_interventions(model: LoadedModel, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for a part that the network or a patch's other text lacks."""
    check_all(request.interventions, model.config)
    for patch in request.interventions:
        if not isinstance(patch, Patch) or patch.values is not None:
            continue
        source, ids, _ = model.prepare(patch.text)
        read = source if patch.stack == "encoder" and source else ids
        if source and patch.stack == "decoder":
            read = [*prepared.ids, *request.forced_tokens]
        if len(ids) > model.config.max_len:
            raise InvalidRequest(
                "too_long",
                "the other text of a patch is {n_tokens} tokens long; {name} reads at "
                "most {max_len}",
                n_tokens=len(ids),
                name=model.name,
                max_len=model.config.max_len,
            )
        if patch.positions and patch.positions[-1] >= len(read):
            raise InvalidCall(
                "out_of_range",
                "the other run has places from 0 to {last} there; got {got}",
                last=len(read) - 1,
                got=patch.positions[-1],
            )


def check_places(model: LoadedModel, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for an intervention at a place that the text can never have, or that is not
    read of a text longer than the model reads."""
    source, ids, _ = prepared
    last_id = len(ids) + request.max_new_tokens - 1
    first = 0
    if model.config.family == "encoder-decoder":
        last_id = min(last_id, model.config.output_max_len - 1)
        last = {"encoder": len(source) - 1, "decoder": last_id}
    else:
        last = {"encoder": last_id, "decoder": last_id}
        first = max(0, len(ids) - model.config.output_max_len)
    for intervention in request.interventions:
        for stack, place in places_of(intervention):
            if not first <= place <= last[stack]:
                raise InvalidCall(
                    "out_of_range",
                    "{intervention}: the text has places from {first} to {last} there; got {got}",
                    intervention=str(intervention),
                    first=first,
                    last=last[stack],
                    got=place,
                )


def hooks_for_rows(
    model: LoadedModel, request: Request, texts: Sequence[str], rows: Sequence[Prepared]
) -> Sequence[Hook]:
    """Hooks that apply the interventions of a request to a batch of texts, to each as if it were
    alone. Raises ValueError that names the text at fault, as `hooks_for` and `check_places` do."""
    if not request.interventions:
        return ()
    hooks: list[Sequence[Hook]] = []
    caches: dict[tuple[str, tuple[int, ...]], ActivationCache] = {}
    left = iter(rows)

    def check(text: str) -> None:
        prepared = next(left)
        hooks.append(hooks_for(model, request, prepared, caches))
        check_places(model, request, prepared)

    check_each(texts, check)
    return joined(hooks)


def hooks_for(
    model: LoadedModel,
    request: Request,
    prepared: Prepared,
    activations: dict[tuple[str, tuple[int, ...]], ActivationCache] | None = None,
) -> Sequence[Hook]:
    """Hooks that apply the interventions of this request; empty for the intact network.

    activations: by the other text and the target's ids; new ones are added. Raises ValueError as
    `check_interventions` does.
    """
    if not request.interventions:
        return ()
    model = model.in_languages(request)
    check_interventions(model, request, prepared)
    texts = {i.text: None for i in request.interventions if isinstance(i, Patch) and i.text}
    decoded = (*prepared.ids, *request.forced_tokens) if prepared.source else ()
    activations = {} if activations is None else activations
    for text in texts:
        if (text, decoded) not in activations:
            activations[text, decoded] = activations_of(model, text, decoded)
    caches = {text: activations[text, decoded] for text in texts}
    return hooks_of(request.interventions, model.config, caches)


@torch.no_grad()
def activations_of(model: LoadedModel, text: str, decoded: Sequence[int]) -> ActivationCache:
    """Activations of the intact network for another text.

    decoded: an encoder-decoder's target ids; other networks read the text alone.
    """
    source, ids, _ = model.prepare(text)
    cache = ActivationCache()
    network = model.network
    if isinstance(network, EncoderDecoder):
        read = torch.tensor([source], device=network.device)
        target = torch.tensor([list(decoded)], device=network.device)
        network(read, target, hooks=[cache])
    else:
        assert isinstance(network, DecoderOnly | EncoderOnly)
        network(torch.tensor([ids], device=network.device), hooks=[cache])
    return cache
