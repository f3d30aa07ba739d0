"""Hooks and traces: what a forward pass shows, in which order, and what hooks may return."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from kit.interventions import FAMILIES, close, given, read
from kit.models import C, H, L, V, ids, network

from transformer import Site, Trace
from transformer.model.hooks import POINTS, Point
from transformer.model.sites import sites_of


class Listening:
    """A hook that keeps the points that it was shown, and what was there."""

    def __init__(self):
        self.shown = []

    def __call__(self, point, value, **context):
        self.shown.append((point, value, context))
        return value


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("family", FAMILIES)
def test_hooks_see_every_named_point_in_order_with_its_context(family, norm):
    for positions in ("learned", "rotary"):
        model, heard = network(family, norm=norm, positions=positions), Listening()
        read(model, given(model), hooks=[heard])
        shown = {point.name for point, _, _ in heard.shown}
        absent = {"final_norm"} if norm == "post" else set()
        absent |= {"rotation"} if positions == "learned" else set()
        assert shown == set(POINTS) - absent
        assert {point for point, _, _ in heard.shown} == model.points()
        order = [
            p.name for p, _, _ in heard.shown if p.layer == 0 and p.stack == model.last_stack.name
        ]
        order = [name for name in dict.fromkeys(order) if name not in ("skip", "final_norm")]
        assert norm == "post" or order == [name for name in POINTS if name in order]
        for point, _, context in heard.shown:
            names = POINTS[point.name].partition(";")[2]
            named = [name.strip() for name in names.split(",") if names]
            assert {"is_text", *named} == context.keys(), point
        assert {p.layer for p, _, _ in heard.shown if p.name in ("embed", "pos_embed")} == {0}
    attentions = {point[1:] for point, _, _ in heard.shown if point.name == "pattern"}
    assert attentions == set(sites_of(model.config))
    assert len([p for p, _, _ in heard.shown if p.name == "resid_post"]) == L * len(
        {site.stack for site in sites_of(model.config)}
    )


def test_hooks_are_met_one_after_the_other_and_a_trace_is_the_last_of_them():
    model, trace = network(), Trace()

    def doubled(point, value, **context):
        return 2 * value if point == Point("z", "decoder", 1, "self") else value

    def less_one(point, value, **context):
        return value - 1 if point == Point("z", "decoder", 1, "self") else value

    def to_zero(point, value, **context):
        return torch.zeros_like(value) if point == Point("resid_post", "decoder", 0) else value

    heard = Listening()
    text = given(model)
    read(model, text, hooks=[heard, doubled, less_one, heard, to_zero], trace=trace)
    before, after = (v for p, v, _ in heard.shown if p == Point("z", "decoder", 1, "self"))
    assert torch.equal(after, 2 * before - 1)
    assert trace.residuals["decoder"][1].abs().max() == 0


def test_values_are_weighted_by_the_pattern_that_a_hook_returns():
    model, heard = network(), Listening()

    def first_key_only(point, value, **context):
        if point.name != "pattern":
            return value
        return torch.nn.functional.one_hot(torch.zeros_like(value[..., 0]).long(), 6).float()

    read(model, given(model), hooks=[first_key_only, heard])
    values = next(context["v"] for p, _, context in heard.shown if p.name == "pattern")
    heads = next(value for p, value, _ in heard.shown if p.name == "z")
    assert heads.shape == (1, H, 6, C // H)
    close(heads, values[:, :, :1].expand_as(heads))


def in_place(point, value, **context):
    if point.name == "resid_post":
        value.mul_(2)


HOOKS = [
    lambda point, value: 2 * value if point.name == "resid_post" else None,
    lambda v, q, **context: 2 * q if v.name == "resid_post" else q,
    lambda mask, stream: 2 * stream if mask.name == "resid_post" else stream,
    lambda point, x, *, scores=None: 2 * x if point.name == "resid_post" else x,
    lambda *given: 2 * given[1] if given[0].name == "resid_post" else given[1],
    in_place,
]


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_a_hook_gets_the_context_it_names_and_none_changes_nothing(family):
    model, both = network(family).requires_grad_(False), family == "encoder-decoder"
    read = (ids(2, 5), ids(2, 4)) if both else (ids(2, 5),)
    wanted = model(*read, hooks=[lambda point, value, **context: HOOKS[0](point, value)])
    intact = model(*read)
    assert not torch.allclose(wanted, intact)
    for hook in HOOKS:
        torch.testing.assert_close(model(*read, hooks=[hook]), wanted)
    nothing = model(*read, hooks=[lambda point, value, **context: None])
    torch.testing.assert_close(nothing, intact)


@pytest.mark.parametrize("hooks", [in_place, [3], [lambda value: value], None])
def test_hooks_that_are_no_list_of_functions_are_refused(hooks):
    with pytest.raises(
        ValueError, match=r"hooks must be a list of|a hook is a function of a point"
    ):
        network()(ids(1, 3), hooks=hooks)


IDS = [
    ([1, 2, 3], r"ids must be a tensor \(B, T\); got list"),
    (torch.tensor([1, 2]), r"with at least one token; got \(2,\)"),
    (torch.zeros(1, 0).long(), r"with at least one token; got \(1, 0\)"),
    (torch.ones(1, 3), "ids must be of int64 or int32; got torch.float32"),
    (torch.tensor([[1, 13]]), "ids must be from 0 to 12; got 1 to 13"),
    (torch.tensor([[1, -2]]), "ids must be from 0 to 12; got -2 to 1"),
]


@pytest.mark.parametrize(("given", "sentence"), IDS)
@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_ids_that_a_network_cannot_read_are_refused_in_a_sentence(family, given, sentence):
    model = network(family)
    with pytest.raises(ValueError, match=sentence):
        model(*([ids(1, 2), given] if family == "encoder-decoder" else [given]))


def test_which_ids_are_text_is_told_in_their_shape():
    model, text = network(), torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"must be of the ids' shape, \(1, 3\); got \(1, 4\)"):
        model(ids(1, 3), is_text=text)


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
def test_a_trace_records_the_last_of_two_passes(family):
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
