"""The effect of each word, against plain passes over texts from which it was cut by hand."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from kit.strategies import configurations, model_of_drawn
from torch import Tensor

from transformer import Ablate, Add, Break, EditMask, Model, Patch, Run, load
from transformer.analysis.word_effects import without_words, word_effects, words_in
from transformer.interventions.hooks import hooks_of

TEXT = "the fox said to the bird"
ROOM = 2e-4


def run_of(model: Model, changes: Sequence[object] = ()) -> Run:
    if model.config.family == "encoder":
        found: Run = model.trace(TEXT, changes)
        return found
    return model.generate(TEXT, max_new_tokens=4, interventions=changes)


def chances(model: Model, run: Run, gone: set[int], changes: Sequence[object] = ()) -> Tensor:
    """(V,) after the run's last token read, or at it, without the tokens at some places."""
    hooks = hooks_of(changes, model.config)
    kept = [x for at, x in enumerate(run.ids) if run.source_ids or at not in gone]
    if model.config.family == "encoder":
        place, mask = model.last_read(run), model.tokenizer.mask_id
        if mask is None:
            ids, place = kept, place - sum(at < place for at in gone)
        else:
            ids = [mask if at in gone else x for at, x in enumerate(run.ids)]
        return model.network(torch.tensor([ids]), hooks=hooks)[0, place].softmax(-1)
    given = [torch.tensor([kept])]
    if run.source_ids:
        source = [x for at, x in enumerate(run.source_ids) if at not in gone]
        given = [torch.tensor([source]), torch.tensor([list(run.ids)])]
    return model.network(*given, hooks=hooks)[0, -1].softmax(-1)


@torch.no_grad()
def check(model: Model, changes: Sequence[object] = ()) -> None:
    run = run_of(model, changes)
    if run.trace_start or len(run.ids) > run.config.output_max_len:
        return
    last = model.last_read(run) if model.config.family == "encoder" else len(run.ids) - 1
    found = word_effects(model, run, last)
    target = chances(model, run, set(), changes)
    assert found.target == int(target.argmax())
    assert found.probability == pytest.approx(float(target[found.target]), abs=ROOM)
    for effect in (*found.words, *found.mentions):
        wanted = chances(model, run, set(effect.places), changes)
        assert effect.probability == pytest.approx(float(wanted[found.target]), abs=ROOM)
        assert effect.likeliest_probability == pytest.approx(float(wanted.max()), abs=ROOM)
        one = without_words(model, run, effect.places, last)
        assert (one.logits.softmax(-1) - wanted).abs().max() < ROOM
    if model.config.family == "encoder":  # its first word is the one that it predicts
        return
    both = next(one for one in found.mentions if one.word == "the")
    assert both.places == tuple(at for one in found.words if one.word == "the" for at in one.places)


SIZES = dict(max_len=24, target_max_len=None, target_vocab_size=None, n_layers=2)
STEADY = configurations(**SIZES).filter(lambda one: not one.norm_heads or one.norm_eps >= 1e-6)


@settings(max_examples=8, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(config=STEADY)
def test_a_words_effect_is_a_plain_pass_without_its_tokens(config, tokenizer):
    model = model_of_drawn(config, tokenizer)
    check(model)
    check(model, [Ablate("encoder" if config.family == "encoder" else "decoder", 0, heads=[0])])


def test_a_word_that_the_prediction_goes_on_with_stays(tiny_model):
    run = tiny_model.trace(TEXT)
    letters = next(
        at for at in range(400) if tiny_model.tokenizer.label(at)[:1].isalpha()
    )  # no space before it
    words = word_effects(tiny_model, run, target=letters).words
    assert [one.word for one in words] == TEXT.split()[:-1]
    begins = next(at for at in range(400) if tiny_model.tokenizer.label(at)[:1] == "␣")
    assert [one.word for one in word_effects(tiny_model, run, target=begins).words] == TEXT.split()


def test_words_are_runs_of_pieces_and_a_text_without_spaces_its_tokens():
    assert words_in(["<s>", "The", "␣fo", "x", "␣said", "."], [0]) == [(1,), (2, 3), (4, 5)]
    assert words_in(["a", "<s>", "b", "c"], [1]) == [(0,), (2, 3)]
    assert words_in([*"abcdefghijkl"], []) == [(place,) for place in range(12)]


def test_words_stay_beside_a_change_at_chosen_positions(tiny_model):
    vector = [0.1] * tiny_model.config.d_model
    for change in (
        Ablate("decoder", 0, positions=[2]),
        Add("decoder", 0, vector, positions=[1]),
        EditMask("decoder", forbid=[(3, 1)]),
        Patch("decoder", 0, [1], "the bird said to the fox"),
    ):
        run = run_of(tiny_model, [change])
        for question in (word_effects, lambda model, run: without_words(model, run, [1])):
            with pytest.raises(ValueError, match="together with a change at chosen positions"):
                question(tiny_model, run)
    check(tiny_model, [Break("no-positions")])


def test_a_mask_token_stands_in_each_words_place_of_an_encoder():
    model = load("fill-in", "cpu")
    with torch.no_grad():
        for changes in ([], [Ablate("encoder", 0, positions=[2])]):  # every place stays
            run = model.trace("The [MASK] ran up the hill.", changes)
            found = word_effects(model, run)
            assert [one.word for one in found.words] == ["The", "ran", "up", "the", "hill."]
            for effect in found.words:
                wanted = chances(model, run, {*effect.places}, changes)
                assert effect.probability == pytest.approx(float(wanted[found.target]), abs=ROOM)


@pytest.mark.parametrize("places", [[], [99], [-1], range(7)])
def test_places_that_leave_nothing_or_are_not_there_are_refused(tiny_model, places):
    run = tiny_model.trace(TEXT)
    with pytest.raises(ValueError, match="places must be some of the text's tokens and not all"):
        without_words(tiny_model, run, places if len(places) < 2 else range(len(run.ids)))


def test_an_encoder_without_a_mask_token_keeps_the_token_that_it_predicts(tiny_encoder):
    run = tiny_encoder.trace(TEXT)
    with pytest.raises(ValueError, match="places must be some of the text's tokens"):
        without_words(tiny_encoder, run, [3], position=3)
    without_words(tiny_encoder, run, [2], position=3)
