"""A model that reads less than its example: the page opens with as much of it as fits."""

import pytest
from kit import aio
from kit.client import opened
from kit.models import tiny

from transformer import Tokenizer
from transformer.ui import build, handlers
from transformer.ui.examples import EXAMPLES, example_of, is_offered
from transformer.ui.service import Service


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_a_model_shorter_than_its_example_is_served_and_can_be_used(
    tokenizer: Tokenizer, family: str
) -> None:
    model = tiny("short", family, tokenizer, max_len=5)
    service = Service([model])

    async def page() -> None:
        build(service)  # Gradio needs a loop

    aio.run(page())
    example, whole = example_of(model), EXAMPLES[family]
    offered = [example.text, *example.suggestions, *example.batch]
    for text, longer in zip(offered, [whole.text, *whole.suggestions, *whole.batch], strict=True):
        assert text
        assert longer.startswith(text)
        read = model.prepare(text)
        assert len(read.source or read.ids) <= 5
        assert is_offered(text, [model]) or text in example.batch
    run, batch = handlers.example(service, "short")
    assert run["text"] == example.text
    assert batch["texts"] == list(example.batch)
    asked = handlers.generate(service, "visitor", "short", "a", {"max_new_tokens": 3})
    *_, (facts, status, _) = asked
    assert (status["kind"], facts is None) == ("done", False)
    (shown,) = [one["text"] for one in opened(service, "model=short") if "text" in one]
    assert shown.value == example.text


def test_an_example_is_cut_after_a_word_if_one_fits(tokenizer: Tokenizer) -> None:
    text = EXAMPLES["encoder-decoder"].text
    words = [" ".join(text.split(" ")[:count]) for count in range(1, 9)]
    for max_len in range(4, 24):
        model = tiny("short", "encoder-decoder", tokenizer, max_len=max_len)
        fitting = [part for part in words if len(tokenizer.encode(part)) < max_len]  # and the end
        if fitting:
            assert example_of(model).text == fitting[-1]
    long = tiny("long", "encoder-decoder", tokenizer, max_len=64)
    assert example_of(long) == EXAMPLES["encoder-decoder"]
