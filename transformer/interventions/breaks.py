"""Switches that each remove one idea of the architecture, to show its purpose.

To add one: a line in `SWITCHES`. Page, API and tests follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.messages import mark
from transformer.model.config import ModelConfig
from transformer.model.functional import masked_softmax
from transformer.model.hooks import Point
from transformer.model.positions import POSITIONS
from transformer.model.primitives import NORMS, PLACEMENTS
from transformer.model.rotary import RotaryAngles


@dataclass(frozen=True, slots=True)
class Switch:
    """why: its effect, and why the network needs what it takes away. point: one of POINTS.

    replace(config, point, value, **context) returns the value to use instead. applies_to: whether
    a network has what is switched off.
    """

    why: str
    point: str
    replace: Callable[..., Tensor | RotaryAngles]
    applies_to: Callable[[ModelConfig], bool] = lambda config: True


@dataclass(frozen=True, slots=True, eq=False)
class SwitchedOff:
    """The hook of one switch, for the whole network."""

    switch: Switch
    config: ModelConfig

    @property
    def is_local(self) -> bool:
        """See `hooks.are_local`. The positions of keys in a cache are not changed."""
        return self.switch.point != "position_ids"

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name != self.switch.point:
            return value
        context.pop("is_text", None)  # no switch reads it
        return self.switch.replace(self.config, point, value, **context)


def _unscaled(config: ModelConfig, stream: Tensor) -> Tensor:
    norm = NORMS[config.norm_kind].unscaled
    assert norm is not None, config.norm_kind
    return norm(stream, config.norm_eps).to(stream.dtype)


def _uses_positions(config: ModelConfig) -> bool:
    encoding = POSITIONS[config.positions]
    return encoding.adds or encoding.is_rotary or config.biases_scores


def _shuffled(config: ModelConfig, point: Point, positions: Tensor) -> Tensor:
    n_positions = config.max_len_of(point.stack)
    order = torch.randperm(n_positions, generator=torch.Generator().manual_seed(0), device="cpu")
    return order.to(positions.device)[positions]


def _best_key_only(config: ModelConfig, point: Point, pattern: Tensor, **context: Any) -> Tensor:
    return F.one_hot(pattern.argmax(dim=-1), pattern.shape[-1]).to(pattern.dtype)


def _all_keys_alike(
    config: ModelConfig,
    point: Point,
    pattern: Tensor,
    scores: Tensor,
    mask: Tensor | None,
    padding_mask: Tensor | None,
    **context: Any,
) -> Tensor:
    return masked_softmax(torch.zeros_like(scores), mask, padding_mask)


# The switches' names as the page shows them: with spaces instead of "-".
NAMES = (
    mark("no scale"), mark("model scale"), mark("no positions"), mark("no rotation"),
    mark("shuffled positions"), mark("no residual"), mark("no final norm"), mark("unscaled norm"),
    mark("one key head"), mark("hard attention"), mark("uniform attention"),
    mark("no attention"), mark("no feed forward"),
)  # fmt: skip
SWITCHES: dict[str, Switch] = {
    "no-scale": Switch(
        mark(
            "Without ÷ √d_head the scores grow with the head's size, and softmax "
            "becomes much sharper."
        ),
        "scores",
        lambda config, point, scores: scores * config.score_size**0.5,
        applies_to=lambda config: config.scores_are_products and config.score_size != 1,
    ),
    "model-scale": Switch(
        mark(
            "÷ √d_model instead of √d_head makes the scores too small, and the heads read "
            "nearly evenly."
        ),
        "scores",
        lambda config, point, scores: scores * (config.score_size / config.d_model) ** 0.5,
        applies_to=lambda config: config.scores_from_heads,
    ),
    "no-positions": Switch(
        mark(
            "Attention sees a set, not a sequence: without positions only a causal mask "
            "tells the network the order, if it has one."
        ),
        "pos_embed",
        lambda config, point, added, embed: torch.zeros_like(added),
        applies_to=lambda config: POSITIONS[config.positions].adds,
    ),
    "no-rotation": Switch(
        mark(
            "Queries and keys are not rotated: attention sees a set, not a sequence, and "
            "knows the order only through the causal mask."
        ),
        "rotation",
        lambda config, point, angles: RotaryAngles(
            torch.ones_like(angles.cosines), torch.zeros_like(angles.sines)
        ),
        applies_to=lambda config: POSITIONS[config.positions].is_rotary,
    ),
    "shuffled-positions": Switch(
        mark(
            "Every token is told the place of another, so heads that look one token back "
            "look anywhere."
        ),
        "position_ids",
        _shuffled,
        applies_to=_uses_positions,
    ),
    "no-residual": Switch(
        mark(
            "Each sub-layer replaces what it read instead of adding to it, and the token "
            "itself is no longer passed on."
        ),
        "skip",
        lambda config, point, x: torch.zeros_like(x),
    ),
    "no-final-norm": Switch(
        mark(
            "The output layer was trained on normalised vectors; the raw stream has another "
            "size, so the probabilities come out wrong."
        ),
        "final_norm",
        lambda config, point, normalised, stream: stream,
        applies_to=lambda config: not PLACEMENTS[config.norm].of_sum,
    ),
    "unscaled-norm": Switch(
        mark(
            "The norms in the layers lose their trained scales: each feature counts as much as "
            "any other, and layers read numbers of a kind that they were not trained on."
        ),
        "norm",
        lambda config, point, normalised, stream: _unscaled(config, stream),
        applies_to=lambda config: NORMS[config.norm_kind].unscaled is not None,
    ),
    "one-key-head": Switch(
        mark(
            "All heads of queries are compared with the first head's keys: what one head "
            "was trained to find is all that any can find."
        ),
        "k",
        lambda config, point, k: k[:, :1].expand_as(k),
        applies_to=lambda config: config.key_heads > 1,
    ),
    "hard-attention": Switch(
        mark("Each query reads only its best key (argmax), so nothing can be blended."),
        "pattern",
        _best_key_only,
    ),
    "uniform-attention": Switch(
        mark("Each query reads all allowed keys alike: what it asks for no longer matters."),
        "pattern",
        _all_keys_alike,
    ),
    "no-attention": Switch(
        mark("All heads are switched off: each token knows only itself and its place."),
        "z",
        lambda config, point, z, **context: torch.zeros_like(z),
    ),
    "no-feed-forward": Switch(
        mark("Only attention is left: what was read is passed on, but no longer worked on."),
        "mlp_out",
        lambda config, point, added: torch.zeros_like(added),
    ),
}

# Each switch's name, and why the network needs what it takes away.
BREAKS: dict[str, str] = {name: switch.why for name, switch in SWITCHES.items()}


def breaks_of(config: ModelConfig) -> list[str]:
    """The switches that apply to this network."""
    return [name for name, switch in SWITCHES.items() if switch.applies_to(config)]
