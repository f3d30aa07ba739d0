"""Plain values about a run, a batch or a model, for the page's components and the API."""

from __future__ import annotations

from typing import Any

from transformer.figures.prediction import how
from transformer.inference.engine import NETWORK
from transformer.inference.model import Model
from transformer.inference.request import Request
from transformer.inference.run import Batch, Run
from transformer.model.interventions import to_dict
from transformer.ui.limits import MAX_SECONDS
from transformer.ui.link import state_of_batch, state_of_run

_STOPPED = {
    "end": "the model ended its text",
    "length": "the length that was asked for",
    "cancelled": "stopped by you",
    "time": f"the {MAX_SECONDS:.0f} s that one request may take",
    "read": "read, nothing generated",
}


def run_facts(run: Run, key: str) -> dict[str, Any]:
    """What the page's scripts know of a run; `key` is its id in the store."""
    return {
        "run": key,
        "model": run.model,
        "state": "done",
        "stack": "encoder" if run.config.family == "encoder" else "decoder",
        "source_labels": list(run.source_labels),
        "labels": list(run.labels),
        "ids": list(run.ids),
        "n_prompt": run.n_prompt,
        "probabilities": [step.chosen.probability for step in run.steps],
        "trace_start": run.trace_start,
        "kinds": kinds_of(run),
        "n_heads": run.config.n_heads,
        "stacks": list(run.position_matrices),
        "d_model": run.config.d_model,
        "stopped": run.stopped,
        "hypotheses": hypotheses_of(run),
        "text": run.request.text,
        "taken": list(run.request.taken),
        "how": how_chosen(run),
        "interventions": interventions_of_request(run.request),
        "link": state_of_run(run),
    }


def how_chosen(run: Run) -> str:
    """How its tokens were chosen, in a few words, with the seed where one was used."""
    if run.stopped == "read":
        return "only read"
    words = how(run.request)
    if run.request.sampling is None:
        return words.split(":")[0]
    return f"{words}, seed {run.request.seed}"


def interventions_of_request(request: Request) -> list[dict[str, Any]]:
    """What was altered: {"is": plain values, "says": a few words} each."""
    return [{"is": to_dict(i), "says": str(i)} for i in request.interventions]


def hypotheses_of(run: Run) -> list[dict[str, Any]]:
    """What a beam search found, best first; nothing for another run."""
    if run.search is None:
        return []
    return [
        {
            "text": text,
            "score": hypothesis.score,
            "normalised": hypothesis.normalised,
            "n_tokens": len(hypothesis.ids),
            "ended": hypothesis.ended,
        }
        for hypothesis, text in zip(run.search.hypotheses, run.search.texts, strict=True)
    ]


def running_facts(
    source_labels: list[str], labels: list[str], n_prompt: int, probabilities: list[float]
) -> dict[str, Any]:
    """The same while tokens still come: no picture yet."""
    return {
        "run": None,
        "state": "running",
        "source_labels": list(source_labels),
        "labels": list(labels),
        "n_prompt": n_prompt,
        "probabilities": list(probabilities),
    }


def batch_facts(batch: Batch, key: str) -> dict[str, Any]:
    """What the page's scripts know of a padded batch."""
    return {
        "batch": key,
        "texts": list(batch.texts),
        "link": state_of_batch(batch),
        "outputs": list(batch.outputs),
        "stacks": list(dict.fromkeys(stack for stack, _ in batch.trace.kinds())),
        "lengths": batch.padding.sum(dim=1).tolist(),
        "kinds": kinds_of(batch),
        "n_heads": next(iter(batch.trace.records.values())).weights.shape[1],
    }


def kinds_of(item: Run | Batch) -> list[dict[str, Any]]:
    """The kinds of attention recorded, each with its number of layers."""
    sites = item.trace.sites
    return [
        {
            "stack": stack,
            "kind": kind,
            "n_layers": sum((site.stack, site.kind) == (stack, kind) for site in sites),
        }
        for stack, kind in item.trace.kinds()
    ]


def outcome(run: Run, seconds: float) -> str:
    """One sentence on how a generation went."""
    count = len(run.steps)
    found = f", the best of {len(run.search.hypotheses)} found" if run.search else ""
    took = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    tokens = "1 token" if count == 1 else f"{count} tokens"
    return f"{tokens} in {took}{found}; end: {_STOPPED[run.stopped]}."


def headline(model: Model) -> str:
    """Where the model runs and how large it is, for the top line."""
    config = model.config
    device = "CPU" if model.device.type == "cpu" else model.device.type.upper()
    millions = model.n_parameters / 1e6
    return (
        f"{device} · {millions:.1f} M parameters · "
        f"{config.n_layers} layers × {config.n_heads} heads"
    )


def model_facts(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    return {
        "name": model.name,
        "device": str(model.device),
        "engine": model.engine.name if model.engine else NETWORK,
        "n_parameters": model.n_parameters,
        **model.config.to_dict(),
    }


def model_card(model: Model) -> str:
    """Markdown: the model card, without its metadata; a sentence for a model without one."""
    return _without_front_matter(model.card) or f"{model.name} has no model card."


def settings_table(model: Model) -> str:
    """Markdown: every configuration value."""
    facts = model_facts(model)
    rows = "\n".join(f"| `{name}` | {_cell(value)} |" for name, value in facts.items())
    return f"| setting | value |\n| --- | --- |\n{rows}"


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "–" if value is None else str(value)


def _without_front_matter(card: str) -> str:
    """A model card may start with metadata between two lines of three dashes."""
    if not card.startswith("---\n"):
        return card
    _, _, rest = card[4:].partition("\n---\n")
    return rest.lstrip("\n")
