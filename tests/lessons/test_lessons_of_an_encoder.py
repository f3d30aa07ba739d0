"""What a lesson asks of an encoder alone: the words that it finds for [MASK]."""

from typing import Any

import pytest
import torch
from builders import tiny

from transformer import Run, Tokenizer
from transformer.inference.model import Model
from transformer.lessons.lesson import check_of
from transformer.lessons.measures import GradingContext, of
from transformer.ui.lessons import shown_by
from transformer.ui.service import Service

STORY = "The dog ran up the hill and Tom ran after the dog."
HIDDEN = "The [MASK] ran up the [MASK]."


@pytest.fixture(scope="module")
def model() -> Model:
    tokenizer = Tokenizer.train([STORY] * 3, 300).with_mask()
    return tiny("tiny", "encoder", tokenizer, n_layers=1, max_len=64, norm="post")


@pytest.fixture(scope="module")
def experiments(model: Model) -> Service:
    return Service([model], trainings=0)


@pytest.fixture(scope="module")
def ground(experiments: Service) -> GradingContext:
    """What the page shows of a step's state."""
    return shown_by(experiments, {"model": "tiny", "text": HIDDEN, "tab": "prediction"})


def places(model: Model, run: Run) -> list[int]:
    return [at for at, index in enumerate(run.ids) if index == model.tokenizer.mask_id]


def chances(model: Model, ids: list[int], place: int) -> torch.Tensor:
    with torch.inference_mode():
        return model.network(torch.tensor([ids]))[0, place].softmax(dim=-1)


def test_a_hidden_token_is_measured_from_both_sides_and_from_the_left(ground, model):
    first, _ = places(model, ground.run)
    ids = list(ground.run.ids)
    both, left = chances(model, ids, first), chances(model, ids[: first + 1], first)
    texts = {index: model.tokenizer.text(index) for index in both.topk(8).indices.tolist()}
    whole = {index: text for index, text in texts.items() if "\ufffd" not in text}  # no lone byte
    assert len(whole) > 2
    for index, text in whole.items():
        given = {"token": first, "text": text}
        assert of(ground, "guess", given) == pytest.approx(float(both[index]), abs=1e-6)
        assert of(ground, "guess_from_left", given) == pytest.approx(float(left[index]), abs=1e-6)
    assert of(ground, "guess", {"token": first, "text": "nowhere"}) == 0
    with pytest.raises(ValueError, match="token must be a whole number from 0"):
        of(ground, "guess", {"token": len(ids), "text": "dog"})


def test_what_an_encoder_finds_is_what_it_says(ground, model, experiments):
    ids = list(ground.run.ids)
    found = [
        model.tokenizer.text(int(chances(model, ids, place).argmax()))
        for place in places(model, ground.run)
    ]

    def graded(check: dict[str, Any]) -> tuple[bool, str]:
        verdict = check_of({"run": check}).grade(ground, {})
        return verdict.right, verdict.says

    said = "".join(found)
    assert graded({"has": said}) == (True, f"The network says “{said.strip()}”.")
    assert not graded({"lacks": said})[0]
    assert not graded({"has": " ran up"})[0]  # stands in the text, but was not found
    whole = shown_by(experiments, {"model": "tiny", "text": STORY})  # hides nothing
    assert check_of({"run": {"has": "ran up"}}).grade(whole, {}).right
