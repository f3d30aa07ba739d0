"""What a lesson asks of an encoder alone: the words that it finds for [MASK]."""

import pytest
import torch
from kit.models import tiny

from transformer import Model, Tokenizer
from transformer.lessons.check_header import check_of
from transformer.lessons.measures import of
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import shown_by

STORY = "The dog ran up the hill and Tom ran after the dog."
HIDDEN = "The [MASK] ran up the [MASK]."


@pytest.fixture(scope="module")
def service() -> Service:
    tokenizer = Tokenizer.train([STORY] * 3, 300).with_mask()
    model = tiny("tiny", "encoder", tokenizer, n_layers=1, max_len=64, norm="post")
    return Service([model], trainings=0)


def chances(model: Model, ids: tuple[int, ...], place: int) -> torch.Tensor:
    with torch.inference_mode():
        return model.network(torch.tensor([ids]))[0, place].softmax(dim=-1)


def test_an_encoder_is_measured_at_its_first_hidden_word(service):
    ground = shown_by(service, {"model": "tiny", "text": HIDDEN, "tab": "prediction"})
    model, ids = service.model("tiny"), ground.run.ids
    places = [at for at, index in enumerate(ids) if index == model.tokenizer.mask_id]
    first = places[0]
    both = chances(model, ids, first)
    texts = {index: model.tokenizer.text(index) for index in both.topk(8).indices.tolist()}
    whole = {index: text for index, text in texts.items() if "\ufffd" not in text}  # no lone byte
    assert len(whole) > 2
    hidden = {"token": "[MASK]"}
    for index, text in whole.items():
        if model.tokenizer.encode(text) == [index]:
            found = of(ground, "candidate", hidden | {"text": text})
            assert found == pytest.approx(float(both[index]), abs=1e-6)
    assert of(ground, "top_probability", hidden | {"temperature": 1}) == pytest.approx(
        float(both.max()), abs=1e-6
    )
    other = model.prepare("The dog [MASK].").ids
    moved = (both - chances(model, tuple(other), other.index(model.tokenizer.mask_id))).abs().sum()
    given = {"other": "The dog [MASK].", "without": ""}
    assert of(ground, "moved", given) == pytest.approx(float(moved) / 2, abs=1e-6)
    best = (int(chances(model, ids, place).argmax()) for place in places)
    said = "".join(map(model.tokenizer.text, best))
    verdict = check_of({"run": {"has": said}}).grade(ground, {})
    assert (verdict.right, verdict.says) == (True, f"The network says “{said.strip()}”.")
    for wrong in ({"lacks": said}, {"has": " ran up"}):  # in the text, but not among the guesses
        assert not check_of({"run": wrong}).grade(ground, {}).right
    whole = shown_by(service, {"model": "tiny", "text": STORY})  # hides nothing
    assert check_of({"run": {"has": "ran up"}}).grade(whole, {}).right
