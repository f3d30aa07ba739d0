"""OPT: positions count from row 2; the 350m model has norms after blocks and narrow embeddings."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import ACTIVATIONS, Values, one_of, only, sizes_of
from transformer.checkpoint.adapters.stored import FAIRSEQ_LAYER, Stored
from transformer.model.config import ModelConfig
from transformer.model.positions import FIRST_OF_FAIRSEQ

_SIZES = (
    "vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
    "max_position_embeddings", "ffn_dim",
)  # fmt: skip


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(values, layer_norm_elementwise_affine=True, _remove_final_layer_norm=False)
    sizes = sizes_of(values, max_len, _SIZES)
    bias = values.get("enable_bias", True)
    if _is_narrow(values):  # multiplied into two tables
        values = {**values, "tie_word_embeddings": False}
    decoder = decoder_of(
        values,
        stored,
        sizes,
        norm="pre" if values.get("do_layer_norm_before", True) else "post",
        positions="learned",
        activation=one_of(values, "activation_function", ACTIVATIONS, "relu"),
        attention_bias=bias,
        feed_forward_bias=bias,
    )
    if decoder.head != "tokens":  # it would read the narrow stream
        only(values, word_embed_proj_dim=sizes["d_model"])
    return decoder


def _is_narrow(values: Values) -> bool:
    """Whether embeddings are narrower than the stream."""
    return values.get("word_embed_proj_dim") not in (None, values["hidden_size"])


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, "decoder.", called=lambda name: name.removeprefix("model."))
    if _is_narrow(values):  # maps without a bias, multiplied into the tables here
        tokens, own = theirs.tied("embed_tokens.weight", "lm_head.weight")
        assert tokens is not None
        head = tokens if own is None else own
        ours = {
            "embedding.tokens.weight": tokens.float() @ theirs.take("project_in.weight").float().T,
            "head.weight": head.float() @ theirs.take("project_out.weight").float(),
        }
    else:
        ours = embedding_and_head(theirs, config, values, "embed_tokens.weight", "lm_head.weight")
    table = theirs.take("embed_positions.weight")
    rows = slice(FIRST_OF_FAIRSEQ, FIRST_OF_FAIRSEQ + config.max_len)
    ours["embedding.positions.table.weight"] = table[rows]
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", FAIRSEQ_LAYER)
    if config.norm == "pre":
        ours |= theirs.linear("decoder.norm", "final_layer_norm")
    theirs.finish(values)
    return ours
