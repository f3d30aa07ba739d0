from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from kit.models import V, ids, network

from transformer import Site, Trace

BATCH = torch.tensor([[5, 3, 8, 0, 0], [7, 1, 2, 4, 9]])


def test_sites_are_in_data_order_with_queries_before_keys():
    trace = Trace()
    network("encoder-decoder")(ids(2, 6), BATCH, trace=trace)
    layers = [f"decoder.{layer}.{kind}" for layer in range(2) for kind in ("self", "cross")]
    assert list(map(str, trace.sites)) == ["encoder.0.self", "encoder.1.self", *layers]
    assert trace.kinds() == [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]
    assert trace.scores("decoder", "cross").shape == (2, 2, 3, 5, 6)
    assert trace.weights("decoder", "cross")[1].equal(trace["decoder.1.cross"].pattern)


def test_eight_threads_that_share_one_model_get_maps_of_their_own():
    model = network("encoder-decoder")

    def weights_of(seed):
        generator, trace = torch.Generator().manual_seed(seed), Trace()
        source, target = torch.randint(1, V, (2, 1, 3 + seed % 6), generator=generator)
        with torch.inference_mode():
            model(source, target, trace=trace)
        return [record.pattern for record in trace]

    alone = list(map(weights_of, range(24)))
    with ThreadPoolExecutor(8) as threads:
        for got, expected in zip(threads.map(weights_of, range(24)), alone, strict=True):
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(
    "text", ["", "decoder", "decoder.0", "decoder.x.self", "decoder.-1.self", "dec.0.self",
             "decoder.0.both", "decoder.0.self.1", "decoder.².self", "decoder.٣.self",
             "decoder..self", " decoder.0.self"],
)  # fmt: skip
def test_a_malformed_site_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"e\.g\. 'decoder\.0\.self'; got"):
        Site.parse(text)
    assert Site.parse("decoder.12.cross") == Site("decoder", 12, "cross")


def test_records_are_detached_float32_while_training_in_bfloat16():
    model, trace = network().train(), Trace()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(BATCH, trace=trace)
    record = trace["decoder.0.self"]
    assert record.pattern.dtype == record.scores.dtype == torch.float32
    assert not record.pattern.requires_grad
    assert not trace.embed["decoder"].requires_grad


@pytest.mark.parametrize("family", ["decoder", "encoder-decoder"])
def test_a_trace_holds_the_last_of_two_passes(family):
    model, source = network(family), [ids(1, 6)] if family == "encoder-decoder" else []
    trace, alone, text = Trace(), Trace(), ids(1, 5)
    model(*[ids(2, 4) for _ in source], BATCH, trace=trace)
    model(*source, text, trace=trace)
    model(*source, text, trace=alone)
    assert trace.sites == alone.sites
    for stack, made in alone.residuals.items():
        assert torch.stack(trace.residuals[stack]).equal(torch.stack(made))
    for site in alone.sites:
        assert trace[site].pattern.equal(alone[site].pattern)
