"""The position of each block in the drawing of a network, in pixels from the lower left."""

from __future__ import annotations

from dataclasses import dataclass, field

from transformer.messages import numeral, say, say_n
from transformer.model.config import ModelConfig
from transformer.model.primitives import PLACEMENTS
from transformer.model.summary import Block, blocks, length_of

BOX_WIDTH, BOX_HEIGHT, THIN_HEIGHT = 252, 42, 26
LANE = 30  # from a box to the frame of its layer; the residual line runs in it
BETWEEN = 44  # from an encoder to its decoder
ARROW, SHORT_ARROW, LONG_ARROW = 18, 12, 34
RADIUS = 9  # of a circle where two paths are added
LINE_HEIGHT = 20
COLUMN_WIDTH = BOX_WIDTH + 2 * LANE

Point = tuple[float, float]
Link = tuple[Point, ...]  # a line through these points, with an arrow head at the last


@dataclass(frozen=True, slots=True)
class Box:
    """A block; x, y: the middle of its lower edge."""

    block: Block
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """A text outside the boxes; anchor: its side at x."""

    text: str
    x: float
    y: float
    anchor: str = "center"


@dataclass(slots=True)
class Arrangement:
    """Everything that is drawn. frames: (x0, y0, x1, y1) around a layer's blocks; sums: centres
    of the circles where two paths are added."""

    width: float = 0
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    frames: list[tuple[float, float, float, float]] = field(default_factory=list)
    sums: list[Point] = field(default_factory=list)


def arrange(config: ModelConfig) -> Arrangement:
    """Arrange a column for each stack, the encoder's on the left."""
    plan = Arrangement()
    stacks = list(dict.fromkeys(block.stack for block in blocks(config)))
    tops = {}
    for place, stack in enumerate(stacks):
        middle = COLUMN_WIDTH / 2 + place * (COLUMN_WIDTH + BETWEEN)
        residuals_on_left = len(stacks) == 2 and place == 0
        column = _Column(config, plan, stack, middle, -1 if residuals_on_left else 1)
        tops[stack] = column.build()
    if len(stacks) == 2:
        _link_memory(config, plan, tops["encoder"])
    plan.width = len(stacks) * COLUMN_WIDTH + (len(stacks) - 1) * BETWEEN
    plan.height = max(tops.values()) + 2
    return plan


def _link_memory(config: ModelConfig, plan: Arrangement, top: float) -> None:
    """Add the link from the encoder's end to the cross-attention."""
    middle, between = COLUMN_WIDTH / 2, COLUMN_WIDTH + BETWEEN / 2
    cross = next(box for box in plan.boxes if box.block.name == "decoder.cross")
    level = cross.y + cross.height / 2
    last = [box for box in plan.boxes if box.block.stack == "encoder"][-1]
    start = last.y + last.height
    over = top - LONG_ARROW / 2 + 2
    edge = cross.x - BOX_WIDTH / 2
    path = ((middle, start), (middle, over), (between, over), (between, level), (edge, level))
    plan.links.append(path)
    plan.labels.append(
        Label(say("memory (S, {d_model})", d_model=numeral(config.d_model)), middle, over + 12)
    )


class _Column:
    """Builds one stack from below; `y` is the height so far."""

    def __init__(
        self, config: ModelConfig, plan: Arrangement, stack: str, middle: float, side: int
    ) -> None:
        self.config, self.plan, self.stack = config, plan, stack
        self.x, self.side, self.y = middle, side, 0.0
        self.blocks = [block for block in blocks(config) if block.stack == stack]
        self.length = length_of(config, stack)
        self.above = 0.0  # space that the next arrow crosses in addition to its length

    def build(self) -> float:
        """Add everything to the plan; return the upper end."""
        read = say("tokens of the text")
        if self.config.family == "encoder-decoder":
            of_source = self.stack == "encoder"
            read = say("source tokens") if of_source else say("target tokens so far")
        self._say(f"{read} ({self.length})")
        for block in self.blocks:
            if block.in_layer:
                break
            self._step(block, ARROW)
        self._layers([block for block in self.blocks if block.in_layer])
        after = [
            b
            for b in self.blocks
            if b.kind in ("final_norm", "transform", "labels", "head", "softmax")
        ]
        for block in after:
            self._step(block, ARROW)
        if after and after[-1].kind == "softmax":
            self._arrow(ARROW)
            self._say(
                say("what stands there")
                if self.config.family == "encoder"
                else say("what comes next")
            )
            return self.y
        return self.y + self.above + LONG_ARROW

    def _say(self, text: str) -> None:
        self.plan.labels.append(Label(text, self.x, self.y + LINE_HEIGHT / 2))
        self.y += LINE_HEIGHT

    def _arrow(self, length: float) -> None:
        length, self.above = length + self.above, 0.0
        self.plan.links.append(((self.x, self.y), (self.x, self.y + length)))
        self.y += length

    def _step(self, block: Block, arrow: float) -> Box:
        """Add an arrow, then the block's box."""
        self._arrow(arrow)
        thin = block.kind in ("norm", "final_norm", "norm_embeddings")
        box = Box(block, self.x, self.y, THIN_HEIGHT if thin else BOX_HEIGHT)
        self.plan.boxes.append(box)
        self.y += box.height
        return box

    def _aside(self, block: Block, reads_from: float) -> Box:
        """Add a box that reads the stream from `reads_from`, below the block under it; the line
        goes around that block on the side without residuals."""
        turn, enters = self.y + ARROW - 10, self.y + ARROW + 4
        lane = self.x - self.side * (BOX_WIDTH / 2 + LANE * 0.55)
        self.y = enters + SHORT_ARROW
        path = ((self.x, reads_from), (lane, reads_from), (lane, enters), (self.x, enters))
        self.plan.links.append(((self.x, turn - (ARROW - 10)), (self.x, turn)))
        self.plan.links.append((*path, (self.x, self.y)))
        box = Box(block, self.x, self.y, THIN_HEIGHT)
        self.plan.boxes.append(box)
        self.y += box.height
        return box

    def _layers(self, inside: list[Block]) -> None:
        """Add the blocks of one layer, each with its norms, and their frame."""
        shape = f"({self.length}, {numeral(self.config.d_model)})"
        self.plan.labels.append(Label(shape, self.x + 8, self.y + 11, "left"))
        bottom, start = self.y + LONG_ARROW - 12, self.y + LONG_ARROW - 4
        size = len(inside) // sum(block.kind != "norm" for block in inside)
        for place in range(0, len(inside), size):
            arrow = ARROW if place else LONG_ARROW + 6
            reads_from = start if place and self.config.parallel else None
            self._sublayer(inside[place : place + size], arrow, reads_from)
        name = say_n("× {n} layer", "× {n} layers", self.config.n_layers_of(inside[0].stack))
        self.above = LINE_HEIGHT
        half = COLUMN_WIDTH / 2
        far = self.x - self.side * (half - 10)
        anchor = "left" if self.side > 0 else "right"
        text = f"<b>{name}</b>"
        self.plan.labels.append(Label(text, far, self.y + self.above - 10, anchor))
        top = self.y + self.above + 5
        self.plan.frames.append((self.x - half, bottom, self.x + half, top))

    def _sublayer(self, blocks: list[Block], arrow: float, reads_from: float | None) -> None:
        """Add boxes, and the line of the residual stream around all or, if the last one is a norm
        of the sum, around the others.

        reads_from: the height at which their input branches off, if it does not come from below.
        """
        branch = self.y + arrow - 10
        first, *others = blocks
        lowest = last = (
            self._step(first, arrow) if reads_from is None else self._aside(first, reads_from)
        )
        for block in others:
            last = self._step(block, SHORT_ARROW)
        lane = self.x + self.side * (BOX_WIDTH / 2 + LANE * 0.55)
        if not PLACEMENTS[self.config.norm].of_sum:
            self._arrow(SHORT_ARROW)
            level, edge = self.y + RADIUS, self.x + self.side * RADIUS
            self.plan.sums.append((self.x, level))
            self.y += 2 * RADIUS
        else:
            level, edge = last.y + last.height / 2, self.x + self.side * BOX_WIDTH / 2
        assert lowest.y < level
        path = ((self.x, branch), (lane, branch), (lane, level), (edge, level))
        self.plan.links.append(path)
