"""Parameters that many views share, and words that they have in common."""

from __future__ import annotations

import dataclasses

from transformer.messages import mark
from transformer.model.sites import KINDS, STACKS
from transformer.views.parameters import Choice, HeadOrMean, Int, Text

SITE = Text(name="site", title=mark("Attention"), default="decoder.0.self", use="selection")
HEAD = HeadOrMean(name="head", title=mark("Head"))
STACK = Choice(
    name="stack", title=mark("Stack"),
    options=dict(zip(STACKS, STACKS, strict=True)), use="selection",
    optional=True,
)  # fmt: skip
OF_STACK = dataclasses.replace(STACK, default="decoder", optional=False)
KIND = Choice(
    name="kind", title=mark("Kind"), options=dict(zip(KINDS, KINDS, strict=True)), default="self",
    use="selection",
)  # fmt: skip
QUERY = Int(name="query", title=mark("Query"), use="selection", optional=True)
ROW = Int(name="row", title="Sentence", default=0, use="request")
POSITION = Int(name="position", default=1, use="selection")
