"""The recipes of docs/library/names.md, with networks of other projects."""

import re
from pathlib import Path

import pytest
import torch
from kit.hf_folders import byte_level, word_piece
from kit.hf_models import made
from transformers import PreTrainedTokenizerFast

import transformer

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = Path(__file__).resolve().parents[2] / "docs" / "library" / "names.md"
RECIPES = re.findall(r"```python\n(.*?)```", NAMES.read_text(encoding="utf-8"), re.DOTALL)[-1]
LOAD = 'model = transformer.load("stories")\n'
WORDS = 'model.tokenizer.encode(word)[0] for word in (" boy", " girl")'
LAYERS = dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers"), 5)


def model_of(family, build):
    made_of, special = build()
    encode = PreTrainedTokenizerFast(tokenizer_object=made_of, **special)
    options = {} if family == "gemma" else {"scale_embedding": True}
    theirs = made(family, 3, vocab_size=len(encode) + 5, **LAYERS, **options)
    return transformer.from_transformers(theirs, encode)


@pytest.mark.parametrize(
    ("family", "build"), [("gemma", byte_level), ("bert", word_piece), ("m2m_100", byte_level)]
)
def test_the_recipes_of_names_run_with_other_networks(family, build):
    """And a gradient at `embed` is one of the network's own logits: Gemma scales its embeddings,
    BERT adds token types, NLLB has two stacks."""
    assert LOAD in RECIPES
    model = model_of(family, build)
    recipes = RECIPES.replace(LOAD, "").replace(WORDS, "5, 9")
    if family != "gemma":  # what is patched, steered and switched off is the encoder's
        begin, end = recipes.split("vectors = {}")
        begin = begin.replace('"decoder"', '"encoder"').replace(
            "other, last", 'other, last, stack="encoder"'
        )
        recipes = f"{begin}vectors = {{}}{end}"
    if family == "bert":  # which has no decoder, and generates nothing
        predicts_next = re.compile(
            r"model\.(generate|samples)\(|change\[|"
            r"(patch_effect|logit_contribution|head_importance|next_token)\("
        )
        recipes = recipes.replace("len(model.prepare(text).ids)", "3")
        lines = recipes.replace("decoder", "encoder").splitlines()
        recipes = "\n".join(line for line in lines if not predicts_next.search(line))
    names = {"model": model}
    exec(compile(recipes, str(NAMES), "exec"), names)
    run, logits = names["run"], names["logits"]
    torch.testing.assert_close(logits.detach(), run.logits, atol=1e-4, rtol=1e-4)
    assert names["saliency"].shape == (1, len(run.ids))
    assert names["saliency"].min() > 0
