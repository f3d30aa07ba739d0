"""What breaks: a switch for each idea of the architecture, its cost, and the text without it."""

from __future__ import annotations

import math

from transformer.analysis.ablation import broken_ids
from transformer.analysis.model_queries import ModelQueries
from transformer.interventions.breaks import BREAKS, breaks_of
from transformer.interventions.descriptions import Break
from transformer.messages import mark, say
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import Bool, Text

# The description of the bundled samples, shown by breaks.js.
ABOUT = mark(
    "Written for this project; not part of any training text. A fixed sample to see a loss go up "
    "when the network is altered; far too small to compare models with."
)


def answer_broken(models: ModelQueries, model: str, *, measure: bool = False) -> Answer:
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


def answer_broken_text(models: ModelQueries, item: Run, *, what: str | None = None) -> Answer:
    """The greedy continuation of the run's prompt without one idea (None: intact)."""
    ids = models.ask(broken_ids, item, what=what)
    return {"labels": models.model(item.model).tokenizer.labels(ids[item.n_prompt :])}


VIEW = View(
    name="breaks",
    tab=mark("What if?"),
    order=550,
    folded=True,
    title=mark("What breaks?"),
    help="A switch for each idea of the architecture: its cost, and the text without it.",
    pictures=(
        Picture(
            name="broken",
            answer=answer_broken,
            subject="model",
            network=True,
            parameters=(Bool(name="measure", use="request"),),
        ),
        Picture(
            name="broken_text",
            answer=answer_broken_text,
            network=True,
            parameters=(Text(name="what", use="request", default=None, optional=True),),
        ),
    ),
)
