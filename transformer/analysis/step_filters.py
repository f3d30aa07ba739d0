"""One generated token's logits after temperature and after each filter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.logit_lens import lens_logits
from transformer.inference.generation import apply_temperature, keep_min_p, keep_top_k, keep_top_p
from transformer.inference.loaded import LoadedModel
from transformer.runs.run import Run

CLOSE = 1e-3  # tolerated between a recorded logit and the logit of the recorded stream


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepFilters:
    """The vocabulary at one step, each (V,) float32 on the CPU; -inf where something cut.

    logits: the network's own (padding cut, which is never taken); scaled: divided by the
    temperature; by filter, "top_k", "top_p" and "min_p" as far as the request has them, what it
    left; probabilities: what was drawn from.
    """

    logits: Tensor
    scaled: Tensor
    kept: dict[str, Tensor]
    probabilities: Tensor


@torch.no_grad()
def step_filters(model: LoadedModel, run: Run, step: int) -> StepFilters | None:
    """The filters of a sampled run's step, from the recorded stream by the model's own head.

    None where the trace is not of what the step saw (a window that slid since), or where an
    intervention makes the head say something else of the recorded stream.
    """
    made, sampling = run.steps[step], run.request.sampling
    assert sampling is not None
    stack = model.network.last_stack.name
    row = made.window[1] - 1 - run.trace_start
    if run.config != model.config or stack not in run.trace.residuals:
        return None
    streams = run.trace.residuals[stack][-1]
    if made.window[0] != run.trace_start or not 0 <= row < streams.shape[1]:
        return None
    logits = lens_logits(model, run, streams[:, row : row + 1]).cpu()  # (1, V)
    best = made.candidates[0]
    if abs(float(logits[0, best.id]) - best.logit) > CLOSE * (1 + abs(best.logit)):
        return None
    padding = model.config.output_padding_id
    if padding is not None:
        logits = logits.index_fill(-1, torch.tensor(padding), -torch.inf)
    scaled = apply_temperature(logits, sampling.temperature)
    kept, left = {}, scaled
    for name, keep, value in (
        ("top_k", keep_top_k, sampling.top_k),
        ("top_p", keep_top_p, sampling.top_p),
        ("min_p", keep_min_p, sampling.min_p),
    ):
        if value is not None:
            left = keep(left, value)  # type: ignore[arg-type]
            kept[name] = left[0]
    return StepFilters(
        logits=logits[0], scaled=scaled[0], kept=kept, probabilities=left.softmax(dim=-1)[0]
    )
