"""Other ways to do the same work, with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.model.transformer import DecoderOnly

Result = tuple[list[int], Tensor | None]  # tokens; attention (L, H, rows, T) of the first rows


def theirs(folder: Path, attention: str, dtype: torch.dtype = torch.float32) -> Any:
    """The checkpoint as transformers loads it; attention: eager or sdpa."""
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation=attention, dtype=dtype
    )
    return loaded.eval().requires_grad_(False)


class Transformers:
    """Hugging Face's GPT-2 or Llama. keep: eager, with output_attentions; else its default, sdpa.

    dtype: what it holds weights in and calculates in.
    """

    def __init__(self, folder: Path, *, keep: bool, dtype: torch.dtype = torch.float32) -> None:
        self.keep = keep
        self.peer = theirs(folder, "eager" if keep else "sdpa", dtype)

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

    def __init__(self, folder: Path) -> None:
        from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

        inside = theirs(folder, "eager")
        self.n_layers = inside.config.n_layer
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


def x_transformers_names(network: DecoderOnly) -> dict[str, Tensor]:
    """Our weights under its names: attention and feed-forward are separate layers there.

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
