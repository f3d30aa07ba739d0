"""Endpoints that run the network on texts: each keeps its run or batch, whose id others take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformer.ui.api_values import batch_values, fill_values, run_values
from transformer.ui.service import Service
from transformer.ui.visitors import ASKER


def endpoints(service: Service) -> list[Callable[..., Any]]:
    """The functions behind them."""
    default = next(iter(service.models))
    families = {name: model.config.family for name, model in service.models.items()}
    translator = next((n for n, family in families.items() if family == "encoder-decoder"), default)
    encoder = next((n for n, family in families.items() if family == "encoder"), default)

    def generate(
        text: str,
        model: str = default,
        max_new_tokens: int = 40,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int = 0,
        beams: int = 1,
        length_penalty: float = 1.0,
        forced_tokens: list[int] | None = None,
        interventions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Continue a text. Greedy at temperature 0 or without temperature, top_k, top_p and min_p.

        Gives text, tokens, how many of them were given, why it stopped, every step with its
        candidates, the hypotheses of a search, and the run's id for /attention. An intervention is,
        e.g., {"type": "silence", "stack": "decoder", "layer": 2, "heads": [3]}.

        Args:
            text: what to continue, or what a translator translates
            model: name of one of /models
            max_new_tokens: tokens to generate at most, 1 to 200
            temperature: above 1 evens the probabilities out, below 1 sharpens them, 0 is greedy
            top_k: draw from so many of the likeliest tokens
            top_p: draw from the likeliest tokens that together reach this probability
            min_p: draw from tokens at least this share as likely as the likeliest
            seed: the same seed draws the same tokens
            beams: 2 or more, with a translator: a beam search that keeps so many hypotheses
            length_penalty: power of the length by which a search divides a hypothesis' score
            forced_tokens: ids of tokens that come first, whatever the network says of them
            interventions: what to alter in the network for this run alone
        """
        run = service.generate(
            model,
            text,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            beams=beams,
            length_penalty=length_penalty,
            forced_tokens=forced_tokens or (),
            interventions=interventions or (),
        )
        return run_values(run, service.store.put(run, ASKER.get()))

    def translate(
        texts: list[str],
        model: str = translator,
        beams: int = 4,
        length_penalty: float = 1.0,
        max_new_tokens: int = 100,
    ) -> list[dict[str, Any]]:
        """Translate several texts in one padded batch; each gets the result that it gets alone.

        For each: what /generate gives, with the n-best list of hypotheses. What it gives of a text
        of several sentences is the network's reading of the whole; `one_by_one` joins the
        translations of its sentences, each read alone, which are better. It is null for one.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models, an encoder-decoder
            beams: hypotheses that the search keeps; 1 is greedy
            length_penalty: power of the length by which the search divides a hypothesis' score
            max_new_tokens: tokens of a translation at most, 1 to 200
        """
        settings: dict[str, Any] = {
            "beams": beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens,
        }  # fmt: skip
        runs = service.translate(model, texts, **settings)
        keys = service.store.put_all(runs, ASKER.get())
        return [
            run_values(run, key)
            | {"one_by_one": service.one_by_one(model, run.request.text, **settings)}
            for run, key in zip(runs, keys, strict=True)
        ]

    def trace(
        text: str, model: str = default, interventions: list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Read a text without continuing it, altered if told so; the id is for /attention.

        Args:
            text: what to read
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
        """
        run = service.read(model, text, interventions or ())
        return run_values(run, service.store.put(run, ASKER.get()))

    def fill(text: str, model: str = encoder, n_best: int = 5) -> dict[str, Any]:
        """What stands at each [MASK] of a text, by a model that reads both sides of it.

        Gives the text with the likeliest token at each place, and for each place the likeliest
        tokens; each is guessed by itself, so that two of them need not fit together.

        Args:
            text: with [MASK] where a word is hidden
            model: name of one of /models, an encoder alone
            n_best: tokens that are given for each place, 1 to 50
        """
        return fill_values(service.fill(model, text, n_best))

    def batch(
        texts: list[str],
        model: str = default,
        interventions: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Read several texts as one padded batch, altered if told so; the id is for /attention.

        A translator translates them first (greedily) and reads sources and translations.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
        """
        read = service.batch(model, texts, interventions or ())
        return batch_values(read, service.store.put(read, ASKER.get()))

    return [generate, translate, trace, fill, batch]
