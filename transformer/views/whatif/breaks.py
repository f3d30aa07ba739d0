"""What if?: what a prompt becomes without one head or one idea of the network, and the cost."""

from __future__ import annotations

import math
from typing import Annotated

from transformer.analysis.ablation import broken_guess, broken_ids, intact_ids
from transformer.analysis.model_queries import ModelQueries
from transformer.interventions.breaks import BREAKS, breaks_of
from transformer.interventions.descriptions import Ablate, Break, Intervention
from transformer.messages import mark, say
from transformer.model.sites import Site
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.parameters import Bool, Int, Text

# The description of the bundled samples, shown by breaks.js.
ABOUT = mark(
    "Written for this project; not part of any training text. A fixed sample to see a loss go up "
    "when the network is altered; far too small to compare models with."
)


def answer_broken(
    models: ModelQueries, model: str, *, measure: Annotated[bool, Bool(use="request")] = False
) -> Answer:
    """Every switch with its reason; the losses where they are known, or asked for by `measure`."""
    chosen = models.model(model)
    losses = models.losses_without(model) if measure else models.known_losses(model)
    sample = chosen.sample
    return {
        "rows": [
            {
                "what": what,
                "says": str(Break(what)),
                "why": say(BREAKS[what]),
                "loss": losses.get(what),
            }
            for what in breaks_of(chosen.config)
        ],
        "intact": losses.get(None),
        "even": math.log(chosen.config.output_vocab_size),
        "about": sample.about if sample else None,
        "n_texts": len(sample.texts) if sample else 0,
    }


def answer_broken_text(
    models: ModelQueries,
    item: Run,
    *,
    what: Annotated[str | None, Text(use="request")] = None,
    site: Annotated[str | None, Text(use="request")] = None,
    head: Annotated[int, Int(use="request")] = 0,
    position: Annotated[int | None, Int(use="selection")] = None,
) -> Answer:
    """The greedy continuation of the run's prompt without one idea or one head (None: intact).

    Of an encoder: its guess for the token at `position`, with the probability.
    """
    missing: list[Intervention] = [] if what is None else [Break(what)]
    if site is not None:
        stack, layer, kind = Site.parse(site)
        missing.append(Ablate(stack, layer, [head], kind))
    model = models.model(item.model)
    if item.config.family == "encoder":
        place = model.last_read(item) if position is None else position
        guess, probability = models.ask(broken_guess, item, position=place, missing=tuple(missing))
        return {"labels": model.tokenizer.labels([guess]), "probability": probability}
    ids = models.ask(broken_ids, item, missing=tuple(missing))
    return {"labels": model.tokenizer.labels(ids[item.n_prompt :])}


def answer_intact_text(
    models: ModelQueries, item: Run, *, forced: Annotated[bool, Bool(use="request")] = True
) -> Answer:
    """The intact network's run of the same request, and where the two texts diverge.

    forced False: without the tokens that were forced either.
    """
    ids = models.ask(intact_ids, item, forced=forced)
    same = next(
        (at for at, (a, b) in enumerate(zip(ids, item.ids, strict=False)) if a != b),
        min(len(ids), len(item.ids)),
    )
    return {
        "labels": models.model(item.model).tokenizer.labels(ids),
        "n_prompt": item.n_prompt,
        "same": same,
        "equal": ids == item.ids,
    }


VIEW = View(
    name="breaks",
    tab=mark("What if?"),
    order=500,
    predicts=True,
    title=mark("What breaks?"),
    help="What a prompt becomes without one head or one idea of the network, and its cost.",
    pictures=(picture(answer_broken), picture(answer_broken_text), picture(answer_intact_text)),
)
