"""What a feed-forward does at one token, and the neurons that do most there."""

from __future__ import annotations

from typing import Annotated, Any

from transformer.analysis.feed_forward import Neuron, feed_forward_at
from transformer.analysis.model_queries import ModelQueries
from transformer.inference.model import Model
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.declaration import Answer
from transformer.views.journey.tokens import likeliest_of
from transformer.views.parameters import LAST_READ, STACK, TARGET, Int

N_WITHOUT = 5
LAYER = Int(title="Layer", use="request")
NEURON = Int(title="Neuron", help="One to show besides those that add most.", use="request")


def answer_feed_forward(
    models: ModelQueries,
    item: Run,
    *,
    stack: Annotated[str, STACK],
    layer: Annotated[int, LAYER] = 0,
    position: Annotated[int | None, LAST_READ] = None,
    target: Annotated[int | None, TARGET] = None,
    neuron: Annotated[int | None, NEURON] = None,
) -> Answer:
    """The next token's logits without a feed-forward, what would follow, and its neurons that add
    most."""
    place = {"position": position, "target": target, "neuron": neuron}
    effect = models.ask(feed_forward_at, item, stack=stack, layer=layer, **place)
    model = models.model(item.model)
    return {
        "logits": array(effect.logits),
        "likeliest": likeliest_of(model.tokenizer, effect.logits, N_WITHOUT),
        "labels": model.tokenizer.labels(effect.written),
        "n_neurons": effect.n_neurons,
        "neurons": [_plain(model, neuron) for neuron in effect.neurons],
    }


def _plain(model: Model, neuron: Neuron) -> dict[str, Any]:
    return {
        "index": neuron.index,
        "activation": neuron.activation,
        "activations": array(neuron.activations),
        "adds": neuron.adds,
        "writes": model.tokenizer.labels(neuron.writes),
    }
