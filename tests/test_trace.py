from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from builders import spread

from transformer import ModelConfig, Site, Trace, build_transformer

V, C, H, L = 13, 12, 3, 2
FAMILIES = ["decoder", "encoder", "encoder-decoder"]
BATCH = torch.tensor([[5, 3, 8, 0, 0], [7, 1, 2, 4, 9]])
SOURCE = torch.tensor([[2, 6, 4, 1, 3, 5], [8, 7, 9, 0, 0, 0]])


def network(family="decoder", **changes):
    sizes = dict(vocab_size=V, d_model=C, n_heads=H, n_layers=L, d_ff=20, max_len=9, padding_id=0)
    return spread(build_transformer(ModelConfig(family=family, **{**sizes, **changes}))).eval()


def inputs(family):
    return [SOURCE, BATCH] if family == "encoder-decoder" else [BATCH]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("family", FAMILIES)
def test_tracing_leaves_the_logits_as_they_are(family, norm):
    model, given = network(family, norm=norm), inputs(family)
    real = BATCH != 0
    traced = model(*given, trace=Trace())
    torch.testing.assert_close(traced[real], model(*given)[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_sum_to_one_and_masked_weights_are_exactly_zero(family):
    trace = Trace()
    network(family)(*inputs(family), trace=trace)
    for site in trace.sites:
        record = trace[site]
        rows = record.weights.sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-6, rtol=0)
        forbidden = ~record.allowed[:, None].expand_as(record.weights)
        assert forbidden.any()
        assert (record.weights[forbidden] == 0).all()
        assert (record.weights[~forbidden] > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_masks_are_padding_and_where_it_belongs_the_future(family):
    trace = Trace()
    network(family)(*inputs(family), trace=trace)
    for site in trace.sites:
        record = trace[site]
        crossing = site.kind == "cross" or (site.stack, family) == ("encoder", "encoder-decoder")
        read = SOURCE if crossing else BATCH
        for row, query, key in record.allowed.new_ones(record.allowed.shape).nonzero().tolist():
            future = site.stack == "decoder" and site.kind == "self" and key > query
            expected = read[row, key] != 0 and not future
            assert record.allowed[row, query, key] == expected


def test_scores_are_the_products_before_the_mask_and_weights_their_softmax():
    model, trace = network(), Trace()
    model(BATCH, trace=trace)
    attention = model.decoder.layers[0].self_attention
    x = model.decoder.layers[0].self_residual.norm(
        trace.embedded["decoder"] + trace.positions["decoder"]
    )
    record = trace["decoder.0.self"]
    for head in range(H):
        own = slice(head * 4, head * 4 + 4)
        q, k = attention.query(x)[..., own], attention.key(x)[..., own]
        scores = torch.einsum("bqd,bkd->bqk", q, k) / 2  # sqrt(D) with D = 4
        torch.testing.assert_close(record.scores[:, head], scores, atol=1e-5, rtol=1e-5)
        weights = scores.masked_fill(~record.allowed, -torch.inf).softmax(-1)
        torch.testing.assert_close(record.weights[:, head], weights, atol=1e-5, rtol=1e-5)


def test_the_last_layers_scores_are_those_of_its_own_input():
    model, trace, seen = network(), Trace(), []
    attention = model.decoder.layers[1].self_attention
    attention.query.register_forward_hook(lambda _, given, made: seen.append((given[0], made)))
    model(BATCH, trace=trace)
    ((x, q),) = seen
    q, k = (t.view(2, 5, H, 4).transpose(1, 2) for t in (q, attention.key(x)))
    expected = q @ k.mT / 4**0.5
    torch.testing.assert_close(trace["decoder.1.self"].scores, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "order"),
    [
        ("decoder", ["decoder.0.self", "decoder.1.self"]),
        ("encoder", ["encoder.0.self", "encoder.1.self"]),
        (
            "encoder-decoder",
            [
                "encoder.0.self",
                "encoder.1.self",
                "decoder.0.self",
                "decoder.0.cross",
                "decoder.1.self",
                "decoder.1.cross",
            ],
        ),
    ],
)
def test_sites_come_in_the_order_of_the_data(family, order):
    trace = Trace()
    network(family)(*inputs(family), trace=trace)
    assert [str(site) for site in trace.sites] == order


def test_shapes_tell_queries_from_keys():
    trace = Trace()
    network("encoder-decoder")(SOURCE, BATCH, trace=trace)
    assert trace.weights("encoder", "self").shape == (L, 2, H, 6, 6)
    assert trace.weights("decoder", "self").shape == (L, 2, H, 5, 5)
    assert trace.scores("decoder", "cross").shape == (L, 2, H, 5, 6)
    assert trace.kinds() == [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
    assert trace.weights("decoder", "cross")[1].equal(trace["decoder.1.cross"].weights)
    assert trace.embedded["encoder"].shape == trace.positions["encoder"].shape == (2, 6, C)
    assert trace.embedded["decoder"].shape == trace.positions["decoder"].shape == (2, 5, C)


def test_a_record_is_found_by_site_by_tuple_and_by_text():
    trace = Trace()
    network()(BATCH, trace=trace)
    record = trace[Site("decoder", 1, "self")]
    assert trace["decoder", 1, "self"] is record
    assert trace["decoder.1.self"] is record
    assert record.site == Site("decoder", 1, "self")


def test_a_site_that_was_not_recorded_gets_a_list_of_those_that_were():
    trace = Trace()
    with pytest.raises(ValueError, match=r"no record of site decoder\.0\.self; recorded: nothing"):
        trace["decoder.0.self"]
    network()(BATCH, trace=trace)
    with pytest.raises(ValueError, match=r"decoder\.7\.self; recorded: decoder\.0\.self, decoder"):
        trace["decoder", 7, "self"]
    with pytest.raises(ValueError, match="no decoder cross-attention was recorded"):
        trace.weights("decoder", "cross")
    with pytest.raises(ValueError, match="no encoder self-attention was recorded"):
        trace.scores("encoder")


@pytest.mark.parametrize("site", [Site("decoder", 12, "cross"), Site("encoder", 0, "self")])
def test_a_site_survives_being_written(site):
    assert Site.parse(str(site)) == site


@pytest.mark.parametrize(
    "text", ["", "decoder", "decoder.0", "decoder.x.self", "decoder.-1.self", "dec.0.self",
             "decoder.0.both", "decoder.0.self.1", "decoder.².self", "decoder.٣.self",
             "decoder..self", " decoder.0.self"],
)  # fmt: skip
def test_what_is_no_site_gets_a_sentence_that_shows_one(text):
    with pytest.raises(ValueError, match=r"e\.g\. 'decoder\.0\.self'; got"):
        Site.parse(text)


def test_records_are_detached_float32_even_while_training_in_half_precision():
    model, trace = network().train(), Trace()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(BATCH, trace=trace)
    record = trace["decoder.0.self"]
    assert record.weights.dtype == record.scores.dtype == torch.float32
    assert not record.weights.requires_grad
    assert not trace.embedded["decoder"].requires_grad


def test_without_a_mask_everything_is_allowed():
    trace = Trace()
    network("encoder", padding_id=None)(BATCH, trace=trace)
    record = trace["encoder.0.self"]
    assert record.mask is None
    assert record.allowed.shape == (2, 5, 5)
    assert record.allowed.all()


@pytest.mark.parametrize("family", FAMILIES)
def test_eight_threads_that_share_one_model_get_maps_of_their_own(family):
    model = network(family)

    def traced(seed):
        generator = torch.Generator().manual_seed(seed)
        length = 3 + seed % 6
        rows = [
            torch.randint(1, V, (1, length), generator=generator)
            for _ in range(len(inputs(family)))
        ]
        trace = Trace()
        with torch.inference_mode():
            model(*rows, trace=trace)
        return trace

    alone = [traced(seed) for seed in range(24)]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(traced, range(24)))
    for expected, got in zip(alone, together, strict=True):
        assert got.sites == expected.sites
        for site in expected.sites:
            torch.testing.assert_close(got[site].weights, expected[site].weights)
            torch.testing.assert_close(got[site].scores, expected[site].scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_queries_keys_and_values_make_the_scores_and_the_stream_they_lead_to(family):
    model, trace = network(family), Trace()
    model(*inputs(family), trace=trace)
    for site in trace.sites:
        record = trace[site]
        products = record.queries @ record.keys.transpose(-2, -1)
        torch.testing.assert_close(products / (C // H) ** 0.5, record.scores)
        attention = getattr(getattr(model, site.stack).layers[site.layer], f"{site.kind}_attention")
        heads = (record.weights @ record.values).transpose(1, 2).flatten(2)
        assert attention.output(heads).shape == (2, record.queries.shape[2], C)
        assert record.values.shape == record.keys.shape


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_residual_stream_under_the_lens_is_the_prediction(family, norm):
    model, trace = network(family, norm=norm), Trace()
    logits = model(*inputs(family), trace=trace)
    stack = model.last_stack.name
    assert len(trace.residuals[stack]) == L + 1
    torch.testing.assert_close(model.lens(trace.residuals[stack][-1]), logits)
    first = trace.embedded[stack] + trace.positions[stack]
    torch.testing.assert_close(trace.residuals[stack][0], first)
