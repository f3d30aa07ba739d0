"""Endpoints that ask "what if?" of a kept run, and what a text costs a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from transformer.messages import invalid, say
from transformer.runs.run import Run
from transformer.ui.experiments import Experiments
from transformer.ui.limits import check_input
from transformer.ui.service import Service


def endpoints(
    service: Service, experiments: Experiments
) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
    """The functions behind them: the experiments, and /score; each runs the network."""
    default = next(iter(service.models))

    def importance(run: str, place: int, by: str = "zero") -> dict[str, Any]:
        """What each head matters for the token at a place of a run's ids.

        For each kind of attention, layers x heads: what is added to ln p of that token when the
        head alone is silenced in the intact network.

        Args:
            run: the id that /generate or /trace gave
            place: of the token, counted from 0
            by: zero, or mean, the head's mean over the text
        """
        item = service.store.run(run)
        found = experiments.importance(item, place, by)
        return {
            "place": place,
            "token": item.labels[place],
            "log_probability": found.log_probability,
            "change": {f"{s} {k}": change.tolist() for (s, k), change in found.change.items()},
        }

    def next_token(run: str, place: int) -> dict[str, Any]:
        """The token at a place, foreseen by the intact network and with the run's interventions.

        Args:
            run: the id that /generate or /trace gave
            place: of the token, counted from 0
        """
        item = service.store.run(run)
        found = experiments.next_token(item, place)
        tokens = service.model(item.model).tokenizer
        rows = zip(found.ids, found.intact.tolist(), found.intervened.tolist(), strict=True)
        return {
            "place": place,
            "token": item.labels[place],
            "candidates": [
                {"id": i, "token": tokens.label(i), "intact": intact, "altered": altered}
                for i, intact, altered in rows
            ],
        }

    def patching(
        run: str,
        other: str,
        place: int,
        stack: str = "decoder",
        part: str = "residual",
        kind: str = "self",
        target: int | None = None,
    ) -> dict[str, Any]:
        """Activity of another text patched into a run, one layer and place at a time.

        Gives layers x places: what is added to ln p of the target as the token at the place.

        Args:
            run: the id that /generate or /trace gave
            other: the text whose activity is patched in
            place: of the token that is looked at, counted from 0
            stack: where to patch, encoder or decoder
            part: residual, heads or feed_forward
            kind: of the attention whose heads are patched, self or cross
            target: id of the token that is asked for; by default what the other text foresees
        """
        item = service.store.run(run)
        where = {"stack": stack, "part": part, "kind": kind, "target": target}
        found = experiments.patching(item, other, place, **where)
        return {
            "place": place,
            "target": found.target,
            "token": service.model(item.model).tokenizer.label(found.target),
            "before": found.before,
            "other": found.other,
            "change": found.change.tolist(),
        }

    def breaks(model: str = default) -> list[dict[str, Any]]:
        """The intact network and each switch that takes an idea away: why, and the loss with it.

        The loss is in nats a token over the model's own small sample, null where it has none.

        Args:
            model: name of one of /models
        """
        return [
            {"what": each.what, "why": say(each.why), "loss": each.loss}
            for each in experiments.broken(model)
        ]

    def scored(run: Run, text: str) -> dict[str, Any]:
        return score_values(run, experiments.surprise(run), text)

    def score(text: str, model: str = default, target: str = "") -> dict[str, Any]:
        """What a text costs a model, token by token, in bits.

        A translator is asked for the target given the text; the end token counts there. Else the
        end does not count, since the text may go on.

        Args:
            text: what is scored, or what a translator translates
            model: name of one of /models
            target: the translation that is scored; for a translator alone
        """
        if service.model(model).config.family == "encoder-decoder":
            return scored(_translated(service, model, text, target), target)
        if target:
            raise invalid("a target is for a translator; {model} is none", model=model)
        return scored(service.read(model, text), text)

    return [importance, next_token, patching, breaks], score


def score_values(run: Run, surprise: Sequence[float | None], text: str) -> dict[str, Any]:
    """The surprise of a run's tokens as plain values. Raises ValueError where nothing foresees."""
    bits = [bit for bit in surprise if bit is not None]
    if not bits:
        raise invalid(
            "{model} is an encoder: it foresees nothing, so a text has no cost", model=run.model
        )
    n_bytes = len(text.encode())
    return {
        "tokens": list(run.labels[run.trace_start :]),
        "bits": list(surprise),
        "total_bits": math.fsum(bits),
        "bits_per_byte": math.fsum(bits) / n_bytes,
        "perplexity": 2 ** (math.fsum(bits) / len(bits)),
    }


def _translated(service: Service, name: str, text: str, target: str) -> Run:
    """The run that takes the target's tokens one after the other, and the end."""
    tokenizer = service.model(name).tokenizer
    forced = [*tokenizer.encode(check_input(target)), tokenizer.end_id]
    return service.generate(name, text, max_new_tokens=len(forced), forced_tokens=forced)
