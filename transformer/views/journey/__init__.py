"""The journey of one token through the network, to the word that follows."""

from __future__ import annotations

from transformer.messages import mark
from transformer.views.declaration import Picture, View
from transformer.views.journey.journey import answer_journey, answer_readers, answer_without_head
from transformer.views.parameters import KIND, OF_STACK, SITE, Int

_POSITION = Int(
    name="position",
    title=mark("Last token read"),
    help=mark("Its place in the text; without one, the last."),
    use="selection",
    optional=True,
)
VIEW = View(
    name="journey",
    tab=mark("Journey"),
    order=0,
    title=mark("What comes next, and why"),
    help=mark("One token's way through the network, and what each part adds to the next token."),
    pictures=(
        Picture(
            name="journey",
            title=mark("What comes next, and why"),
            help=mark(
                "The next token's logits, what each head and feed-forward adds to one of them, and "
                "what each layer would have predicted."
            ),
            answer=answer_journey,
            network=True,
            parameters=(
                _POSITION,
                Int(
                    name="target",
                    title=mark("Token"),
                    help=mark("The id of the token that parts add to; without one, the likeliest."),
                    use="request",
                    optional=True,
                ),
            ),
        ),
        Picture(
            name="without_head",
            title=mark("Without one head"),
            help=mark("The next token's logits with one head switched off (ablated)."),
            answer=answer_without_head,
            network=True,
            parameters=(
                _POSITION,
                SITE,
                Int(name="head", title=mark("Head"), use="selection", default=0),
            ),
        ),
        Picture(
            name="readers",
            title=mark("Who reads what?"),
            help=mark("How much every head reads one token at another."),
            answer=answer_readers,
            parameters=(
                OF_STACK,
                Int(name="query", title=mark("Reading token"), use="selection", default=0),
                KIND,
                Int(name="key", title=mark("Token that is read"), use="selection", default=0),
            ),
        ),
    ),
)
