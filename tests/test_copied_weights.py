"""Two well-known networks, from transformers, with our weights copied into them."""

import torch
from builders import FF, T_MAX, C, H, L, V, ids, network

from transformer import Trace
from transformer.inference.generation import generate


@torch.no_grad()
def copy_gpt2(to, source):
    """Our decoder-only weights into transformers' GPT-2, whose linear maps are transposed."""
    to.wte.weight.copy_(source.embedding.tokens.weight)
    to.wpe.weight.copy_(source.embedding.positions.table.weight)
    to.ln_f.load_state_dict(source.decoder.norm.state_dict())
    for block, layer in zip(to.h, source.decoder.layers, strict=True):
        attention = layer.self_attention
        three = [attention.query, attention.key, attention.value]
        block.attn.c_attn.weight.copy_(torch.cat([p.weight for p in three]).T)
        block.attn.c_attn.bias.copy_(torch.cat([p.bias for p in three]))
        for conv, linear in [
            (block.attn.c_proj, attention.output),
            (block.mlp.c_fc, layer.feed_forward.expand),
            (block.mlp.c_proj, layer.feed_forward.contract),
        ]:
            conv.weight.copy_(linear.weight.T)
            conv.bias.copy_(linear.bias)
        block.ln_1.load_state_dict(layer.self_residual.norm.state_dict())
        block.ln_2.load_state_dict(layer.feed_forward_residual.norm.state_dict())


def gpt2_pair(**changes):
    """A GPT of ours and transformers' GPT-2 with the same weights."""
    import transformers  # slow to import, so only where needed

    style = dict(positions="learned", activation="gelu", head_bias=False, tie_embeddings=True)
    ours = network(**{**style, "padding_id": None, **changes})
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=V,
            n_positions=ours.config.max_len,
            n_embd=C,
            n_layer=L,
            n_head=H,
            n_inner=FF,
            activation_function="gelu",
            attn_implementation="eager",
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        )
    ).eval()
    copy_gpt2(theirs.transformer, ours)
    return ours, theirs


def test_our_gpt_is_gpt2_with_copied_weights():
    ours, theirs = gpt2_pair()
    tokens, trace = ids(2, 7), Trace()
    logits = ours(tokens, trace=trace)
    expected = theirs(tokens, output_attentions=True)
    torch.testing.assert_close(logits, expected.logits, atol=1e-5, rtol=1e-5)
    weights = torch.stack(expected.attentions)
    torch.testing.assert_close(trace.weights("decoder"), weights, atol=1e-5, rtol=1e-5)


def test_greedy_generation_is_that_of_gpt2_with_copied_weights():
    ours, theirs = gpt2_pair(max_len=30)
    for prompt in [[3, 5, 9, 11], [2, 7], [2, 3, 4, 8, 10, 12, 6]]:
        given = torch.tensor([prompt])
        expected = theirs.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=14, do_sample=False
        )
        steps = generate(ours, [prompt], max_new_tokens=14, end_id=2)
        assert [step.token for (step,) in steps] == expected[0, len(prompt) :].tolist()


@torch.no_grad()
def copy_bert(to, source):
    """Our encoder-only weights into transformers' BERT; all tokens are of type 0, which adds 0."""
    to.embeddings.word_embeddings.weight.copy_(source.embedding.tokens.weight)
    to.embeddings.position_embeddings.weight.copy_(source.embedding.positions.table.weight)
    to.embeddings.token_type_embeddings.weight.zero_()
    to.embeddings.LayerNorm.load_state_dict(source.embedding.norm.state_dict())
    for block, layer in zip(to.encoder.layer, source.encoder.layers, strict=True):
        for theirs, ours in [
            (block.attention.self.query, layer.self_attention.query),
            (block.attention.self.key, layer.self_attention.key),
            (block.attention.self.value, layer.self_attention.value),
            (block.attention.output.dense, layer.self_attention.output),
            (block.attention.output.LayerNorm, layer.self_residual.norm),
            (block.intermediate.dense, layer.feed_forward.expand),
            (block.output.dense, layer.feed_forward.contract),
            (block.output.LayerNorm, layer.feed_forward_residual.norm),
        ]:
            theirs.load_state_dict(ours.state_dict())


def test_our_bert_is_bert_with_copied_weights():
    import transformers  # slow to import, so only where needed

    ours = network(
        "encoder",
        norm="post",
        positions="learned",
        activation="gelu",
        norm_embeddings=True,
        norm_eps=1e-12,
    )
    theirs = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=V,
            hidden_size=C,
            num_hidden_layers=L,
            num_attention_heads=H,
            intermediate_size=FF,
            max_position_embeddings=T_MAX,
            attn_implementation="eager",
        ),
        add_pooling_layer=False,
    ).eval()
    copy_bert(theirs, ours)
    tokens, trace = torch.tensor([[5, 3, 8, 1, 0, 0], [7, 1, 2, 4, 9, 11]]), Trace()
    logits = ours(tokens, trace=trace)
    expected = theirs(tokens, attention_mask=(tokens != 0).long(), output_attentions=True)
    hidden = expected.last_hidden_state
    torch.testing.assert_close(logits, ours.head(hidden), atol=1e-5, rtol=1e-5)
    weights = torch.stack(expected.attentions)
    torch.testing.assert_close(trace.weights("encoder"), weights, atol=1e-5, rtol=1e-5)
