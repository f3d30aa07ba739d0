"""Beam searches as runs."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.inference.beam import beam_search
from transformer.inference.loaded import LoadedModel
from transformer.inference.record import run_of
from transformer.model.transformer import EncoderDecoder
from transformer.runs.request import Request
from transformer.runs.run import Run


def search(model: LoadedModel, requests: Sequence[Request]) -> list[Run]:
    """Beam searches, all in one batch; the requests differ in their text alone.

    Raises ValueError for a model that is not an encoder-decoder.
    """
    network, first = model.network, requests[0]
    model.check(first)
    assert isinstance(network, EncoderDecoder)
    prepared = [model.prepare(request.text) for request in requests]
    if first.max_new_tokens == 0:
        return [
            run_of(model, request, row, [], ended=False)
            for request, row in zip(requests, prepared, strict=True)
        ]
    found = beam_search(
        network,
        [row.source for row in prepared],
        start_id=model.tokenizer.start_id,
        end_id=model.tokenizer.end_id,
        beams=first.beams,
        max_new_tokens=first.max_new_tokens,
        length_penalty=first.length_penalty,
    )
    return [
        run_of(model, request, row, [], ended=True, found=result)
        for request, row, result in zip(requests, prepared, found, strict=True)
    ]
