"""One token's way through the network, against PyTorch's own modules and plain passes."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from kit.models import tiny
from kit.strategies import configurations, model_of_drawn
from torch import Tensor, nn

from transformer import Ablate, Break, EditMask, Model, Patch, Run, Site, from_json
from transformer.analysis.atlas import reading_weights
from transformer.analysis.continuation import N_WRITTEN, continuation
from transformer.analysis.journey import deciding_heads, journey, telling, without_head
from transformer.analysis.logit_contribution import logit_contribution
from transformer.model.sites import sites_of
from transformer.server.kept import experiments as module
from transformer.server.kept.service import Service
from transformer.server.page.resources import answer
from transformer.views.journey.journey import answer_deciding
from transformer.views.registry import PICTURES

TEXT = "The fox said hello to the bird"
ROOM = 1e-2  # of float32 where a norm with next to no epsilon makes large what is small
drawn = settings(max_examples=20, suppress_health_check=list(HealthCheck))
# A norm of few numbers without an epsilon is a step function: rounding alone flips it.
STEADY = configurations().filter(lambda one: not one.norm_heads or one.norm_eps >= 1e-6)


def run_of(model: Model, text: str = TEXT) -> Run:
    if model.config.family == "encoder":
        found: Any = model.trace(text)
        return found
    return model.generate(text, max_new_tokens=5)


def plain(model: Model, run: Run, place: int) -> Tensor:
    """(V,) logits of a plain forward pass."""
    with torch.inference_mode():
        if model.config.family == "encoder":
            return model.network(torch.tensor([run.ids]))[0, place]
        ids = torch.tensor([run.ids[run.trace_start : place + 1]])
        given = (torch.tensor([run.source_ids]), ids) if run.source_ids else (ids,)
        return model.network(*given)[0, -1]


@contextmanager
def zeroed(model: Model, site: Site, head: int) -> Iterator[None]:
    """Within it a hook of PyTorch's puts zeros where a head's z enters the output projection."""
    stack = getattr(model.network, site.stack)
    projection = getattr(stack.layers[site.layer], f"{site.kind}_attention").output
    size = model.config.d_head

    def without(_: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        z = given[0].clone()
        z[..., head * size : (head + 1) * size] = 0.0
        return (z,)

    handle = projection.register_forward_pre_hook(without)
    yield
    handle.remove()


def close(got: Tensor, wanted: Tensor, room: float = 2e-4) -> None:
    """Equal but for `room` of the largest number."""
    assert got.shape == wanted.shape
    assert (got - wanted).abs().max() <= room * (1 + wanted.abs().max())


@drawn
@given(config=STEADY)
def test_journey_parts_sum_to_the_logit_and_the_lens_reads_each_stream(config, tokenizer):
    model = model_of_drawn(config, tokenizer)
    run, network = run_of(model, "The fox"), model.network
    stack = network.last_stack
    for place in range(run.trace_start, len(run.ids)):
        found, logits = journey(model, run, place), plain(model, run, place)
        room = ROOM * (1 + float(logits.abs().max()))
        close(found.logits, logits, ROOM)
        assert found.position == place
        assert float(logits[found.target]) == pytest.approx(float(logits.max()), abs=room)
        stream = torch.cat(run.trace.residuals[stack.name])[:, place - run.trace_start]
        close(found.stream, stream, ROOM)
        if config.head_transform or config.logit_cap:
            assert found.parts is None
            continue
        assert found.parts.total == pytest.approx(float(logits[found.target]), abs=room)
        assert set(found.parts.heads) == ({"self", "cross"} if run.source_ids else {"self"})
        assert found.parts.heads["self"].shape == (config.output_n_layers, config.n_heads)
        another = journey(model, run, place, target=7).parts
        assert another.total == pytest.approx(float(logits[7]), abs=room)
        chances = network.project(stack.end(found.stream)).softmax(dim=-1)
        close(found.lens_probabilities, chances.amax(dim=-1), ROOM)
        close(found.lens_probabilities, chances.gather(1, found.lens_ids[:, None])[:, 0], ROOM)


@drawn
@given(config=STEADY)
def test_without_a_head_is_a_plain_pass_with_its_z_zeroed(config, tokenizer):
    model = model_of_drawn(config, tokenizer)
    run, head = run_of(model, "The fox"), config.n_heads - 1
    for site in sites_of(config):
        with zeroed(model, site, head):
            wanted = plain(model, run, len(run.ids) - 2)
        close(without_head(model, run, str(site), head, len(run.ids) - 2), wanted, ROOM)


@drawn
@given(config=STEADY)
def test_the_weights_of_two_tokens_are_the_traces(config, tokenizer):
    run = run_of(model_of_drawn(config, tokenizer), "The fox")
    for stack, kind in run.trace.kinds():
        weights = run.trace.weights(stack, kind)[:, 0]  # (L, H, Tq, Tk)
        start = 0 if stack == "encoder" else run.trace_start
        source = 0 if kind == "cross" else start
        for row, column in ((2, 1), (1, 1), (0, 2)):
            found = reading_weights(run, stack, kind, start + row, source + column)
            torch.testing.assert_close(found, weights[:, :, row, column], atol=1e-6, rtol=1e-5)


def test_a_continuation_takes_the_likeliest_tokens_to_the_sentences_end(tiny_model):
    run, tokenizer = run_of(tiny_model), tiny_model.tokenizer

    def likeliest(ids: list[int]) -> list[int]:
        written: list[int] = []
        with torch.inference_mode():
            while len(written) < N_WRITTEN:
                logits = tiny_model.network(torch.tensor([[*ids, *written]]))[0, -1]
                if int(logits.argmax()) in tokenizer.end_ids:
                    break
                written.append(int(logits.argmax()))
                if set(".!?") & set(tokenizer.label(written[-1])):
                    break
        return written

    for position in (run.n_prompt - 1, run.n_prompt + 2):
        read = list(run.ids[: position + 1])
        assert list(continuation(tiny_model, run, position)) == likeliest(read)
        with zeroed(tiny_model, Site("decoder", 1, "self"), 0):
            off = likeliest(read)
        assert list(continuation(tiny_model, run, position, "decoder.1.self", 0)) == off
    assert continuation(tiny_model, run, run.n_prompt, "decoder.1.self", 99) == ()


def test_a_continuation_with_a_head_that_is_off_switches_it_on_again(tiny_model):
    first, both = Ablate("decoder", 1, [1]), Ablate("decoder", 1, [0, 1])
    run = tiny_model.generate(TEXT, max_new_tokens=4, interventions=[both])
    place = run.n_prompt - 1
    wanted = continuation(
        tiny_model, tiny_model.generate(TEXT, max_new_tokens=4, interventions=[first]), place
    )
    assert continuation(tiny_model, run, place, "decoder.1.self", 0) == wanted
    alone = tiny_model.generate(TEXT, max_new_tokens=4, interventions=[first])
    intact = continuation(tiny_model, tiny_model.generate(TEXT, max_new_tokens=4), place)
    assert continuation(tiny_model, alone, place, "decoder.1.self", 1) == intact


def test_the_telling_place_is_where_a_head_leads_all_other_parts_by_most(tiny_model):
    run = tiny_model.generate(TEXT, max_new_tokens=8)
    leads = {}
    for position in range(run.n_prompt - 1, len(run.ids) - 1):
        parts = logit_contribution(tiny_model, run, position + 1)
        heads = parts.heads["self"].flatten()
        (most, second), where = heads.topk(2)
        place = divmod(int(where[0]), run.config.n_heads)
        leads[position, *place] = float(most) - max(float(second), float(parts.feed_forward.max()))
    found = telling(tiny_model, run)
    assert found is not None
    best = max(leads, key=lambda one: leads[one])
    if leads[best] > 0:
        assert (found.position, found.site.layer, found.head) == best
        assert found.lead == pytest.approx(leads[best], abs=1e-4)
    else:  # the most surprising one
        bits = {at: -run.steps[at + 1 - run.n_prompt].chosen.probability for at, *_ in leads}
        assert found.position == max(bits, key=lambda at: bits[at])
    assert telling(tiny_model, tiny_model.trace(TEXT)) is None  # nothing was written


def test_an_altered_runs_journey_is_of_the_altered_network(tiny_model):
    silence, other = Ablate("decoder", 0, [1]), Site("decoder", 1, "self")
    run = tiny_model.generate(TEXT, max_new_tokens=3, interventions=[silence])
    found, last = journey(tiny_model, run), len(run.ids) - 1
    with zeroed(tiny_model, silence.site, 1):
        wanted = plain(tiny_model, run, last)
        with zeroed(tiny_model, other, 0):
            close(without_head(tiny_model, run, other, 0), plain(tiny_model, run, last))
    close(found.logits, wanted)
    assert float(found.parts.heads["self"][0, 1]) == 0.0
    assert found.parts.total == pytest.approx(float(wanted.max()), abs=1e-3)


def test_a_journey_without_parts_still_has_logits(tiny_model, tokenizer):
    altered = (
        Break("no-final-norm"), EditMask("decoder", without=["causal"]),
        Patch("decoder", 0, [1], "Nobody said hello"),
    )  # fmt: skip
    for intervention in altered:
        run = tiny_model.generate("The fox", max_new_tokens=2, interventions=[intervention])
        found = journey(tiny_model, run)
        assert torch.isfinite(found.logits).all()
        assert found.parts is None or found.parts.total == pytest.approx(
            float(found.logits[found.target]), abs=1e-2
        )
    bert = tiny("bert", "encoder", tokenizer, head_transform=True)
    read: Any = bert.trace(TEXT)
    found = journey(bert, read)
    close(found.logits, plain(bert, read, found.position))
    assert found.parts is None


def test_a_text_beyond_the_window_and_a_run_read_from_a_file_give_the_same(tiny_model):
    long = tiny_model.generate(TEXT * 2, max_new_tokens=30)
    assert long.trace_start > 0
    found = journey(tiny_model, long)
    assert found.position == tiny_model.last_read(long)
    close(found.logits, plain(tiny_model, long, found.position))
    run = run_of(tiny_model)
    again = from_json(run.to_json())  # without the vectors
    close(journey(tiny_model, again).logits, journey(tiny_model, run).logits)
    site = Site("decoder", 1, "self")
    for one in (long, again):
        with zeroed(tiny_model, site, 1):
            wanted = plain(tiny_model, one, tiny_model.last_read(one))
        close(without_head(tiny_model, one, site, 1), wanted)
    rows = [reading_weights(one, "decoder", "self", 3, 1) for one in (again, run)]
    torch.testing.assert_close(*rows, atol=1e-6, rtol=1e-5)


def test_the_default_position_is_the_last_token_before_the_end(tiny_model, tiny_encoder, tokenizer):
    run = tiny_model.generate("The fox", max_new_tokens=2, forced_tokens=[5, tokenizer.end_id])
    assert run.ids[-1] == tokenizer.end_id
    assert tiny_model.last_read(run) == len(run.ids) - 2
    read: Any = tiny_encoder.trace(TEXT)
    assert tiny_encoder.last_read(read) == 1


def test_errors_say_what_is_allowed(tiny_model, tiny_encoder):
    run, read = run_of(tiny_model), run_of(tiny_encoder)
    last, must = len(run.ids) - 1, "must be a whole number from 0 to"
    cases = [
        *((f"position {must} {last}", journey, tiny_model, run, at) for at in (-1, last + 1, "3")),
        (f"position {must}", without_head, tiny_model, run, "decoder.0.self", 0, last + 1),
        (f"position {must}", journey, tiny_encoder, read, len(read.ids)),
        (f"target {must} 319", journey, tiny_model, run, None, 320),
        ("no record of site decoder", without_head, tiny_model, run, "decoder.9.self", 0),
        ("head", without_head, tiny_model, run, "decoder.0.self", 2),
        *((must, reading_weights, run, "decoder", "self", *cell)
          for cell in ((last + 1, 0), (0, last + 1), (-1, 0))),
        ("no decoder cross-attention was", reading_weights, run, "decoder", "cross", 0, 0),
    ]  # fmt: skip
    for sentence, function, *arguments in cases:
        with pytest.raises(ValueError, match=sentence):
            function(*arguments)


# --- the page's answers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiments(tiny_model: Model, tiny_encoder: Model, tiny_encoder_decoder: Model) -> Service:
    return Service([tiny_model, tiny_encoder, tiny_encoder_decoder])


def ask(experiments: Service, name: str, run: Run, **given: Any) -> dict[str, Any]:
    """As the page gets it."""
    data = {"run": experiments.store.put(run), **given}
    return answer(experiments, PICTURES[name], data)


def test_an_answer_contains_the_data_of_its_picture(
    experiments, tiny_model, tiny_encoder, tiny_encoder_decoder
):
    for model in (tiny_model, tiny_encoder, tiny_encoder_decoder):
        run, size = run_of(model), model.config.n_layers * model.config.n_heads
        found = ask(experiments, "journey", run, position=3)
        kinds = ["self", "cross"] if run.source_ids else ["self"]
        assert {kind: len(one) for kind, one in found["heads"].items()} == dict.fromkeys(
            kinds, size
        )
        assert found["logits"].shape == (model.config.output_vocab_size,)
        assert found["next"]["id"] == run.ids[3 + (model is not tiny_encoder)]
        assert found["named"] is None or found["named"]["stack"] == found["stack"]
        assert found["stack"] == model.network.last_stack.name
        assert (found["encoder"] is None) == (not run.source_ids)
    streams = torch.cat(run.trace.residuals["encoder"])
    wanted = streams.norm(dim=-1).mean(dim=1)
    np.testing.assert_allclose(found["encoder"]["norms"], wanted, rtol=1e-5)


def test_a_small_network_waits_for_no_turn_and_a_large_one_is_refused(
    experiments, tiny_model, monkeypatch
):
    run = run_of(tiny_model)
    head = {"site": "decoder.0.self", "head": 0}
    monkeypatch.setattr(module, "taken", None)  # would be a TypeError
    ask(experiments, "journey", run)
    ask(experiments, "without_head", run, **head)
    monkeypatch.setattr(module, "QUICK_OPERATIONS", 2 * tiny_model.n_parameters)
    ask(experiments, "journey", run, position=2)  # one token: the rest is recorded
    with pytest.raises(TypeError, match="NoneType"):
        ask(experiments, "without_head", run, position=2, **head)
    monkeypatch.setattr(module, "MAX_PREVIEW_OPERATIONS", 2 * tiny_model.n_parameters)
    with pytest.raises(ValueError, match=r"this would read 3 tokens, .* choose an earlier token"):
        ask(experiments, "without_head", run, position=3, **head)


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder", "altered"])
def test_deciding_heads_are_those_whose_zeros_change_the_token(family, tokenizer):
    is_altered, family = family == "altered", family.replace("altered", "decoder")
    model = tiny("deciding", family, tokenizer, seed=3)
    off = Site("decoder", 1, "self")
    altered = [Ablate("decoder", 1, (0,))] if is_altered else []
    run = model.generate(TEXT, interventions=altered) if altered else run_of(model)
    place, wanted = len(run.ids) - 2, set()
    with zeroed(model, off, 0) if altered else nullcontext():
        likeliest = plain(model, run, place).argmax()
        for site in sites_of(model.config):
            for head in range(model.config.n_heads):
                with zeroed(model, site, head):
                    if plain(model, run, place).argmax() != likeliest:
                        wanted.add((site, head))
    assert set(deciding_heads(model, run, place)) == wanted
    assert wanted


def test_heads_that_decide_are_listed_and_unknown_ones_are_not_counted(tiny_model: Model) -> None:
    run = tiny_model.trace("the fox")
    heads = [(Site("decoder", 1, "self"), 3)]
    listed = {"stack": "decoder", "layer": 1, "kind": "self", "head": 3}
    for decides, wanted in ((None, {"n": None, "heads": []}), (heads, {"n": 1, "heads": [listed]})):
        models: Any = SimpleNamespace(ask=lambda *_, decides=decides, **__: decides)
        assert answer_deciding(models, run) == wanted
