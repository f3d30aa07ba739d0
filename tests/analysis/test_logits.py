"""What each part adds to a logit, against the gradients of a pass that is linear in each part; the
logit lens and the surprisal of each token."""

import copy
import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from kit.models import tiny
from kit.strategies import configurations, model_of_drawn
from torch import Tensor, nn

import transformer
from transformer import Break, with_lens
from transformer.analysis.logit_contribution import LogitContribution, logit_contribution
from transformer.analysis.logit_lens import logit_lens
from transformer.inference.deadline import Deadline, until
from transformer.model.hooks import Point
from transformer.model.primitives import NORMS, RMSNorm
from transformer.views.journey.contribution import contribution, sentence


def held(norm: Any, given: tuple[Tensor], _: Tensor) -> Tensor:
    """A norm's output with its scale detached, so that it is linear."""
    (x,), gain, shift = given, norm.weight, 0.0
    if isinstance(norm, nn.LayerNorm):
        x, shift = x - x.mean(dim=-1, keepdim=True), norm.bias
    elif norm.plus_one:
        gain = 1 + gain
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt().detach() + shift


def share(part: Tensor | None) -> Tensor:
    """A part's contribution: part times gradient."""
    nothing = part is None or part.grad is None
    return torch.zeros(1) if nothing else (part * part.grad).detach()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(config=configurations(head_transform=False, logit_cap=None))
def test_each_part_adds_itself_times_its_gradient_and_all_sum_to_the_logit(config, tokenizer):
    """Gradients of a pass in which the logit is linear in each part: none reads another."""
    model, text = model_of_drawn(config, tokenizer), "The fox"
    model.network.double()
    reads_all = model.config.family == "encoder"
    run: Any = model.trace(text) if reads_all else model.generate(text, max_new_tokens=3)
    place = 2 if reads_all else run.n_prompt + 1
    found, target = logit_contribution(model, run, place), run.ids[place]
    read = torch.tensor([run.ids if reads_all else run.ids[:place]])
    texts = (torch.tensor([run.source_ids]), read) if run.source_ids else (read,)
    network, parts = copy.deepcopy(model.network).requires_grad_(True), {}

    def cut(point: Point, value: Any, **beside: Any) -> Any:
        if point.name in ("embed", "pos_embed", "z", "mlp_out"):
            value = parts[point] = value.detach().requires_grad_()
        return value

    for norm in (one for one in network.modules() if isinstance(one, nn.LayerNorm | RMSNorm)):
        norm.register_forward_hook(held)
    logit = network(*texts, hooks=[cut])[0, place if reads_all else -1, target]
    logit.backward()
    assert (found.position, found.target) == (place, target)
    assert [found.logit, found.total] == pytest.approx([logit.item()] * 2, abs=1e-4)

    stack, embedding = network.last_stack, network.embeddings[network.last_stack.name]
    others = {"token": parts[Point("embed", stack.name)]}
    if parts[Point("pos_embed", stack.name)].any():
        others["position"] = parts[Point("pos_embed", stack.name)]
    for name, module in (
        ("embedding norm", embedding.norm),
        ("embedding projection", embedding.project),
        ("final norm", stack.norm),
        ("output bias", network.head),
    ):
        if getattr(module, "bias", None) is not None:
            others[name] = module.bias
    wanted = {name: float(share(part).sum()) for name, part in others.items()}
    assert found.others == pytest.approx(wanted, abs=1e-4)
    for at, layer in enumerate(stack.layers):
        written = share(parts[Point("mlp_out", stack.name, at)]).sum()
        assert float(found.feed_forward[at]) == pytest.approx(float(written), abs=1e-4)
        ends = ("attention.output.bias", "residual.norm.bias", "residual.output_norm.bias")
        biases = (share(x).sum() for name, x in layer.named_parameters() if name.endswith(ends))
        assert float(found.biases[at]) == pytest.approx(float(sum(biases)), abs=1e-4)
        for kind, heads in found.heads.items():
            each = share(parts[Point("z", stack.name, at, kind)]).sum(dim=(0, 2, 3))
            torch.testing.assert_close(heads[at].double(), each, atol=1e-4, rtol=0)


def test_a_logit_that_is_no_sum_of_parts_is_refused(
    tiny_model, tiny_encoder, tokenizer, monkeypatch
):
    run = tiny_model.generate("The fox", max_new_tokens=2)
    place, read = run.n_prompt, tiny_encoder.trace("The fox")
    bert = tiny("bert", "encoder", tokenizer, head_transform=True)
    gemma = tiny("gemma", "decoder", tokenizer, logit_cap=30.0)
    for words, *arguments in (
        ("the token must be one that the network predicted", tiny_model, run, 0),
        ("target must be a whole number from 0 to 319", tiny_model, run, place, 320),
        ("target must be a whole number from 0 to", tiny_model, run, place, "3"),
        ("position must be a whole number from 0 to", tiny_encoder, read, len(read.ids)),
        ("a logit of bert is not the sum of what its parts add", bert, bert.trace("The fox"), 1),
        ("a logit of gemma is not the sum", gemma, gemma.trace("The fox"), 1),
    ):
        with pytest.raises(ValueError, match=words):
            logit_contribution(*arguments)

    class Odd(nn.Module):
        def __init__(self, size: int, eps: float) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(size))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gain * x.tanh()

    odd = dataclasses.replace(NORMS["layer"], make=Odd)
    monkeypatch.setitem(NORMS, "layer", odd)
    other = tiny("odd", "decoder", tokenizer)
    monkeypatch.undo()
    read = dataclasses.replace(other, engine=None).generate("The fox", max_new_tokens=1)
    with pytest.raises(ValueError, match="contributions need LayerNorm or RMSNorm; got Odd"):
        logit_contribution(other, read, place)
    capped = dataclasses.replace(tiny_model, network=tiny("capped", "decoder", tokenizer).network)
    capped.network.head.register_forward_hook(lambda module, given, out: 3 * (out / 3).tanh() + 9)
    with pytest.raises(ValueError, match="is not the sum of what its parts add"):
        logit_contribution(capped, capped.trace("The fox"), 1)


# --- the picture ----------------------------------------------------------------------------------

FOUND = LogitContribution(
    position=7,
    target=3,
    logit=5.5,
    heads={"self": torch.tensor([[0.5, -1.0], [3.0, 0.25]])},
    feed_forward=torch.tensor([2.0, 0.5]),
    biases=torch.tensor([-0.25, 0.0]),
    others={"token": 0.25, "position": 0.125, "final norm": 0.125},
)


def test_the_map_and_the_sentence_hold_the_parts_and_sum_to_the_logit():
    figure, nothing = contribution(FOUND, "<b>"), np.nan
    (trace,) = figure.data
    rows = {
        "token": [nothing, nothing, nothing, 0.25],
        "position": [nothing, nothing, nothing, 0.125],
        "layer 0": [0.5, -1.0, 2.0, -0.25],
        "layer 1": [3.0, 0.25, 0.5, 0.0],
        "final norm": [nothing, nothing, nothing, 0.125],
    }
    assert figure.layout.meta["row_labels"] == list(rows)
    assert figure.layout.meta["column_labels"] == ["head 0", "head 1", "feed-forward", "rest"]
    np.testing.assert_array_equal(trace.z, list(rows.values()))
    assert np.nansum(trace.z) == FOUND.logit == FOUND.total
    assert (trace.zmin, trace.zmax) == (-3.0, 3.0)
    assert sentence(FOUND) == (
        "Of the logit 5.50, layer 1, head 0 adds most: +3.00. Next comes the feed-forward of "
        "layer 0 with +2.00. The largest reduction comes from layer 0, head 1: -1.00."
    )


def test_what_an_encoder_reads_surprises_nobody(tiny_encoder):
    assert set(with_lens(tiny_encoder, tiny_encoder.trace("the fox said")).surprisal) == {None}


def test_the_lens_of_a_network_with_a_break_is_that_networks_own(tiny_model):
    options = {"max_new_tokens": 3, "interventions": [Break("no-final-norm")]}
    run = tiny_model.generate("the fox said", **options)
    lens = logit_lens(tiny_model, run)
    for step in run.steps:
        found = float(lens.probabilities[-1, run.n_prompt + step.index - 1, 0])
        assert found == pytest.approx(step.candidates[0].probability, rel=1e-3)


def test_the_lens_needs_the_runs_model_and_ends_at_the_deadline(tiny_model, tiny_encoder):
    run = tiny_model.trace("the fox")
    assert run.lens is run.surprisal is None
    with pytest.raises(ValueError, match=r"needed: the run that transformer.with_lens\(model"):
        run.draw("lens")
    with pytest.raises(ValueError, match="need the model that made it, tiny; got tiny-encoder"):
        with_lens(tiny_encoder, run)
    with until(Deadline(0)), pytest.raises(ValueError, match="takes longer than one request may"):
        with_lens(tiny_model, run)


def test_a_run_read_from_a_file_has_the_same_lens(tiny_model, tmp_path):
    run = tiny_model.generate("the fox said", max_new_tokens=3)
    run.to_npz(tmp_path / "run.npz")
    again = logit_lens(tiny_model, transformer.read_npz(tmp_path / "run.npz"))
    torch.testing.assert_close(again.probabilities, logit_lens(tiny_model, run).probabilities)
    bare = dataclasses.replace(run, trace=transformer.from_json(run.to_json()).trace)
    with pytest.raises(ValueError, match="without residual streams"):
        with_lens(tiny_model, bare)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0, "seed": 2}])
def test_a_run_holds_no_network(tokenizer, settings):
    model = tiny("short-lived", "decoder", tokenizer)
    network = weakref.ref(model.network)
    run = with_lens(model, model.generate("the fox said", max_new_tokens=4, **settings))
    pending = model.generate("the fox said", max_new_tokens=4, **settings)
    del model
    gc.collect()
    assert network() is None
    assert run.trace.weights("decoder").shape[0] == 2
    assert len(pending.steps[0].candidates) >= 20
    assert pending.candidate_labels[run.ids[-1]] == run.labels[-1]
