"""What a step chose from, how the text and each layer fared, and what a beam search weighed."""

from __future__ import annotations

from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import Int
from transformer.views.prediction import candidates as of_step
from transformer.views.prediction.beams import beam_tree
from transformer.views.prediction.candidates import how_at, step_of
from transformer.views.prediction.lens import logit_lens, what_is_done
from transformer.views.prediction.surprisal import in_words, summarise, why_none
from transformer.views.prediction.surprisal import surprisal as surprisal_figure

LENS_COLUMNS = 48  # tokens that the page shows at once; more would be slow to draw


def answer_candidates(item: Run, *, step: int) -> Answer:
    """What one step chose from, and the window of tokens that it saw."""
    found = step_of(item, step)
    start, stop = found.window
    return {
        "figure": of_step.candidates(item, step),
        "chosen": item.labels[stop],
        "probability": found.chosen.probability,
        "how": how_at(item, found),
        "window": [start, stop],
        "seen": list(item.labels[start:stop]),
        "slid": start > 0,
    }


def answer_surprisal(item: Run) -> Answer:
    """How much each token surprised the network; {"none": why} where nothing could."""
    reason = why_none(item)
    if reason is not None:
        return {"none": reason}
    return {
        "figure": surprisal_figure(item),
        "says": in_words(summarise(item)),
    }


def answer_lens(item: Run, *, first: int = 0) -> Answer:
    """What each layer would have said, for LENS_COLUMNS tokens from traced token `first` on."""
    figure = logit_lens(item, first=first, count=LENS_COLUMNS)
    return {
        "figure": figure,
        "says": what_is_done(item),
        "tied": item.config.tie_embeddings,
        "predicts": item.config.family != "encoder",
        "columns": LENS_COLUMNS,
    }


VIEW = View(
    name="prediction",
    tab=mark("Prediction"),
    order=420,
    part="next",
    title=mark("Prediction"),
    help=mark(
        "What each step could have chosen, what surprised the network, and what each layer said."
    ),
    parameters=(Int(name="lens", title=mark("First token of the lens"), default=0, link="lens"),),
    pictures=(
        Picture(
            name="candidates",
            title=mark("Candidates"),
            help=mark(
                "The likeliest next tokens of a step, before and after temperature and filters."
            ),
            figure=of_step.candidates,
            answer=answer_candidates,
            parameters=(Int(name="step", default=0, use="selection"),),
        ),
        Picture(
            name="surprisal",
            title=mark("Surprisal"),
            help=mark("How many bits each token of the text surprised the network by, −log₂ p."),
            figure=surprisal_figure,
            answer=answer_surprisal,
            lens=True,
        ),
        Picture(
            name="lens",
            title=mark("Logit lens"),
            help=mark("What each layer would have said comes next, had the network ended there."),
            figure=logit_lens,
            answer=answer_lens,
            lens=True,
            parameters=(Int(name="first", default=0, use="request"),),
        ),
        Picture(
            name="beams",
            title=mark("Beam search"),
            help=mark(
                "Which hypotheses went on, ended or were cut at each step, likeliest on top."
            ),
            figure=beam_tree,
        ),
    ),
)
