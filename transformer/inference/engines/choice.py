"""The engine that computes the next token when one text is generated.

`transformer/model/` explains the network and is the reference. `compiled.py` repeats its arithmetic
for the case that makes generation slow, one new token of one text on a CPU, and is tested equal to
it. Everything else, and any other device, runs on the network itself.
"""

from __future__ import annotations

from transformer.checks import check_choice
from transformer.inference.engines.compiled import CompiledDecoder
from transformer.inference.engines.engine import Engine
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

KINDS: tuple[type[Engine], ...] = (CompiledDecoder,)  # the fastest first
AUTO, NETWORK = "auto", "network"
ENGINES = (AUTO, *(kind.name for kind in KINDS), NETWORK)


def engine_of(
    network: DecoderOnly | EncoderOnly | EncoderDecoder, name: str = AUTO
) -> Engine | None:
    """The engine of this name ("auto": the fastest that works here), or None for the network.

    An encoder generates no text, so it has no engine. Raises ValueError for an unknown name, and
    for an engine that this network or machine cannot have.
    """
    check_choice("engine", name, ENGINES)
    if name == NETWORK or isinstance(network, EncoderOnly):
        return None
    for kind in KINDS:
        missing = kind.missing(network)
        if not missing and name in (kind.name, AUTO):
            return kind(network)
        if kind.name == name:
            raise ValueError(f"engine '{name}' needs {missing}; allowed: 'auto'")
    return None


def engine_words(engine: Engine | None, network: DecoderOnly | EncoderOnly | EncoderDecoder) -> str:
    """An engine's name and how it reads the weights on this machine."""
    if isinstance(network, EncoderOnly):
        return f"{NETWORK}: an encoder generates no text, so no engine is needed"
    return NETWORK if engine is None else f"{engine.name}: {engine.about}"
