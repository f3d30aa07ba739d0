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
    assert trace.weights("decoder", "cross")[1].equal(trace["decoder.1.cross"].pattern)
    assert trace.embed["encoder"].shape == trace.pos_embed["encoder"].shape == (2, 6, C)
    assert trace.embed["decoder"].shape == trace.pos_embed["decoder"].shape == (2, 5, C)


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
    assert record.pattern.dtype == record.scores.dtype == torch.float32
    assert not record.pattern.requires_grad
    assert not trace.embed["decoder"].requires_grad


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
            torch.testing.assert_close(got[site].pattern, expected[site].pattern)
            torch.testing.assert_close(got[site].scores, expected[site].scores)
