"""A model that reads and writes character by character, from a text file to the page."""

from __future__ import annotations

import pytest
from kit.training import recipe

import transformer
from transformer import Model
from transformer.training.__main__ import main
from transformer.training.data import load_texts
from transformer.training.recipe import load_recipe
from transformer.ui.service import Service

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\n" * 30


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    folder = tmp_path_factory.mktemp("characters")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    recipe(folder, steps=120, dropout=0.0, rate=1e-2, every=120)
    path = folder / "tiny.toml"
    tiny = path.read_text(encoding="utf-8").replace('"The"', '"the"')
    path.write_text(tiny.replace("vocab_size = 300", 'kind = "words"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"\[tokenizer\] kind must be one of .*; got 'words'"):
        load_recipe(str(path))
    path.write_text(tiny.replace("vocab_size = 300", 'kind = "characters"'), encoding="utf-8")
    arguments = [str(path), "--data", str(folder / "text.txt")]
    assert main([*arguments, "--out", str(folder / "o"), "--cpu"]) == 0
    return transformer.load(folder / "o")


@pytest.mark.slow
def test_it_learns_and_writes_characters_and_the_page_offers_it(model):
    assert model.config.vocab_size == len(set(TEXT)) + 3
    service = Service([model])
    assert service.store.run(service.examples[model.name][0]).request.text == "nce on a tme"
    run = service.generate(model.name, "the cat s", max_new_tokens=4)
    assert run.text == "the cat sat o"
    assert run.tokens[1:] == tuple("the␣cat␣sat␣o")
    assert f"{model.config.vocab_size} tokens, characters." in model.card
    with pytest.raises(ValueError, match="holds 'T', which this model never learned"):
        service.generate(model.name, "The dog", max_new_tokens=4)


def test_a_single_file_is_cut_into_text_to_train_and_to_validate(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {n}\n" for n in range(100)), encoding="utf-8")
    (train,), (valid,) = load_texts(str(path))
    assert f"{train}\n{valid}\n" == path.read_text()
    assert len(train) == pytest.approx(0.9 * len(path.read_text()), abs=10)
    path.write_text("".join(f"line {n}\n<|endoftext|>\n" for n in range(20)), encoding="utf-8")
    assert [len(part) for part in load_texts(str(path))] == [18, 2]
    path.write_text("a single line", encoding="utf-8")
    with pytest.raises(ValueError, match="too short to train and to validate with; needed: more"):
        load_texts(str(path))
