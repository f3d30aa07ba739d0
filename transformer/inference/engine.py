"""Which way the next token of a text is computed when one text is generated.

`transformer/model/` explains the network and is the reference. Three engines repeat its arithmetic
for the one case that makes generation slow, a single new token of a single text, and are tested
equal to it: on a CPU `compiled.py` and, where there is no C compiler, `packed.py`; on a GPU
`graphed.py`.
"""

from __future__ import annotations

import torch

from transformer.inference import native
from transformer.inference.buffers import Engine
from transformer.inference.compiled import CompiledDecoder
from transformer.inference.graphed import GraphedDecoder
from transformer.inference.packed import PackedDecoder
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

AUTO, NETWORK = "auto", "network"
ENGINES = (AUTO, CompiledDecoder.name, PackedDecoder.name, GraphedDecoder.name, NETWORK)


def engine_of(
    network: DecoderOnly | EncoderOnly | EncoderDecoder, wanted: str = AUTO
) -> Engine | None:
    """The engine of this name, with "auto" the fastest that works here; None: the network itself.

    Raises ValueError for an unknown name, and for one that this network or machine cannot have.
    """
    if wanted not in ENGINES:
        raise ValueError(f"engine must be one of {list(ENGINES)}; got {wanted!r}")
    if wanted == NETWORK:
        return None
    if isinstance(network, EncoderOnly):
        if wanted == AUTO:
            return None
        raise ValueError(f"engine {wanted!r} needs a decoder, and there is none; allowed: 'auto'")
    if wanted == GraphedDecoder.name or (wanted == AUTO and network.device.type == "cuda"):
        return GraphedDecoder(network)
    if not _is_plain(network):
        if wanted == AUTO:
            return None
        raise ValueError(f"engine {wanted!r} needs float32 weights on a CPU; allowed: 'auto'")
    if wanted == PackedDecoder.name:
        return PackedDecoder(network)
    if native.read_token() is not None:
        return CompiledDecoder(network)
    if wanted == AUTO:
        return PackedDecoder(network)
    raise ValueError(f"engine {wanted!r} needs a C compiler, and none was found; allowed: 'auto'")


def _is_plain(network: DecoderOnly | EncoderDecoder) -> bool:
    return network.device.type == "cpu" and network.head.weight.dtype == torch.float32
