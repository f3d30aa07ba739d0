"""Which way the next token of a text is computed when one text is generated.

`transformer/model/` explains the network and is the reference. Two engines repeat its arithmetic
for the one case that makes generation slow, a single new token of a single text on a CPU, and are
tested equal to it: `compiled.py` and, where there is no C compiler, `packed.py`. What none of them
supports, and any other device, runs on the network itself.
"""

from __future__ import annotations

from transformer.checks import check_choice, shortened
from transformer.inference.engines.buffers import Engine, unknown_in
from transformer.inference.engines.compiled import CompiledDecoder
from transformer.inference.engines.packed import PackedDecoder
from transformer.messages import invalid, say
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

KINDS: tuple[type[CompiledDecoder] | type[PackedDecoder], ...] = (CompiledDecoder, PackedDecoder)
AUTO, NETWORK = "auto", "network"
ENGINES = (AUTO, *(kind.name for kind in KINDS), NETWORK)


def engine_of(
    network: DecoderOnly | EncoderOnly | EncoderDecoder, wanted: str = AUTO
) -> Engine | None:
    """The engine of this name, with "auto" the fastest that works here; None: the network itself.

    An encoder generates nothing that an engine could make faster: the network itself reads.
    Raises ValueError for an unknown name, and for one that this network or machine cannot have.
    """
    check_choice("engine", wanted, ENGINES)
    if wanted == NETWORK or isinstance(network, EncoderOnly):
        return None
    for kind in KINDS:
        missing = _missing(kind, network)
        if kind.name == wanted and missing:
            raise invalid(
                "engine {engine} needs {missing}; allowed: 'auto'",
                engine=shortened(wanted),
                missing=missing,
            )
        if not missing and wanted in (kind.name, AUTO):
            return kind(network)
    return None


def _missing(
    kind: type[CompiledDecoder] | type[PackedDecoder], network: DecoderOnly | EncoderDecoder
) -> str | None:
    """What an engine needs and does not have; None where it can be used."""
    if unknown := unknown_in(network.config):
        return say(
            "parts that it knows, and this network has {unknown}", unknown=", ".join(unknown)
        )
    return kind.lacks(network)


def engine_words(engine: Engine | None, network: DecoderOnly | EncoderOnly | EncoderDecoder) -> str:
    """Which engine this is, and how it reads the weights on this machine."""
    if isinstance(network, EncoderOnly):
        return f"{NETWORK}: an encoder generates no text, so no engine is needed"
    return NETWORK if engine is None else f"{engine.name}: {engine.about}"
