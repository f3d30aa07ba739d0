"""Other ways to do the same work, with the same weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly


def gpt2_like(network: DecoderOnly) -> Any:
    """A transformers GPT-2 with our weights (tied head, exact GELU)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = network.config
    peer = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab_size, n_positions=config.max_len, n_embd=config.d_model,
            n_layer=config.n_layers, n_head=config.n_heads, n_inner=config.d_ff,
            activation_function="gelu", layer_norm_epsilon=config.norm_eps,
            attn_implementation="eager", bos_token_id=None, eos_token_id=None,
        )
    )  # fmt: skip
    peer.load_state_dict(_gpt2_names(network), strict=False)
    return peer.eval().requires_grad_(False)


def _gpt2_names(network: DecoderOnly) -> dict[str, Tensor]:
    """Our weights under GPT-2's names; its linear layers keep [in, out]."""
    own = network.state_dict()
    result = {
        "transformer.wte.weight": own["embedding.tokens.weight"],
        "transformer.wpe.weight": own["embedding.positions.table.weight"],
        "transformer.ln_f.weight": own["decoder.norm.weight"],
        "transformer.ln_f.bias": own["decoder.norm.bias"],
        "lm_head.weight": own["head.weight"],
    }
    for index in range(network.config.n_layers):
        ours, theirs = f"decoder.layers.{index}.", f"transformer.h.{index}."
        for norm, name in (("self_residual", "ln_1"), ("feed_forward_residual", "ln_2")):
            for part in ("weight", "bias"):
                result[f"{theirs}{name}.{part}"] = own[f"{ours}{norm}.norm.{part}"]
        parts = [f"{ours}self_attention.{name}." for name in ("query", "key", "value")]
        result[f"{theirs}attn.c_attn.weight"] = torch.cat([own[f"{p}weight"].T for p in parts], 1)
        result[f"{theirs}attn.c_attn.bias"] = torch.cat([own[f"{p}bias"] for p in parts])
        for mine, name in (
            ("self_attention.output", "attn.c_proj"),
            ("feed_forward.expand", "mlp.c_fc"),
            ("feed_forward.contract", "mlp.c_proj"),
        ):
            result[f"{theirs}{name}.weight"] = own[f"{ours}{mine}.weight"].T
            result[f"{theirs}{name}.bias"] = own[f"{ours}{mine}.bias"]
    return result


@torch.inference_mode()
def transformers_generate(peer: Any, prompt: list[int], n_new: int) -> tuple[list[int], Tensor]:
    """transformers' generate with output_attentions, its steps put together: (L, H, T - 1, T)."""
    ids = torch.tensor([prompt])
    output = peer.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=n_new, min_new_tokens=n_new,
        do_sample=False, output_attentions=True, return_dict_in_generate=True, pad_token_id=0,
    )  # fmt: skip
    tokens = output.sequences[0].tolist()
    length = len(tokens)
    n_layers, n_heads = len(output.attentions[0]), output.attentions[0][0].shape[1]
    weights = torch.zeros(n_layers, n_heads, length, length)
    row = 0
    for step in output.attentions:
        for layer, part in enumerate(step):
            _, _, n_rows, n_keys = part.shape
            weights[layer, :, row : row + n_rows, :n_keys] = part[0]
        row += n_rows
    # The last token was never read: there is no row for it.
    return tokens, weights[:, :, :row]


@torch.inference_mode()
def greedy_without_cache(
    network: DecoderOnly, prompt: list[int], n_new: int
) -> tuple[list[int], Tensor]:
    """The tutorials' loop: the whole text again for each token, with the attention kept."""
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(network(torch.tensor([ids]), trace=Trace())[0, -1].argmax()))
    trace = Trace()
    network(torch.tensor([ids]), trace=trace)
    return ids, trace.weights("decoder")[:, 0]
