"""Endpoints that run the network: on texts, keeping the run or batch under an id, and once more on
a kept run that is altered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from transformer.analysis.ablation import head_importance
from transformer.analysis.ablation import next_token as next_token_of
from transformer.analysis.logit_lens import text_cost
from transformer.analysis.patching import patch_effect
from transformer.checks import shortened
from transformer.interventions.breaks import BREAKS
from transformer.runs.run import Run
from transformer.server.http.requests import caller
from transformer.server.kept.page_runs import run_values
from transformer.server.kept.service import Languages, Service, check_input
from transformer.views.run_facts import kinds_of


def run_endpoints(service: Service) -> list[Callable[..., Any]]:
    """Endpoints that read texts or continue them."""

    def kept(run: Run) -> dict[str, Any]:
        return run_values(run, service.store.put(run, caller().session))

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
        repetition_penalty: float = 1.0,
        stop: list[str] | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> dict[str, Any]:
        """Continue a text. Greedy at temperature 0 or without temperature, top_k, top_p and min_p.

        Gives text, tokens, how many of them were given, why it stopped, every step with its
        candidates, the hypotheses of a search, and the run's id for /attention. An intervention is,
        e.g., {"type": "ablate", "stack": "decoder", "layer": 2, "heads": [3]}.

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
            repetition_penalty: divides the logits of the text's tokens; above 1: less repetition
            stop: texts that end the generation once it has written one of them
            source_language: of the text, for a translator of many: one of the /models' languages
            target_language: the language to translate into
        """
        run = service.generate(
            model, text, max_new_tokens=max_new_tokens, temperature=temperature, top_k=top_k,
            top_p=top_p, min_p=min_p, seed=seed, beams=beams, length_penalty=length_penalty,
            forced_tokens=forced_tokens or (), interventions=interventions or (),
            repetition_penalty=repetition_penalty, stop=stop or (),
            source_language=source_language, target_language=target_language,
        )  # fmt: skip
        return kept(run)

    def translate(
        texts: list[str],
        model: str = translator,
        beams: int = 4,
        length_penalty: float = 1.0,
        max_new_tokens: int = 100,
        source_language: str | None = None,
        target_language: str | None = None,
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
            source_language: of the texts, for a translator of many: one of the /models' languages
            target_language: the language to translate into
        """
        settings: dict[str, Any] = {
            "beams": beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens,
            "source_language": source_language, "target_language": target_language,
        }  # fmt: skip
        runs = service.translate(model, texts, **settings)
        return [
            kept(run) | {"one_by_one": service.one_by_one(model, run.request.text, **settings)}
            for run in runs
        ]

    def trace(
        text: str,
        model: str = default,
        interventions: list[dict[str, Any]] | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> dict[str, Any]:
        """Read a text without continuing it, altered if told so; the id is for /attention.

        Args:
            text: what to read
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
            source_language: of the text, for a translator of many: one of the /models' languages
            target_language: the language to translate into
        """
        languages: Languages = {
            "source_language": source_language, "target_language": target_language,
        }  # fmt: skip
        return kept(service.read(model, text, interventions or (), **languages))

    def fill(text: str, model: str = encoder, n_best: int = 5) -> dict[str, Any]:
        """Predict each [MASK] of a text, by a model that reads both sides of it.

        Gives the text with the likeliest token at each position, and for each position the
        likeliest tokens; each is guessed by itself, so that two of them need not fit together.

        Args:
            text: with [MASK] where a word is hidden
            model: name of one of /models, an encoder alone
            n_best: tokens that are given for each position, 1 to 50
        """
        filled = service.fill(model, text, n_best)
        return {
            "text": filled.text,
            "ids": list(filled.ids),
            "positions": list(filled.positions),
            "guesses": [
                [dataclasses.asdict(candidate) for candidate in position]
                for position in filled.guesses
            ],
        }

    def batch(
        texts: list[str],
        model: str = default,
        interventions: list[dict[str, Any]] | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> dict[str, Any]:
        """Read several texts as one padded batch, altered if told so; the id is for /attention.

        A translator translates them first (greedily) and reads sources and translations.

        Args:
            texts: 1 to 8 of them
            model: name of one of /models
            interventions: what to alter in the network for this run alone, as in /generate
            source_language: of the texts, for a translator of many: one of the /models' languages
            target_language: the language to translate into
        """
        languages: Languages = {
            "source_language": source_language, "target_language": target_language,
        }  # fmt: skip
        read = service.batch(model, texts, interventions or (), **languages)
        values = {
            "run": service.store.put(read, caller().session),
            "model": read.model,
            "tokens": [list(row) for row in read.labels],
            "ids": read.ids.tolist(),
            "is_token": read.padding.tolist(),
            "attention": kinds_of(read),
        }
        if read.target_ids is not None and read.target_padding is not None:  # a translator's
            values |= {
                "translations": list(read.outputs),
                "target_tokens": [list(row) for row in read.target_labels],
                "target_ids": read.target_ids.tolist(),
                "target_is_token": read.target_padding.tolist(),
            }
        return values

    return [generate, translate, trace, fill, batch]


def experiment_endpoints(service: Service) -> list[Callable[..., Any]]:
    """Those that ask "what if?" about a kept run, and what a text costs a model."""
    default = next(iter(service.models))

    def importance(run: str, position: int, by: str = "zero") -> dict[str, Any]:
        """How much each head matters for the token at a position of a run's ids.

        For each kind of attention, layers x heads: the change of ln p of that token when this head
        alone is ablated (switched off) in the intact network.

        Args:
            run: the id that /generate or /trace gave
            position: of the token, counted from 0; at the end of the ids, what would follow
            by: zero, or mean, the head's mean over the text
        """
        item = service.store.run(run)
        effects = service.queries.ask(head_importance, item, position=position, by=by)
        return {
            "position": position,
            "token": service.model(item.model).tokenizer.label(effects.target),
            "log_probability": effects.log_probability,
            "change": {f"{s} {k}": change.tolist() for (s, k), change in effects.change.items()},
        }

    def next_token(run: str, position: int) -> dict[str, Any]:
        """The predictions of a position, by the intact network and with the run's interventions.

        Args:
            run: the id that /generate or /trace gave
            position: of the token, counted from 0; at the end of the ids, what would follow
        """
        item = service.store.run(run)
        change = service.queries.ask(next_token_of, item, position=position)
        tokens = service.model(item.model).tokenizer
        rows = zip(change.ids, change.intact.tolist(), change.intervened.tolist(), strict=True)
        return {
            "position": position,
            "token": tokens.label(change.target),
            "candidates": [
                {"id": i, "token": tokens.label(i), "intact": intact, "altered": altered}
                for i, intact, altered in rows
            ],
        }

    def patching(
        run: str,
        other: str,
        position: int,
        stack: str = "decoder",
        part: str = "resid_post",
        kind: str = "self",
        target: int | None = None,
    ) -> dict[str, Any]:
        """Activation patching: another text's activations in a run, one layer and position at a
        time.

        Gives layers x positions: the change of ln p of the target as the token at the position.

        Args:
            run: the id that /generate or /trace gave
            other: the text whose activations are patched in
            position: of the token that is looked at, counted from 0
            stack: where to patch, encoder or decoder
            part: resid_post, z or mlp_out
            kind: of the attention whose heads are patched, self or cross
            target: id of the token that is measured; by default what the other text predicts
        """
        item = service.store.run(run)
        where = {"stack": stack, "part": part, "kind": kind, "target": target}
        more = {"other": check_input(other), "position": position, **where}
        effect = service.queries.ask(patch_effect, item, **more)
        assert effect.target is not None
        return {
            "position": position,
            "target": effect.target,
            "token": service.model(item.model).tokenizer.label(effect.target),
            "before": effect.before,
            "other": effect.other,
            "change": effect.change.tolist(),
        }

    def breaks(model: str = default) -> list[dict[str, Any]]:
        """The intact network and each component ablation: what it shows, and the loss with it.

        The loss is in nats a token over the model's own small sample, null where it has none.

        Args:
            model: name of one of /models
        """
        words = {None: "The network as it was trained."} | BREAKS
        return [
            {"what": what, "why": words[what], "loss": loss}
            for what, loss in service.queries.losses_without(model).items()
        ]

    def score(
        text: str,
        model: str = default,
        target: str = "",
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> dict[str, Any]:
        """What a text costs a model, token by token, in bits.

        A translator predicts the target given the text, and the end token counts; what it reads
        before, such as the target's language, has no bits. Other models do not count an end, since
        the text may go on. Of a text that is longer than the model reads, only the end has bits:
        bits_per_byte is over the n_bytes bytes of the tokens that have bits.

        Args:
            text: what is scored, or what a translator translates
            model: name of one of /models
            target: the translation that is scored; for a translator alone
            source_language: of the text, for a translator of many: one of the /models' languages
            target_language: the language to translate into
        """
        scorer, scored = service.model(model), target
        languages: Languages = {
            "source_language": source_language, "target_language": target_language,
        }  # fmt: skip
        if scorer.config.family == "encoder-decoder":
            (ids,) = scorer.tokenizer.encode_targets([check_input(target)])
            forced = scorer.tokenizer.target(ids)
            run = service.generate(
                model, text, max_new_tokens=len(forced), forced_tokens=forced, **languages
            )
        elif target:
            raise ValueError(f"only a translator takes a target; {shortened(model)} is none")
        else:
            run, scored = service.read_end(model, text, **languages), text
        cost = service.queries.ask(text_cost, run, text=scored)
        return {
            "tokens": list(cost.tokens),
            "bits": list(cost.bits),
            "total_bits": cost.total_bits,
            "bits_per_byte": cost.bits_per_byte,
            "n_bytes": cost.n_bytes,
            "perplexity": cost.perplexity,
        }

    return [importance, next_token, patching, breaks, score]
