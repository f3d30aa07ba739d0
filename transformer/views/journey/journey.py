"""The journey of one token through the network, to the word that follows: numbers of
`analysis.journey`."""

from __future__ import annotations

from typing import Annotated, Any

import torch

from transformer.analysis.atlas import reading_weights
from transformer.analysis.continuation import continuation
from transformer.analysis.journey import Journey, deciding_heads, journey, telling, without_head
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.word_effects import WordEffect, without_words, word_effects
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.runs.head_data import array, switched_off
from transformer.runs.run import Run
from transformer.tokenizer import Tokenizer
from transformer.views.declaration import Answer, View, picture
from transformer.views.journey.feed_forward import answer_feed_forward
from transformer.views.journey.passages import answer_neuron_passages, answer_passages
from transformer.views.journey.tokens import likeliest_of, named_token
from transformer.views.parameters import (
    KIND,
    LAST_READ,
    ONE_HEAD,
    SITE,
    STACK,
    TARGET,
    Int,
    IntList,
)

N_LIKELIEST, N_WITHOUT, N_RANKED = 10, 5, 10


def answer_journey(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    target: Annotated[int | None, TARGET] = None,
) -> Answer:
    """The prediction after the last token read, each part's contribution, and the head that adds
    most."""
    path = models.ask(journey, item, position=position, target=target)
    tokens = models.model(item.model).tokenizer
    stack = "encoder" if item.config.family == "encoder" else "decoder"
    parts, added = path.parts, dict.fromkeys(("heads", "feed_forward", "biases", "embedding"))
    if parts is not None:  # heads layer by layer; null where a logit is no such sum
        added = {
            "heads": {kind: array(each.flatten()) for kind, each in parts.heads.items()},
            "feed_forward": array(parts.feed_forward),
            "biases": array(parts.biases),
            "embedding": dict(parts.others),
        }
    lens = zip(path.lens_ids.tolist(), path.lens_probabilities.tolist(), strict=True)
    return {
        "position": path.position,
        "target": path.target,
        "target_label": tokens.label(path.target),
        "stack": stack,
        "logits": array(path.logits),
        "never": item.config.output_padding_id,
        "likeliest": likeliest_of(tokens, path.logits, N_LIKELIEST),
        "next": _next(tokens, item, path),
        "lens": [{**named_token(tokens, token), "probability": p} for token, p in lens],
        "norms": array(path.stream.norm(dim=-1)),
        **added,
        "encoder": _encoder(item),
        "named": named_head(item, path),
    }


def named_head(item: Run, path: Journey) -> dict[str, Any] | None:
    """The active head that adds most; None if none adds anything."""
    parts = path.parts
    if parts is None:
        return None
    stack = "encoder" if item.config.family == "encoder" else "decoder"
    reading = {kind: heads.clone() for kind, heads in parts.heads.items()}
    for kind, heads in reading.items():
        for layer, row in enumerate(heads):
            row[list(switched_off(item, Site(stack, layer, kind)))] = -torch.inf
    kind, heads = max(reading.items(), key=lambda pair: float(pair[1].max()))
    if not bool((heads > 0).any()):
        return None
    layer, head = divmod(int(heads.argmax()), heads.shape[1])
    return {"stack": stack, "kind": kind, "layer": layer, "head": head}


def answer_telling(models: ModelQueries, item: Run) -> Answer:
    """The written token that is worth a look, as the place before it, and the head that leads."""
    best = models.ask(telling, item)
    if best is None:
        return {"position": None}
    head = best.site._asdict() | {"head": best.head}
    return {"position": best.position, "head": head, "leads": best.lead > 0}


def answer_deciding(
    models: ModelQueries, item: Run, *, position: Annotated[int | None, LAST_READ] = None
) -> Answer:
    """How many heads decide: without each alone another token would follow; n None: not known."""
    heads = models.ask(deciding_heads, item, position=position)
    if heads is None:
        return {"n": None, "heads": []}
    return {"n": len(heads), "heads": [{**site._asdict(), "head": head} for site, head in heads]}


def answer_without_head(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    site: Annotated[str, SITE],
    head: Annotated[int, ONE_HEAD] = 0,
) -> Answer:
    """The logits of what would follow, and the likeliest of it."""
    logits = models.ask(without_head, item, position=position, site=site, head=head)
    tokens = models.model(item.model).tokenizer
    return {"logits": array(logits), "likeliest": likeliest_of(tokens, logits, N_WITHOUT)}


def answer_continuation(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    site: Annotated[str | None, SITE] = None,
    head: Annotated[int, ONE_HEAD] = 0,
) -> Answer:
    """The tokens that the network would write next, always the likeliest."""
    ids = models.ask(continuation, item, position=position, site=site, head=head)
    return {"labels": models.model(item.model).tokenizer.labels(ids)}


def answer_word_effects(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    target: Annotated[int | None, TARGET] = None,
) -> Answer:
    """The probability of the token that follows without each word, and without all its mentions."""
    effects = models.ask(word_effects, item, position=position, target=target)
    tokens = models.model(item.model).tokenizer

    def plain(effect: WordEffect) -> dict[str, Any]:
        likeliest = named_token(tokens, effect.likeliest)
        return {
            "word": effect.word,
            "places": list(effect.places),
            "probability": effect.probability,
            "likeliest": {**likeliest, "probability": effect.likeliest_probability},
        }

    return {
        "position": effects.position,
        "target": {**named_token(tokens, effects.target), "probability": effects.probability},
        "stack": effects.stack,
        "masked": effects.masked,
        "words": [plain(word) for word in effects.words],
        "mentions": [plain(mention) for mention in effects.mentions],
    }


PLACES = IntList(
    title="Tokens left out",
    help="Their places in the text, or in a translator's source.",
    default=(),
    use="request",
    count=512,
)


def answer_without_words(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, LAST_READ] = None,
    places: Annotated[list[int], PLACES],
) -> Answer:
    """The logits of what would follow without some tokens, the likeliest of it, and the tokens that
    the network would write."""
    prediction = models.ask(without_words, item, places=tuple(places), position=position)
    tokens = models.model(item.model).tokenizer
    return {
        "logits": array(prediction.logits),
        "likeliest": likeliest_of(tokens, prediction.logits, N_WITHOUT),
        "labels": tokens.labels(prediction.written),
    }


def answer_readers(
    item: Run,
    *,
    stack: Annotated[str, STACK],
    query: Annotated[int, Int(title="Reading token", use="selection")] = 0,
    kind: Annotated[str, KIND],
    key: Annotated[int, Int(title="Token that is read", use="selection")] = 0,
) -> Answer:
    """Each head's weight from one token to another, layer by layer, and those that read most."""
    weights = reading_weights(item, stack, kind, query, key)
    best = weights.flatten().topk(min(N_RANKED, weights.numel()))
    ranked = [
        (at, w) for at, w in zip(best.indices.tolist(), best.values.tolist(), strict=True) if w
    ]
    n_heads = weights.shape[1]
    return {
        "heads": {kind: array(weights.flatten())},
        "ranked": [
            {
                "stack": stack,
                "kind": kind,
                "layer": at // n_heads,
                "head": at % n_heads,
                "weight": w,
            }
            for at, w in ranked
        ],
    }


def _next(tokens: Tokenizer, item: Run, path: Journey) -> dict[str, Any] | None:
    """The next token of the text; of an encoder, the unmasked token at that position."""
    at = path.position + (item.config.family != "encoder")
    if at >= len(item.ids) or item.ids[at] == tokens.mask_id:
        return None
    index = item.ids[at]
    return {**named_token(tokens, index), "probability": float(path.probabilities[index])}


def _encoder(item: Run) -> Answer | None:
    """What is shown of the encoder before a decoder: its stream, the mean over the source."""
    if item.config.family != "encoder-decoder" or "encoder" not in item.trace.residuals:
        return None
    stream = torch.cat(item.trace.residuals["encoder"])  # (L + 1, Ts, C)
    return {"norms": array(stream.norm(dim=-1).mean(dim=1)), "lens": []}


VIEW = View(
    name="journey",
    tab=mark("Journey"),
    order=0,
    predicts=True,
    title="What comes next, and why",
    help="One token's way through the network, and what each part adds to the next token.",
    pictures=(
        picture(
            answer_journey,
            title="What comes next, and why",
            help=(
                "The next token's logits, what each head and feed-forward adds to one of "
                "them, and what each layer would have predicted."
            ),
        ),
        picture(
            answer_without_head,
            title="Without one head",
            help="The next token's logits with one head switched off (ablated).",
        ),
        picture(
            answer_deciding,
            title="Which heads decide?",
            help="The heads without each of which alone another token would follow.",
        ),
        picture(
            answer_feed_forward,
            title="What a feed-forward does",
            help="The next token's logits with one feed-forward switched off, and the neurons of "
            "it that add most to a token.",
        ),
        picture(
            answer_continuation,
            title="What it would write",
            help="The likeliest tokens after a position, to the end of the sentence; with one head "
            "switched off if a site is given.",
        ),
        picture(
            answer_word_effects,
            title="Which words mattered?",
            help="The next token's probability without each word of the text, or with mask tokens "
            "in its place, and without all its mentions.",
        ),
        picture(
            answer_without_words,
            title="Without some words",
            help="The next token's logits without some tokens of the text, and what would follow.",
        ),
        picture(
            answer_telling,
            title="What is worth a look",
            help="The written token to which one head adds most beyond any other part.",
        ),
        picture(
            answer_passages,
            title="Where else?",
            help="The texts in which a head does most what it is named for.",
        ),
        picture(
            answer_neuron_passages,
            title="Where neurons fire",
            help="The sentence of many texts at which each neuron of a feed-forward fires most.",
        ),
        picture(
            answer_readers,
            title="Who reads what?",
            help="How much every head reads one token at another.",
        ),
    ),
)
