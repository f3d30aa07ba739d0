"""Attention weights from elsewhere give the same figures and numbers as a run that has them."""

from typing import Any

import numpy as np
import pytest
import torch
from kit.hf_models import made

import transformer
from transformer import Batch, Run, from_attention
from transformer.runs.head_data import head_view
from transformer.views.export.recorded import stored_answers, summary

TOKENS = ["the", " fox", " said", "\n"]


def own(run: Run) -> Run:
    """The run's weights as another tool would hand them over: a tuple, a batch of 1 each."""
    layers = tuple(record.pattern for record in run.trace)
    made = from_attention(layers, [list(run.labels)])
    assert isinstance(made, Batch)
    return made[0]


def random_weights(*shape: int, causal: bool = False) -> np.ndarray[Any, Any]:
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    if causal:
        scores = scores.masked_fill(~torch.ones(shape[-2:]).tril().bool(), -torch.inf)
    weights: np.ndarray[Any, Any] = scores.softmax(-1).numpy()
    return weights


def test_figures_of_external_weights_are_those_of_the_run(run):
    there = own(run)
    assert there.trace.sites == run.trace.sites
    for site in run.trace.sites:
        ours, theirs = head_view(there, site, 1), head_view(run, site, 1)
        np.testing.assert_array_equal(ours.weights, theirs.weights)
        np.testing.assert_array_equal(ours.allowed, theirs.allowed)
    for view in (("flow", "rollout"), ("metrics", "self", "previous")):
        drawn = (one.draw(view[0], "decoder", *view[1:]).data[0].z for one in (there, run))
        np.testing.assert_allclose(*drawn)
    np.testing.assert_array_equal(there.heads().data[0].z, run.heads().data[0].z)


@pytest.mark.parametrize("causal", [True, False])
def test_one_text_from_numpy_torch_or_a_tuple_is_the_same_run(causal):
    weights = random_weights(3, 2, 4, 4, causal=causal)
    found = [
        from_attention(weights, TOKENS),
        from_attention(torch.from_numpy(weights).requires_grad_(), TOKENS),
        from_attention(tuple(weights), TOKENS),
        from_attention(weights.tolist(), TOKENS),
        from_attention(torch.from_numpy(weights).double(), TOKENS),
    ]
    stack = "decoder" if causal else "encoder"
    for run in found:
        assert isinstance(run, Run)
        assert run.config.family == stack
        torch.testing.assert_close(
            run.trace.weights(stack)[:, 0], torch.from_numpy(weights), rtol=0, atol=0
        )
        assert run.labels == ("the", "␣fox", "␣said", "⏎")
        record, whole = run.trace[stack, 0, "self"], torch.ones(4, 4, dtype=torch.bool)
        assert record.allowed[0].equal(whole.tril() if causal else whole)
        hidden = record.scores.masked_fill(~record.allowed[:, None], -torch.inf)
        torch.testing.assert_close(hidden.softmax(-1), record.pattern)


def test_several_texts_are_a_padded_batch():
    batch = from_attention(random_weights(2, 3, 4, 5, 5), [["a"] * 5, ["b"] * 3, ["c"]])
    assert isinstance(batch, Batch)
    assert batch.padding.sum(dim=1).tolist() == [5, 3, 1]
    assert batch.labels[1] == ("b", "b", "b", "<|padding|>", "<|padding|>")
    assert not batch.trace["encoder.1.self"].allowed[1, :, 3:].any()
    assert batch.heads("encoder", "self", row=2).data
    assert "2 layers × 4 heads of attention made elsewhere" in summary(batch[1])
    with pytest.raises(ValueError, match="row must be a whole number from 0 to 2; got 3"):
        batch[3]
    translated = from_attention(
        random_weights(1, 2, 3, 4, 4, causal=True),
        [["a"] * 4, ["b"] * 3],
        cross=random_weights(1, 2, 3, 4, 6),
        source_tokens=[list("source"), list("src")],
    )
    assert isinstance(translated, Batch)
    assert translated.padding.sum(dim=1).tolist() == [6, 3]
    assert translated[1].labels == ("b", "b", "b")
    assert translated[1].trace["decoder.0.cross"].pattern.shape == (1, 3, 3, 3)


def test_an_encoder_decoders_three_kinds_are_drawn_with_their_own_tokens():
    run = from_attention(
        random_weights(2, 3, 4, 4, causal=True),
        TOKENS,
        encoder=random_weights(2, 5, 6, 6),
        cross=random_weights(2, 3, 4, 6),
        source_tokens=list("source"),
    )
    assert isinstance(run, Run)
    assert run.trace.kinds() == [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
    assert (run.queries("decoder"), run.keys("decoder", "cross")) == (
        ("the", "␣fox", "␣said", "⏎"), tuple("source"),
    )  # fmt: skip
    assert run.alignment(1, 2).data
    alone = from_attention(
        None, TOKENS, cross=random_weights(1, 3, 4, 6), source_tokens=list("source")
    )
    assert alone.trace.kinds() == [("decoder", "cross")]
    longer = from_attention(
        None, list("target"), cross=random_weights(1, 3, 6, 4), source_tokens=TOKENS
    )
    assert isinstance(longer, Run)
    assert longer.config.max_len == 6


def test_it_shows_itself_in_a_notebook_and_reads_back_from_disk(tmp_path):
    run = from_attention(random_weights(2, 3, 4, 4, causal=True), TOKENS, name="mine")
    assert isinstance(run, Run)
    shown = run._repr_html_()
    assert "mine: 2 layers × 3 heads of attention made elsewhere" in shown
    assert "architecture" not in {name for name, _, _ in stored_answers(run)}
    run.to_npz(tmp_path / "own.npz")
    for again in (transformer.read_npz(tmp_path / "own.npz"), transformer.from_json(run.to_json())):
        assert again.stopped == "given"
        assert again.trace.weights("decoder").equal(run.trace.weights("decoder"))


def test_a_row_that_padding_masks_wholly_is_named():
    padded = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    is_padding = torch.tensor([[False] * 4, [True] * 4])  # the second text is padding alone
    with torch.no_grad():
        x = torch.randn(2, 4, 8)
        _, weights = padded(x, x, x, key_padding_mask=is_padding, average_attn_weights=False)
    sentence = "nan alone, the first at layer 0, text 1, head 0, row 0: .* padding masks every key"
    with pytest.raises(ValueError, match=sentence):
        from_attention([weights], [TOKENS, TOKENS])
    drawn = from_attention([weights.nan_to_num(0)], [TOKENS, TOKENS])
    assert drawn.trace.weights("encoder")[0, 1].sum() == 0


ONE = random_weights(1, 2, 4, 4)
REFUSED: list[tuple[Any, Any, str]] = [
    (np.ones((1, 2, 4, 4)), TOKENS, "each row sums to 1; got values from 1 to 1, and a row"),
    (-np.eye(4)[None, None], TOKENS, "must be weights after softmax"),
    (np.where(np.eye(4), np.nan, 0)[None, None], TOKENS, "must be weights after softmax"),
    (np.eye(4), TOKENS, r"must be \(L, H, T, T\) or \(L, B, H, T, T\); got \(4, 4\)"),
    (ONE, TOKENS[:3], "3 query and 3 key tokens.*; got 1 texts, 4"),
    (random_weights(1, 2, 2, 4, 4), TOKENS, "of 1 texts, 4 query"),
    (ONE, "the fox", "tokens must be a list of strings"),
    (ONE, [1, 2, 3, 4], "each text must be a list of at least one"),
    ((), TOKENS, "ask for attn_implementation='eager'"),  # what sdpa gives
    (((None,), (None,)), TOKENS, "ask for attn_implementation='eager'"),
    ({"attentions": ONE}, TOKENS, "must be arrays, as the attentions of an output; got dict"),
    (((torch.ones(2, 1, 4, 4),), (torch.ones(2, 1, 1, 5),)), TOKENS, "for one text without beams"),
    (((torch.ones(1, 1, 4, 4),), (torch.ones(1, 1, 1, 4),)), TOKENS, "each row sums to 1"),
    (((torch.ones(1, 1, 4, 4),), (torch.ones(1, 1, 1, 7),)), TOKENS, "for one text without beams"),
    ((None, None), TOKENS, "ask for attn_implementation='eager'"),
    ("weights", TOKENS, "must be arrays of one shape a layer"),
    ([np.eye(4), np.eye(3)], TOKENS, "must be arrays of one shape a layer"),
    (None, TOKENS, "there are no weights to draw"),
]


@pytest.mark.parametrize(("weights", "tokens", "sentence"), REFUSED)
def test_what_is_no_attention_gets_a_sentence(weights, tokens, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_attention(weights, tokens)
    with pytest.raises(ValueError, match="need source_tokens; got none"):
        from_attention(None, TOKENS, cross=random_weights(1, 1, 4, 6))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use_cache", [True, False])
def test_the_attentions_of_generate_are_those_of_one_pass(use_cache):
    theirs = made("gpt2", 1)
    theirs.set_attn_implementation("eager")
    settings = dict(
        max_new_tokens=4, do_sample=False, output_attentions=True, use_cache=use_cache,
        return_dict_in_generate=True, eos_token_id=None,
    )  # fmt: skip
    out = theirs.generate(torch.tensor([[5, 6, 7]]), **settings)
    tokens = [str(index) for index in out.sequences[0, :-1].tolist()]
    with torch.no_grad():
        whole = theirs(out.sequences[:, :-1], output_attentions=True).attentions
    run = from_attention(out.attentions, tokens)
    assert isinstance(run, Run)
    torch.testing.assert_close(run.trace.weights("decoder"), torch.stack(whole), atol=1e-5, rtol=0)
    beams = theirs.generate(torch.tensor([[5, 6]]), num_beams=2, **settings)
    with pytest.raises(ValueError, match="for one text without beams"):
        from_attention(beams.attentions, tokens)


@pytest.mark.filterwarnings("ignore")
def test_the_attentions_of_a_translator_that_generates_are_joined():
    theirs = made("marian", 1)
    theirs.set_attn_implementation("eager")
    source = torch.tensor([[5, 6, 7, 0]])
    out = theirs.generate(
        source, max_new_tokens=4, do_sample=False, num_beams=1, output_attentions=True,
        return_dict_in_generate=True, eos_token_id=None,
    )  # fmt: skip
    target = out.sequences[:, :-1]
    with torch.no_grad():
        whole = theirs(source, decoder_input_ids=target, output_attentions=True)
    run = from_attention(
        out.decoder_attentions, list("abcd"), encoder=out.encoder_attentions,
        cross=out.cross_attentions, source_tokens=list("wxyz"),
    )  # fmt: skip
    for stack, kind, wanted in (
        ("encoder", "self", whole.encoder_attentions),
        ("decoder", "self", whole.decoder_attentions),
        ("decoder", "cross", whole.cross_attentions),
    ):
        found = run.trace.weights(stack, kind)
        torch.testing.assert_close(found, torch.stack(wanted), atol=1e-5, rtol=0)


# --- batches on disk ------------------------------------------------------------------------------


def test_a_batch_is_written_with_every_array(tiny_encoder_decoder, tmp_path):
    batch = tiny_encoder_decoder.translate_batch(["the fox", "no"], max_new_tokens=3)
    batch.to_html(tmp_path / "batch.html")
    batch.to_npz(tmp_path / "batch.npz")
    with np.load(tmp_path / "batch.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["padding"], batch.padding.numpy())
        np.testing.assert_array_equal(found["target_ids"], batch.target_ids.numpy())
        for record in batch.trace:
            np.testing.assert_array_equal(found[f"{record.site}/pattern"], record.pattern.numpy())
            np.testing.assert_array_equal(found[f"{record.site}/mask"], record.allowed.numpy())
        streams = torch.stack(batch.trace.residuals["encoder"]).numpy()
        np.testing.assert_array_equal(found["residual/encoder"], streams)
