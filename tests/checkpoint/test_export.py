"""Export our networks to folders that transformers opens with equal logits and ids; import
transformers' networks from memory."""

import json
import random
import sys

import pytest
import torch
from kit import prefork
from kit.hf_folders import PUBLISHED, byte_level, write
from kit.hf_models import FAMILIES, SEQ2SEQ, made
from kit.models import spread
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from transformer import build_transformer, from_transformers, load
from transformer.checkpoint import export, read
from transformer.model.config import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = dict(d_model=24, n_heads=4, n_layers=3, d_ff=40, max_len=32)
WRITTEN = {  # by preset: the family that it is written as, and options
    "gpt": ("gpt2", {}),
    "gpt-2": ("gpt2", {"padding_id": 0}),
    "llama": ("llama", {"n_key_heads": 2, "tie_embeddings": False, "attention_bias": True}),
    "qwen3": ("qwen3", {"n_key_heads": 2, "head_size": 10}),
    "neox": ("gpt_neox", {"rotary_size": 4}),
    "bert": ("bert", {"head_transform": True}),
}


@pytest.mark.parametrize("preset", WRITTEN)
def test_transformers_opens_it_with_equal_logits_and_ids(preset, tokenizer, tmp_path):
    family, options = WRITTEN[preset]
    tokenizer = tokenizer.with_mask() if family == "bert" else tokenizer
    changes = {**SMALL, "vocab_size": tokenizer.vocab_size, **options}
    network = spread(build_transformer(preset, **changes), seed=3).eval()
    assert export(tmp_path, network, network.config, tokenizer) == family
    auto = AutoModelForMaskedLM if family == "bert" else AutoModelForCausalLM
    theirs, missing = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(missing.values())
    ids = torch.randint(3, tokenizer.vocab_size, (2, 9))
    with torch.no_grad():
        wanted = theirs.eval()(ids).logits
        torch.testing.assert_close(network(ids), wanted, atol=1e-4, rtol=1e-4)
    assert load(tmp_path).network(ids).equal(network(ids))
    encode = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The fox said: « ça va ? »", " two  spaces\n", "🦊"):
        assert encode(text)["input_ids"] == tokenizer.encode(text, special=True)
        assert encode.decode(tokenizer.encode(text)) == text


def test_a_network_that_they_lack_is_refused_by_its_differences(tokenizer, tmp_path):
    network = build_transformer("gpt", vocab_size=320, **SMALL, norm="post")
    with pytest.raises(ValueError, match=r"no family that is written has norm='post'; what is"):
        export(tmp_path / "new", network, network.config, tokenizer)
    assert not (tmp_path / "new").exists()
    assert PRESETS.keys() - WRITTEN.keys() == {
        "pre-norm", "vaswani-2017", "learned-positions", "gelu-post-norm"
    }  # fmt: skip


def test_the_bundled_model_is_written_by_the_command(tmp_path):
    command = [sys.executable, "-m", "transformer.checkpoint", "export", "stories", str(tmp_path)]
    done = prefork.run(command)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}: stories, as gpt2\n"
    theirs, encode = (
        auto.from_pretrained(tmp_path) for auto in (AutoModelForCausalLM, AutoTokenizer)
    )
    model, text = load("stories"), "Once upon a time"
    found = theirs.generate(**encode(text, return_tensors="pt"), max_new_tokens=20, do_sample=False)
    assert found[0].tolist() == list(model.generate(text, max_new_tokens=20).ids)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"]
    assert read(tmp_path).config.max_len == model.config.max_len


@pytest.mark.parametrize("name", ["gpt2", "qwen2", "bert", "marian", "t5"])
def test_a_network_in_memory_is_read_as_its_folder_is(name, tmp_path):
    family, made_of, _ = PUBLISHED[name]
    folder = tmp_path / "folder"
    theirs = write(folder, family, 1, made_of)
    theirs.config._name_or_path = str(folder)
    encode = AutoTokenizer.from_pretrained(folder)
    here, there = from_transformers(theirs, encode), load(folder)
    assert here.config == there.config
    assert here.tokenizer.encode("The cat", special=True) == there.tokenizer.encode(
        "The cat", special=True
    )
    for key, tensor in there.network.state_dict().items():
        assert tensor.equal(here.network.state_dict()[key]), key
    with torch.no_grad():  # it has its own numbers
        next(theirs.parameters()).zero_()
    assert here.network.state_dict().keys() == there.network.state_dict().keys()
    here.save(tmp_path / "saved")
    read_again = load(tmp_path / "saved").trace("The cat").trace
    assert all(
        one.pattern.equal(other.pattern)
        for one, other in zip(read_again, there.trace("The cat").trace, strict=True)
    )


SWITCHES = {
    "tie_embeddings": [True, False], "n_key_heads": [None, 2], "head_size": [None, 8],
    "attention_bias": [True, False], "feed_forward_bias": [True, False],
    "activation": ["gelu", "gelu-tanh", "relu", "silu", "quick-gelu"], "norm_eps": [1e-5, 1e-12],
    "n_token_types": [0, 1, 2], "rotary_size": [None, 4], "rotary_base": [500.0, 1e6],
    "parallel": [True, False], "max_len": [17, 32], "padding_id": [None, 0], "n_layers": [1, 3],
}  # fmt: skip


@pytest.mark.parametrize("preset", WRITTEN)
def test_nothing_is_missing_in_what_is_written_whatever_is_switched(preset, tokenizer, tmp_path):
    draw, n_written = random.Random(preset), 0
    for case in range(24):
        names = draw.sample([*SWITCHES], 2)
        switched = {name: draw.choice(SWITCHES[name]) for name in names}
        options = {**SMALL, "vocab_size": tokenizer.vocab_size, **WRITTEN[preset][1], **switched}
        try:
            network = spread(build_transformer(preset, **options), seed=case).eval()
            family = export(tmp_path, network, network.config, tokenizer)
        except ValueError:  # no family has it
            continue
        n_written += 1
        auto = AutoModelForMaskedLM if family == "bert" else AutoModelForCausalLM
        theirs, missing = auto.from_pretrained(tmp_path, output_loading_info=True)
        assert not any(missing.values()), (switched, missing)
        ids = torch.randint(3, tokenizer.vocab_size, (2, 9))
        with torch.no_grad():
            wanted, found = theirs.eval()(ids).logits, network(ids)
        torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-3, msg=str(switched))
        assert load(tmp_path).network(ids).equal(found)
    assert n_written >= 6


@pytest.fixture(scope="module")
def encode():
    made_of, special = byte_level()
    return PreTrainedTokenizerFast(tokenizer_object=made_of, **special)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_read_from_memory_and_saved(family, encode, tmp_path):
    ids = torch.tensor([[5, 9, 3, 17, 4]])
    given = [ids, ids] if family in SEQ2SEQ else [ids]
    for size in (0, 1, 3):
        theirs = made(family, size, seed=size, vocab_size=len(encode) + 5)
        model = from_transformers(theirs, encode, max_len=96)
        with torch.no_grad():
            wanted, found = theirs(*given[:1], **_target(given)).logits, model.network(*given)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        model.save(tmp_path)
        assert load(tmp_path).network(*given).equal(found)


def _target(given):
    return {"decoder_input_ids": given[1]} if len(given) > 1 else {}


def test_a_network_in_memory_that_computes_something_else_is_refused(encode):
    def network(family):
        return made(family, 1, vocab_size=len(encode) + 5)

    class Same(torch.nn.LayerNorm):
        def forward(self, x):
            return x

    hooked, replaced = network("llama"), network("gpt2")
    hooked.model.layers[0].mlp.register_forward_hook(lambda module, args, output: 2 * output)
    replaced.transformer.h[0].ln_1 = Same(32)
    translator = network("bart")
    translator.model.encoder.layers[0].register_forward_hook(
        lambda module, args, output: 0 * output
    )
    for theirs in (hooked, replaced, translator):
        with pytest.raises(ValueError, match=r"its results differ by .* it has hooks, a replaced"):
            from_transformers(theirs, encode)
    plain = network("bert").train()  # with dropout, which is off while it is read
    assert from_transformers(plain, encode).name == "BertForMaskedLM"
    assert plain.training
    assert from_transformers(network("opt").bfloat16(), encode).config.n_layers == 1
