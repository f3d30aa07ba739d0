"""Other ways to do the same work, with the same weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from transformer.model.transformer import DecoderOnly

Result = tuple[list[int], Tensor | None]  # tokens; attention (L, H, rows, T) of the first rows


class Transformers:
    """Hugging Face's GPT-2 or Llama. keep: eager, with output_attentions; else its default, sdpa.

    dtype: what it holds weights in and calculates in.
    """

    def __init__(
        self, network: DecoderOnly, *, keep: bool, dtype: torch.dtype = torch.float32
    ) -> None:
        self.keep = keep
        like = llama_like if network.config.positions == "rotary" else gpt2_like
        self.peer = like(network, "eager" if keep else "sdpa").to(dtype)

    @torch.inference_mode()
    def run(self, prompt: list[int], n_new: int) -> Any:
        """Its generate(), greedy, with the cache that it uses by default."""
        ids = torch.tensor([prompt])
        return self.peer.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=n_new, min_new_tokens=n_new,
            do_sample=False, output_attentions=self.keep, return_dict_in_generate=True,
            pad_token_id=0,
        )  # fmt: skip

    def read(self, output: Any) -> Result:
        """Its steps put together: the last token was never read, so there is no row for it."""
        tokens = output.sequences[0].tolist()
        if not self.keep:
            return tokens, None
        first = output.attentions[0]
        weights = torch.zeros(len(first), first[0].shape[1], len(tokens) - 1, len(tokens))
        row = 0
        for step in output.attentions:
            n_rows, n_keys = step[0].shape[2:]
            for layer, part in enumerate(step):
                weights[layer, :, row : row + n_rows, :n_keys] = part[0]
            row += n_rows
        return tokens, weights


class TransformerLens:
    """TransformerLens 4's bridge around the same GPT-2; its generate() with return_cache."""

    def __init__(self, network: DecoderOnly) -> None:
        from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

        inside = gpt2_like(network, "eager")
        self.n_layers = network.config.n_layers
        self.bridge = build_bridge_from_module(inside, "GPT2LMHeadModel", hf_config=inside.config)

    @torch.inference_mode()
    def run(self, prompt: list[int], n_new: int) -> Any:
        """Tokens with its key-value cache; it then reads the text once more for the patterns."""
        return self.bridge.generate(
            torch.tensor([prompt]), max_new_tokens=n_new, stop_at_eos=False, do_sample=False,
            return_type="tokens", verbose=False, return_cache=True,
            names_filter=lambda name: name.endswith("hook_pattern"),
        )  # fmt: skip

    def read(self, output: Any) -> Result:
        """Tokens, and all layers' patterns."""
        tokens, cache = output
        layers = [cache["pattern", layer][0] for layer in range(self.n_layers)]
        return tokens[0].tolist(), torch.stack(layers)


class XTransformers:
    """x-transformers' decoder, its biases and positions set as a GPT-2 has them."""

    def __init__(self, network: DecoderOnly) -> None:
        from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

        config = network.config
        layers = Decoder(
            dim=config.d_model, depth=config.n_layers, heads=config.n_heads,
            attn_dim_head=config.d_head, ff_mult=config.d_ff / config.d_model,
        )  # fmt: skip
        inside = TransformerWrapper(
            num_tokens=config.vocab_size, max_seq_len=config.max_len, attn_layers=layers,
            tie_embedding=True, tie_embedding_scale=1.0,
        )  # fmt: skip
        inside.load_state_dict(x_transformers_names(network))
        self.peer = AutoregressiveWrapper(inside).eval().requires_grad_(False)

    @torch.inference_mode()
    def run(self, prompt: list[int], n_new: int) -> Any:
        """Tokens with its cache, then one pass over the text for the attention."""
        ids = torch.tensor([prompt])
        new = self.peer.generate(ids, n_new, temperature=0.0, cache_kv=True)
        whole = torch.cat([ids, new], dim=1)
        return whole, self.peer.net(whole, return_attn=True)[1]

    def read(self, output: Any) -> Result:
        """Tokens, and all layers' attention."""
        tokens, layers = output
        return tokens[0].tolist(), torch.stack([layer[0] for layer in layers])


class WithoutCache:
    """The short loop of nanoGPT and of the tutorials: for each token the whole text again.

    As nanoGPT does, it reads with the fused kernel and makes the logits of the last place alone.
    """

    def __init__(self, network: DecoderOnly) -> None:
        self.network = network

    @torch.inference_mode()
    def run(self, prompt: list[int], n_new: int) -> list[int]:
        """Tokens alone."""
        ids = torch.tensor([prompt])
        for _ in range(n_new):
            last = torch.zeros_like(ids, dtype=torch.bool)
            last[0, -1] = True
            best = self.network(ids, where=last).argmax(dim=-1)
            ids = torch.cat([ids, best[None]], dim=1)
        return ids[0].tolist()

    def read(self, output: list[int]) -> Result:
        """No attention was kept."""
        return output, None


def gpt2_like(network: DecoderOnly, attention: str) -> Any:
    """A transformers GPT-2 with our weights (tied head, exact GELU); attention: eager or sdpa."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = network.config
    settings: dict[str, Any] = dict(
        vocab_size=config.vocab_size, n_positions=config.max_len, n_embd=config.d_model,
        n_layer=config.n_layers, n_head=config.n_heads, n_inner=config.d_ff,
        activation_function="gelu", layer_norm_epsilon=config.norm_eps,
        attn_implementation=attention, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    peer = GPT2LMHeadModel(GPT2Config(**settings))
    peer.load_state_dict(_gpt2_names(network))
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


def llama_like(network: DecoderOnly, attention: str) -> Any:
    """A transformers Llama with our weights (tied head); attention: eager or sdpa."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = network.config
    settings: dict[str, Any] = dict(
        vocab_size=config.vocab_size, max_position_embeddings=config.max_len,
        hidden_size=config.d_model, num_hidden_layers=config.n_layers, head_dim=config.d_head,
        num_attention_heads=config.n_heads, num_key_value_heads=config.key_heads,
        intermediate_size=config.d_ff, hidden_act="silu", rms_norm_eps=config.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rotary_base},
        tie_word_embeddings=True, attention_bias=False, mlp_bias=False,
        attn_implementation=attention, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    peer = LlamaForCausalLM(LlamaConfig(**settings))
    peer.load_state_dict(_llama_names(network))
    return peer.eval().requires_grad_(False)


LLAMA_PARTS = {
    "self_residual.norm": "input_layernorm",
    "feed_forward_residual.norm": "post_attention_layernorm",
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.o_proj",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.expand": "mlp.up_proj",
    "feed_forward.contract": "mlp.down_proj",
}


def _llama_names(network: DecoderOnly) -> dict[str, Tensor]:
    """Our weights under Llama's names."""
    own = network.state_dict()
    result = {
        "model.embed_tokens.weight": own["embedding.tokens.weight"],
        "model.norm.weight": own["decoder.norm.weight"],
        "lm_head.weight": own["head.weight"],
    }
    for index in range(network.config.n_layers):
        for mine, theirs in LLAMA_PARTS.items():
            name = f"model.layers.{index}.{theirs}.weight"
            result[name] = own[f"decoder.layers.{index}.{mine}.weight"]
    return result


def x_transformers_names(network: DecoderOnly) -> dict[str, Tensor]:
    """Our weights under its names: attention and feed-forward are layers of their own there.

    It divides its position embedding by sqrt(C) and adds 1 to a norm's gain. Raises ValueError for
    biases that it cannot hold.
    """
    own = network.state_dict()
    for name, value in own.items():
        if name.endswith("bias") and "feed_forward." not in name and value.any():
            raise ValueError(f"x-transformers has no place for {name}; needed: zeros")
    result = {
        "token_emb.emb.weight": own["embedding.tokens.weight"],
        "pos_emb.emb.weight": own["embedding.positions.table.weight"] * network.config.d_model**0.5,
        "attn_layers.final_norm.gamma": own["decoder.norm.weight"] - 1,
    }
    for index in range(network.config.n_layers):
        ours = f"decoder.layers.{index}."
        first, second = (f"attn_layers.layers.{2 * index + place}." for place in (0, 1))
        result[f"{first}0.0.gamma"] = own[f"{ours}self_residual.norm.weight"] - 1
        result[f"{second}0.0.gamma"] = own[f"{ours}feed_forward_residual.norm.weight"] - 1
        maps = {"query": "to_q", "key": "to_k", "value": "to_v", "output": "to_out"}
        for mine, name in maps.items():
            result[f"{first}1.{name}.weight"] = own[f"{ours}self_attention.{mine}.weight"]
        for mine, name in (("expand", "ff.0.0"), ("contract", "ff.2")):
            for part in ("weight", "bias"):
                result[f"{second}1.{name}.{part}"] = own[f"{ours}feed_forward.{mine}.{part}"]
    return result
