"""What parts of a network matter for one token, against one altered pass at a time."""

import dataclasses
import functools
import math

import pytest
import torch

import transformer
from transformer import Ablate, Break, Patch
from transformer.analysis import text_before
from transformer.analysis.ablation import (
    BROKEN_TOKENS,
    broken_guess,
    broken_ids,
    head_importance,
    intact_ids,
    losses_without,
    next_token,
    sample_loss,
)
from transformer.analysis.journey import without_head
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.patching import most_changed, patch_effect
from transformer.checkpoint import held_out_sample
from transformer.inference import progress
from transformer.inference.deadline import Deadline, until
from transformer.interventions.breaks import breaks_of
from transformer.model.sites import sites_of
from transformer.training.evaluate import score_documents, score_pairs

TEXT, OTHER = "The fox said hello", "The bird sang hello"


def log_probability(model, run, interventions, place, target):
    """By one pass over the text up to the token, altered as told."""
    options = dict(interventions=interventions, max_new_tokens=4)
    hooks = model.stream(run.request.text, **options)._hooks
    read = [torch.tensor([ids]) for ids in (run.source_ids, run.ids[:place]) if ids]
    with torch.inference_mode():
        return model.network(*read, hooks=hooks)[0, -1].log_softmax(-1)[target].item()


@pytest.fixture(params=["decoder", "encoder-decoder"])
def model(request, tiny_model, tiny_encoder_decoder):
    return tiny_model if request.param == "decoder" else tiny_encoder_decoder


@pytest.mark.parametrize("by", ["zero", "mean"])
def test_importance_is_the_change_when_each_head_is_silenced_alone(model, by, monkeypatch):
    monkeypatch.setattr(text_before, "MAX_WEIGHTS", 300)  # several batches
    run = model.generate(TEXT, max_new_tokens=5)
    place = run.n_prompt + 3
    found = head_importance(model, run, place, by)
    before = log_probability(model, run, [], place, run.ids[place])
    assert found.log_probability == pytest.approx(before, abs=1e-4)
    changes = {}
    for site in sites_of(model.config):
        for head in range(model.config.n_heads):
            silence = Ablate(*site[:2], [head], site.kind, by)
            after = log_probability(model, run, [silence], place, run.ids[place])
            changes[site, head] = found.change[site.stack, site.kind][site.layer, head].item()
            assert changes[site, head] == pytest.approx(after - before, abs=1e-4)
    assert found.most() == max(changes, key=lambda at: abs(changes[at]))


@pytest.mark.parametrize(
    ("part", "head"), [("resid_post", None), ("z", None), ("mlp_out", None), ("z", 1)]
)
def test_a_patch_map_is_one_patch_after_the_other(model, part, head, monkeypatch):
    monkeypatch.setattr(text_before, "MAX_WEIGHTS", 300)  # several batches
    run = model.generate(TEXT, max_new_tokens=4)
    place, stack = run.n_prompt + 2, "encoder" if run.source_ids else "decoder"
    by_head = head is not None
    found = patch_effect(model, run, OTHER, place, stack=stack, part=part, by_head=by_head)
    change = found.change[:, head] if by_head else found.change
    before = log_probability(model, run, [], place, found.target)
    assert found.before == pytest.approx(before, abs=1e-4)
    for layer, position in [(0, 0), (0, 2), (1, 1), (1, change.shape[1] - 1)]:
        patch = Patch(stack, layer, [position], OTHER, part=part, heads=[head] if by_head else None)
        after = log_probability(model, run, [patch], place, found.target)
        assert change[layer, position].item() == pytest.approx(after - before, abs=1e-4)


def test_the_target_of_a_patch_map_is_predicted_by_the_other_text(tiny_model):
    run = tiny_model.trace(TEXT)
    found = patch_effect(tiny_model, run, OTHER, len(run.ids) - 1)
    ids = torch.tensor([tiny_model.prepare(OTHER).ids])
    with torch.inference_mode():
        there = tiny_model.network(ids)[0, -1].log_softmax(-1)
    assert found.target == int(there.argmax())
    assert found.other == pytest.approx(there.max().item(), abs=1e-4)
    chosen = patch_effect(tiny_model, run, OTHER, len(run.ids) - 1, target=7)
    assert (chosen.target, chosen.other) == (7, pytest.approx(there[7].item(), abs=1e-4))


def test_a_metric_of_the_caller_is_measured_at_each_patch(tiny_model):
    run = tiny_model.trace(TEXT)
    place = len(run.ids) - 1

    def difference(logits):
        return logits[:, 7] - logits[:, 9]

    found = patch_effect(tiny_model, run, OTHER, place, metric=difference)
    one = tiny_model.trace(TEXT, [Patch("decoder", 1, [2], OTHER)]).logits[0, place - 1]
    intact = run.logits[0, place - 1]
    before = intact[7] - intact[9]
    assert found.target is None
    assert found.before == pytest.approx(float(before), abs=1e-4)
    assert found.change[1, 2] == pytest.approx(float(one[7] - one[9] - before), abs=1e-4)
    other = tiny_model.trace(OTHER).logits[0, -1]
    assert found.other == pytest.approx(float(other[7] - other[9]), abs=1e-4)
    for metric, sentence in (
        (lambda logits: logits[0, 7], r"returns a tensor \(N,\); of \(1, .*\) it returned \(\)"),
        (lambda logits: 3.0, "it returned float"),
    ):
        with pytest.raises(ValueError, match=sentence):
            patch_effect(tiny_model, run, OTHER, place, metric=metric)
    with pytest.raises(ValueError, match="got metric= and target="):
        patch_effect(tiny_model, run, OTHER, place, metric=difference, target=7)


def test_long_work_shows_a_bar_unless_it_is_a_servers(tiny_model, monkeypatch, capsys):
    run = tiny_model.trace(TEXT)
    monkeypatch.setattr(progress, "DELAY_S", 1e-9)
    monkeypatch.setattr(progress, "tqdm", functools.partial(progress.tqdm, mininterval=0))

    def shown(**options):
        head_importance(tiny_model, run, 3, **options)
        patch_effect(tiny_model, run, OTHER, 3, **options)
        return capsys.readouterr().err

    assert "heads: " in (bars := shown())
    assert "patching: " in bars
    assert shown(progress=False) == ""
    with until(Deadline(60)):
        assert shown() == ""
    with until(Deadline(math.inf)):  # of a request without a time limit
        assert "heads: " in shown()
    monkeypatch.setattr(progress, "DELAY_S", 2)
    assert shown() == ""


def test_the_next_token_is_predicted_with_the_interventions_and_without(tiny_model):
    silence = Ablate("decoder", 0, [1])
    run = tiny_model.generate(TEXT, max_new_tokens=4, interventions=[silence])
    place = run.n_prompt + 1
    found = next_token(tiny_model, run, place, n_kept=3)
    assert run.ids[place] in found.ids
    assert 3 <= len(found.ids) <= 7
    assert found.intact.tolist() == sorted(found.intact.tolist(), reverse=True)
    assert {*found.ids} < {*next_token(tiny_model, run, place).ids}
    again = {"max_new_tokens": 4, "forced_tokens": [9, 7]}
    forced = tiny_model.generate(TEXT, interventions=[silence], **again)
    assert intact_ids(tiny_model, forced) == tiny_model.generate(TEXT, **again).ids
    plain = tiny_model.generate(TEXT, max_new_tokens=4)
    assert intact_ids(tiny_model, forced, forced=False) == plain.ids
    for at, token in enumerate(found.ids):
        for probabilities, altered in ((found.intact, []), (found.intervened, [silence])):
            wanted = log_probability(tiny_model, run, altered, place, token)
            assert probabilities[at].log().item() == pytest.approx(wanted, abs=1e-4)


def test_the_target_after_the_end_is_the_intact_networks_likeliest(model):
    off = Ablate("decoder", 0, [1])
    run = model.generate(TEXT, max_new_tokens=4, interventions=[off])
    end = len(run.ids)
    with torch.inference_mode():
        read = [torch.tensor([ids]) for ids in (run.source_ids, run.ids) if ids]
        likeliest = int(model.network(*read)[0, -1].argmax())
    assert head_importance(model, run, end).target == likeliest
    assert next_token(model, run, end).target == likeliest
    assert logit_contribution(model, run, end).target == likeliest


def test_the_most_changed_token_loses_most_of_its_probability(tiny_encoder_decoder):
    run = tiny_encoder_decoder.generate(TEXT, max_new_tokens=5)
    forced = dict(max_new_tokens=5, forced_tokens=run.ids[1:])
    there = tiny_encoder_decoder.generate(OTHER, **forced)
    shares = [b.chosen.probability / a.chosen.probability
              for a, b in zip(run.steps, there.steps, strict=True)]  # fmt: skip
    found = most_changed(tiny_encoder_decoder, run, OTHER)
    assert found == 1 + shares.index(min(shares))
    with pytest.raises(ValueError, match="the network predicted no token"):
        most_changed(tiny_encoder_decoder, tiny_encoder_decoder.trace(TEXT), OTHER)


def test_a_position_that_nothing_predicts_is_refused(tiny_model, tiny_encoder):
    run = tiny_model.generate(TEXT, max_new_tokens=2)
    for place in (0, len(run.ids) + 1, -1, True, "3"):
        with pytest.raises(ValueError, match="the token must be one that the network predicted"):
            head_importance(tiny_model, run, place)
    with pytest.raises(ValueError, match="by must be one of"):
        head_importance(tiny_model, run, 2, "noise")
    for sentence, options in (
        ("part must be one of", {"part": "soul"}),
        (r"no site encoder\.0\.self", {"stack": "encoder"}),
        ("target must be a whole number from 0 to 319; got 320", {"target": 320}),
    ):
        with pytest.raises(ValueError, match=sentence):
            patch_effect(tiny_model, run, OTHER, 2, **options)
    with pytest.raises(ValueError, match="cannot generate"):
        head_importance(tiny_encoder, tiny_encoder.trace(TEXT), 2)


def with_sample(model, texts):
    sample = held_out_sample({"about": "For a test.", "texts": texts}, model.config.family)
    return dataclasses.replace(model, sample=sample)


def test_the_samples_loss_is_that_of_the_evaluation(tiny_model, tiny_encoder_decoder):
    texts = ["The fox said hello.", "Nobody said"]
    model = with_sample(tiny_model, texts)
    assert sample_loss(model) == pytest.approx(score_documents(model, texts).loss, rel=1e-4)
    long, ids = "Nobody said hello. " * 9, tiny_encoder_decoder.tokenizer
    translator = with_sample(tiny_encoder_decoder, [["The fox.", "Le renard."], [long, "Ça va ?"]])
    cut = ids.decode(ids.encode(long)[: translator.config.max_len - 1])
    wanted = score_pairs(translator, [("The fox.", "Le renard."), (cut, "Ça va ?")]).loss
    assert sample_loss(translator) == pytest.approx(wanted, rel=1e-6)
    assert sample_loss(tiny_model) is None


def test_every_break_is_measured_against_the_intact_network(tiny_model):
    model = with_sample(tiny_model, ["The fox said hello."])
    losses = losses_without(model)
    assert list(losses) == [None, *breaks_of(model.config)]
    intact = losses.pop(None)
    assert intact == sample_loss(model)
    for what, loss in losses.items():
        assert loss == sample_loss(model, [Break(what)])
        assert loss != intact
    run = model.generate(TEXT, max_new_tokens=1)
    for what in (None, "no-scale"):
        missing = [Break(what)] if what else []
        wanted = model.generate(TEXT, max_new_tokens=BROKEN_TOKENS, interventions=missing)
        assert broken_ids(model, run, missing) == wanted.ids


def test_a_gap_is_guessed_without_a_head_as_the_journey_reads_it_without():
    model = transformer.load("fill-in")
    run = model.trace("The [MASK] ran up the hill.")
    ((guess, *_),) = model.fill(run.request.text).guesses
    place = run.labels.index("<|mask|>")
    assert broken_guess(model, run, place) == (guess.id, pytest.approx(guess.probability))
    off = [Ablate("encoder", 3, [0])]
    chances = without_head(model, run, "encoder.3.self", 0, place).softmax(dim=-1)
    wanted = (int(chances.argmax()), pytest.approx(float(chances.max()), rel=1e-4))
    assert broken_guess(model, run, place, off) == wanted
    # a word that is not hidden in the text is hidden from the network
    shown = model.trace(run.request.text.replace("[MASK]", "dog"))
    assert broken_guess(model, shown, place) == (
        guess.id,
        pytest.approx(guess.probability, rel=1e-4),
    )


@pytest.mark.parametrize("content", [None, [], {}, {"texts": []}, {"texts": [3]}, {"texts": "a"}])
def test_a_damaged_sample_is_refused(content):
    with pytest.raises(ValueError, match="a sample must hold from 1 to 100 texts"):
        held_out_sample(content, "decoder")
    with pytest.raises(ValueError, match=r"\[source, target\] pairs"):
        held_out_sample({"texts": ["alone"]}, "encoder-decoder")
