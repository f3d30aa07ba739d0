"""Other people's networks in our own modules, against transformers with the same random weights.

Five sizes a family, saved as transformers saves them and read by our adapters.
"""

import itertools
import json
import shutil

import pytest
import torch
import transformers
from kit.hf_folders import GONE, change, word_piece, write
from kit.hf_models import DECODERS, ENCODERS, FAMILIES, PLAIN, SEQ2SEQ, SIZES, V, class_of, made
from safetensors.torch import load_file, save_file

import transformer
from transformer import Trace
from transformer.checkpoint.adapters import network_of, values_of
from transformer.inference.beam import beam_search
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.compiled import engine_of
from transformer.inference.generation import generate

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("size", range(len(SIZES)))
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_attention_are_those_of_transformers(family, size, tmp_path):
    theirs, trace = made(family, size, seed=size), Trace()
    theirs.save_pretrained(tmp_path)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    theirs.set_attn_implementation("eager")
    lengths, padding = torch.tensor([17, 9, 13]), ours.config.padding_id
    real = torch.arange(17) < lengths[:, None]
    ids = torch.randint(3, V - 1, real.shape).where(real, padding)
    target, target_ids, is_text = [], {}, {"is_text": real}
    if family in SEQ2SEQ:
        start = torch.full((3, 1), theirs.config.decoder_start_token_id)
        target = [torch.cat([start, torch.randint(3, V - 1, (3, 6))], dim=1)]
        target_ids, is_text = {"decoder_input_ids": target[0]}, {"src_is_text": real}
    with torch.no_grad():
        said = theirs(ids, attention_mask=real.long(), output_attentions=True, **target_ids)
        found = ours(ids, *target, **is_text, trace=trace)
    text = torch.ones(3, 7, dtype=torch.bool) if target else real
    torch.testing.assert_close(found[text], said.logits[text], atol=1e-4, rtol=1e-4)
    for stack, kind in trace.kinds():
        name = "cross" if kind == "cross" else stack
        wanted = said[f"{name}_attentions" if target else "attentions"]
        rows = (real if stack == "encoder" else text)[None, :, None, :, None]
        weights = trace.weights(stack, kind) * rows
        torch.testing.assert_close(weights, torch.stack(wanted) * rows, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", [*DECODERS, *(name for name in SEQ2SEQ if name != "marian")])
def test_greedy_texts_of_a_padded_batch_are_those_of_transformers(family, tmp_path):
    for size in range(len(SIZES)):
        theirs, sources = made(family, size, seed=size), family in SEQ2SEQ
        if size % 2:  # stored so, and computed in float32
            theirs = theirs.bfloat16()
        theirs.save_pretrained(tmp_path)
        ours, stored_in = network_of(tmp_path, values_of(tmp_path), 96)
        assert stored_in.startswith("bfloat16" if size % 2 else "float32")
        rows = [torch.randint(3, V - 1, (n,)).tolist() for n in (4, 9)]
        padding = theirs.config.pad_token_id
        fill = [[padding] * (9 - len(row)) for row in rows]
        padded = [
            row + more if sources else more + row for row, more in zip(rows, fill, strict=True)
        ]
        ids = torch.tensor(padded)
        if size % 2:  # `bfloat16` has also rounded what it rotates by
            theirs = type(theirs).from_pretrained(tmp_path, dtype=torch.float32).eval()
        wanted = theirs.generate(
            ids, attention_mask=(ids != padding).long(), max_new_tokens=12, do_sample=False,
            suppress_tokens=[padding], eos_token_id=-1,
        )  # fmt: skip
        read = dict(prompts=rows)
        if sources:
            start = theirs.config.decoder_start_token_id
            read = dict(prompts=[[start]] * 2, sources=rows)
        steps = generate(ours, **read, max_new_tokens=12, end_ids={-1})
        found = torch.tensor([[step.token for step in row] for row in steps]).T
        assert found.equal(wanted[:, -found.shape[1] :]), size


TABLES = {
    "falcon": (
        "transformer.word_embeddings",
        "lm_head",
    ),  # (what the tokens are looked up in, what is tied to it), as they are stored
    "gpt2": ("transformer.wte", "lm_head"),
    **dict.fromkeys(
        ("gpt_bigcode", "gptj", "codegen", "mpt", "gpt_neo"), ("transformer.wte", "lm_head")
    ),
    "opt": ("model.decoder.embed_tokens", "lm_head"),
    "gpt_neox": ("gpt_neox.embed_in", "embed_out"),
    "bloom": ("transformer.word_embeddings", "lm_head"),
    "bert": ("bert.embeddings.word_embeddings", "cls.predictions.decoder"),
    **dict.fromkeys(
        ("roberta", "xlm-roberta", "camembert"),
        ("roberta.embeddings.word_embeddings", "lm_head.decoder"),
    ),
    "mpnet": ("mpnet.embeddings.word_embeddings", "lm_head.decoder"),
    "deberta-v2": ("deberta.embeddings.word_embeddings", "cls.predictions.decoder"),
    "albert": ("albert.embeddings.word_embeddings", "predictions.decoder"),
    "nomic_bert": ("nomic_bert.embeddings.word_embeddings", "cls.predictions.decoder"),
    "gte": ("gte.embeddings.word_embeddings", "lm_head.decoder"),
    "electra": ("electra.embeddings.word_embeddings", "generator_lm_head"),
    "modernbert": ("model.embeddings.tok_embeddings", "decoder"),
    "distilbert": ("distilbert.embeddings.word_embeddings", "vocab_projector"),
    **dict.fromkeys(SEQ2SEQ, ("model.shared", "lm_head")),
    **dict.fromkeys(("t5", "mt5", "umt5"), ("shared", "lm_head")),
}


def stored_as(folder, weights, shards):
    """Other weights in a folder, in that many files."""
    path = folder / "model.safetensors"
    if shards == 1:
        return save_file(weights, path, {"format": "pt"})
    path.unlink()
    where = {name: f"model-{1 + n % shards}.safetensors" for n, name in enumerate(weights)}
    for file in {*where.values()}:
        part = {name: weights[name] for name in where if where[name] == file}
        save_file(part, folder / file, {"format": "pt"})
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def same_logits(folder, family):
    """Transformers' from_pretrained says what a folder holds."""
    theirs = getattr(transformers, class_of(family, ""))
    theirs = theirs.from_pretrained(folder, dtype=torch.float32).eval()
    ours, _ = network_of(folder, values_of(folder), 96)
    ids = torch.tensor([[5, 9, 3, 17, 4]])
    given = [ids] if family in SEQ2SEQ else []
    target_ids = {"decoder_input_ids": ids} if given else {}
    with torch.no_grad():
        wanted = theirs(ids, **target_ids).logits
        torch.testing.assert_close(ours(*given, ids), wanted, atol=1e-4, rtol=1e-4)


# Where config.json says "not tied", transformers also makes up what these files do not repeat.
SAID = [(family, True) for family in FAMILIES]
SAID += [(family, False) for family in FAMILIES if family not in (*ENCODERS, *SEQ2SEQ)]
SAID += [("distilbert", False)]


@pytest.mark.parametrize(("family", "tied"), SAID)
def test_an_untied_head_is_read_whatever_the_config_says(family, tied, tmp_path):
    made(family, 3).save_pretrained(tmp_path)
    change(tmp_path / "config.json", tie_word_embeddings=tied)
    weights = load_file(tmp_path / "model.safetensors")
    table, head = (
        f"{name}.weight" for name in TABLES.get(family, ("model.embed_tokens", "lm_head"))
    )
    own = torch.randn_like(weights[table])
    stored_as(tmp_path, {**weights, head: own}, 1)
    same_logits(tmp_path, family)
    stored_as(tmp_path, {**weights, head: weights[table].clone()}, 1)
    same_logits(tmp_path, family)
    if tied:  # the head alone: the tokens are looked up in it
        stored_as(tmp_path, {head if name == table else name: x for name, x in weights.items()}, 1)
        same_logits(tmp_path, family)
    if family in ("llama", "bert", "t5"):  # how files are joined is no family's own
        stored_as(tmp_path, {**weights, head: own}, 2)
        same_logits(tmp_path, family)


def test_tables_and_biases_of_their_own_are_read_too(tmp_path):
    for family, name, like in [
        ("marian", "model.decoder.embed_tokens.weight", "model.shared.weight"),
        ("marian", "model.encoder.embed_tokens.weight", "model.shared.weight"),
        ("t5", "decoder.embed_tokens.weight", "shared.weight"),
        ("t5", "encoder.embed_tokens.weight", "shared.weight"),
        ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
        ("roberta", "lm_head.decoder.bias", "lm_head.bias"),
    ]:
        made(family, 0).save_pretrained(folder := tmp_path / f"{family}-{name}")
        weights = load_file(folder / "model.safetensors")
        stored_as(folder, {**weights, name: torch.randn_like(weights[like])}, 1)
        same_logits(folder, family)


HEADS = {
    "Model": "none", "ForSequenceClassification": "text-labels",
    "ForTokenClassification": "token-labels", "ForQuestionAnswering": "token-labels",
}  # fmt: skip
OF_ENCODERS = [
    (family, head, kind)
    for family in ENCODERS
    for head, kind in HEADS.items()
    if hasattr(transformers, class_of(family, head))
]
OF_ENCODERS += [("electra", "ForPreTraining", "token-labels"), ("bert", "ForPreTraining", "tokens")]
OF_ENCODERS += [("albert", "ForPreTraining", "tokens")]


@pytest.mark.parametrize(("family", "head", "kind"), OF_ENCODERS)
def test_an_encoder_is_read_with_any_head_or_none(family, head, kind, tmp_path):
    answers = "Question" in head
    for size in (1, 2, 3):  # every pooling and bias of a head
        names = {0: "no", 1: "yes"} if answers else {0: "no", 1: "perhaps", 2: "yes"}
        theirs = made(family, size, size, head=head, id2label=names)
        theirs.save_pretrained(folder := tmp_path / str(size))
        ours, _ = network_of(folder, values_of(folder), 96)
        trace, padding = Trace(), theirs.config.pad_token_id
        theirs.set_attn_implementation("eager")
        real = torch.arange(17) < torch.tensor([17, 9, 13])[:, None]
        ids = torch.randint(3, V - 1, real.shape).where(real, torch.tensor(padding))
        with torch.no_grad():
            said = theirs(
                ids, attention_mask=real.long(), output_attentions=True, output_hidden_states=True
            )
            found = ours(ids, is_text=real, trace=trace)
        assert ours.config.head.removesuffix("-mean") == kind
        if kind == "text-labels":
            torch.testing.assert_close(found, said.logits, atol=1e-4, rtol=1e-4)
        else:
            spans = (said.start_logits, said.end_logits) if answers else None
            wanted = torch.stack(spans, dim=-1) if spans else said[0]
            found = found.view(*wanted.shape)  # ELECTRA's one score a token has no dimension
            torch.testing.assert_close(found[real], wanted[real], atol=1e-4, rtol=1e-4)
        rows = real[None, :, :, None]
        *states, last = trace.residuals["encoder"]
        states = torch.stack([*states, ours.encoder.end(last)]) * rows
        wanted = torch.stack(said.hidden_states) * rows
        torch.testing.assert_close(states, wanted, atol=1e-4, rtol=1e-4)
        weights = trace.weights("encoder") * rows[:, :, None]
        wanted = torch.stack(said.attentions) * rows[:, :, None]
        torch.testing.assert_close(weights, wanted, atol=1e-5, rtol=1e-5)
        if "Class" in head:
            assert ours.config.labels == ("no", "perhaps", "yes")
            assert ours.config.label_probabilities == "one label"


@pytest.mark.parametrize("name", ["T5EncoderModel", "MT5EncoderModel", "UMT5EncoderModel"])
def test_the_encoder_of_a_t5_is_read_alone(name, tmp_path):
    for size in range(len(SIZES)):
        whole = made(name.partition("Enc")[0].lower(), size, size)
        theirs = getattr(transformers, name)(whole.config).eval()
        theirs.load_state_dict(whole.state_dict(), strict=False)
        theirs.save_pretrained(folder := tmp_path / str(size))
        ours, _ = network_of(folder, values_of(folder), 96)
        ids = torch.randint(3, V - 1, (2, 17))
        real = torch.arange(17) < torch.tensor([17, 9])[:, None]
        with torch.no_grad():
            wanted = theirs(ids, attention_mask=real.long()).last_hidden_state
            found = ours(ids, is_text=real)
        torch.testing.assert_close(found[real], wanted[real], atol=1e-4, rtol=1e-4)


def test_nomic_and_gte_are_read_from_their_authors_own_files(tmp_path):
    """Their code came before transformers had them; GTE's "ntk" is written out here."""
    ids = torch.randint(3, V - 1, (2, 17))
    theirs = made("nomic_bert", 0, rope_parameters=dict(rope_type="default", rope_theta=50.0))
    theirs.save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    names = dict(
        hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer",
        intermediate_size="n_inner", max_position_embeddings="n_positions",
        layer_norm_eps="layer_norm_epsilon",
    )  # fmt: skip
    gone = dict.fromkeys([*names, "rope_parameters", "hidden_act", "head_dim"], GONE)
    first = {name: content[key] for key, name in names.items()}
    own = dict(rotary_emb_base=50.0, rotary_emb_fraction=1.0, activation_function="swiglu",
               prenorm=False, qkv_proj_bias=False, max_trained_positions=40)  # fmt: skip
    change(tmp_path / "config.json", **gone, **first, **own)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    assert ours.config.max_len == 40
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)
    change(tmp_path / "config.json", moe_every_n_layers=2)
    with pytest.raises(ValueError, match="it has moe_every_n_layers=2; what is read: "):
        network_of(tmp_path, values_of(tmp_path), 96)

    theirs = made("gte", 1, rope_parameters=PLAIN)
    theirs.save_pretrained(tmp_path)
    size, factor = 8, 3.0
    pairs = torch.arange(0, size, 2) / size
    slower = 1 / (PLAIN["rope_theta"] * factor) ** pairs / factor ** (2 / size)
    theirs.gte.rotary_emb.inv_freq.copy_(slower)
    rope = dict(rope_parameters=GONE, rope_theta=500.0, rope_scaling=dict(type="ntk", factor=3.0))
    change(tmp_path / "config.json", model_type="new", **rope, logn_attention_scale=False)
    weights = load_file(tmp_path / "model.safetensors")
    stored_as(tmp_path, {name.replace("gte.", "new."): x for name, x in weights.items()}, 2)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)


def test_layers_of_albert_share_their_memory_until_they_are_saved(tmp_path):
    theirs = write(tmp_path / "albert", "albert", 3, word_piece)
    model = transformer.load(tmp_path / "albert")
    first, second, third, _ = model.network.encoder.layers
    query = [layer.self_attention.query.weight.data_ptr() for layer in (first, second, third)]
    assert query[0] == query[2] != query[1]
    model.save(tmp_path / "saved")
    ids = torch.tensor([[5, 9, 3, 17, 4]])
    again = transformer.load(tmp_path / "saved").network(ids)
    torch.testing.assert_close(again, theirs(ids).logits, atol=1e-4, rtol=1e-4)


def test_a_classifier_of_tokens_may_store_a_pooler_that_it_does_not_use(tmp_path):
    theirs = made("bert", 0, head="ForTokenClassification")
    theirs.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    pooler = {"weight": torch.randn(24, 24), "bias": torch.randn(24)}
    extra = {f"bert.pooler.dense.{name}": x for name, x in pooler.items()}
    stored_as(tmp_path, weights | extra, 1)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    ids = torch.randint(3, V - 1, (1, 7))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["llama", "gpt2", "modernbert", "t5", "bart"])
def test_weights_of_a_wrapped_network_are_read(family, tmp_path):
    """As torch.compile, DataParallel and FSDP name them."""
    made(family, 0).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    ids = torch.tensor([[5, 9, 3, 17, 4]])
    given = [ids, ids] if family in SEQ2SEQ else [ids]
    wanted = network_of(tmp_path, values_of(tmp_path), 96)[0](*given)
    for before, inside in (("_orig_mod.", ""), ("module.module.", ""), ("module._orig_mod.", ""),
                           ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")):  # fmt: skip
        names = {name: before + name.replace(".0.", f".0.{inside}", 1) for name in weights}
        stored_as(tmp_path, {name: weights[old] for old, name in names.items()}, 2)
        assert network_of(tmp_path, values_of(tmp_path), 96)[0](*given).equal(wanted)
        made(family, 0).save_pretrained(tmp_path)  # one file again, which stored_as removes


OF_DECODERS = [
    (family, head, kind)
    for family in DECODERS
    for head, kind in HEADS.items()
    if hasattr(transformers, class_of(family, head))
]


@pytest.mark.parametrize(("family", "head", "kind"), OF_DECODERS)
def test_a_decoder_is_read_with_any_head_or_none(family, head, kind, tmp_path):
    answers = "Question" in head
    for size in (1, 3) if family != "opt" else (0, 2):  # of which one is tied; OPT's are narrow
        theirs = made(family, size, size, head=head, num_labels=2 if answers else 3)
        theirs.save_pretrained(folder := tmp_path / str(size))
        ours, _ = network_of(folder, values_of(folder), 96)
        padding = theirs.config.pad_token_id
        real = torch.arange(17) < torch.tensor([17, 9, 13])[:, None]
        ids = torch.randint(3, V - 1, real.shape).where(real, torch.tensor(padding))
        with torch.no_grad():
            said = theirs(ids, attention_mask=real.long())
            found = ours(ids, is_text=real)
        assert (ours.config.head.removesuffix("-last"), ours.config.generates) == (kind, False)
        if kind == "text-labels":
            torch.testing.assert_close(found, said.logits, atol=1e-4, rtol=1e-4)
            continue
        spans = (said.start_logits, said.end_logits) if answers else None
        wanted = torch.stack(spans, dim=-1) if spans else said[0]
        torch.testing.assert_close(found[real], wanted[real], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["bart", "mbart", "t5", "mt5", "umt5"])
def test_a_classifier_of_two_stacks_reads_the_source_in_both(family, tmp_path):
    for size in range(len(SIZES)):
        head = "ForSequenceClassification"
        theirs = made(family, size, size, head=head, num_labels=3, eos_token_id=2)
        theirs.save_pretrained(folder := tmp_path / str(size))
        ours, _ = network_of(folder, values_of(folder), 96)
        lengths, fill = (17, 9), theirs.config.pad_token_id
        real = torch.arange(17) < torch.tensor(lengths)[:, None]
        ids = torch.randint(3, V - 1, real.shape).where(real, torch.tensor(fill))
        for row, length in enumerate(lengths):
            ids[row, length - 1] = 2  # an end, which it looks for
        start = torch.full((2, 1), theirs.config.decoder_start_token_id)
        target = torch.cat([start, ids[:, :-1]], dim=1)
        with torch.no_grad():
            wanted = theirs(ids, attention_mask=real.long()).logits
            found = ours(ids, target, src_is_text=real, tgt_is_text=real)
        assert ours.config.head == "text-labels-last"
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_the_text_part_of_a_network_of_images_is_read(tmp_path):
    text = made("gemma3_text", 2)
    inside = text.config.to_dict()
    vision = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                  image_size=28, patch_size=14)  # fmt: skip
    config = transformers.Gemma3Config(text_config=inside, vision_config=vision)
    whole = transformers.Gemma3ForConditionalGeneration(config).eval()
    whole.model.language_model.load_state_dict(text.model.state_dict())
    whole.tie_weights()
    whole.save_pretrained(tmp_path, max_shard_size="20KB")
    ids = torch.randint(3, V - 1, (2, 17))
    with torch.no_grad():
        wanted = whole(ids).logits
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    assert ours.config.max_len == 96
    torch.testing.assert_close(ours(ids), wanted, atol=1e-4, rtol=1e-4)


def test_gemma_that_reads_both_ways_is_an_encoder(tmp_path):
    for size in range(len(SIZES)):
        theirs = made("gemma3_text", size, head="Model", use_bidirectional_attention=True)
        theirs.config.sliding_window = theirs.config.sliding_window // 2 + 1  # as it is read
        theirs = type(theirs)(theirs.config).eval()
        theirs.save_pretrained(folder := tmp_path / str(size))
        ours, _ = network_of(folder, values_of(folder), 96)
        real = torch.arange(17) < torch.tensor([17, 9])[:, None]
        ids = torch.randint(3, V - 1, real.shape)
        with torch.no_grad():
            wanted = theirs(ids, attention_mask=real.long()).last_hidden_state
        assert (ours.config.family, ours.config.head) == ("encoder", "none")
        found = ours(ids, is_text=real)
        torch.testing.assert_close(found[real], wanted[real], atol=1e-4, rtol=1e-4)


HEADLESS = [("marian", "MarianModel")]


@pytest.mark.parametrize(("family", "name"), HEADLESS)
def test_a_folder_without_a_language_model_head_is_refused(family, name, tmp_path):
    getattr(transformers, name)(made(family, 0).config).save_pretrained(tmp_path)
    said = rf"this folder has no head that predicts tokens \(architectures: \['{name}'\]\)"
    with pytest.raises(ValueError, match=said):
        network_of(tmp_path, values_of(tmp_path), 96)


def test_a_whole_weights_file_is_preferred_to_an_older_index(tmp_path):
    made("llama", 1, seed=1).save_pretrained(tmp_path, max_shard_size="5KB")
    made("llama", 1, seed=2).save_pretrained(tmp_path / "again")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    old = sorted(tmp_path.glob("model-*.safetensors"))
    shutil.copy(tmp_path / "again" / "model.safetensors", tmp_path)
    same_logits(tmp_path, "llama")
    old[0].unlink()
    same_logits(tmp_path, "llama")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=f"holds no {old[0].name}; needed: its weights"):
        network_of(tmp_path, values_of(tmp_path), 96)


@pytest.mark.parametrize("seed", range(3))
def test_beam_search_ranks_as_transformers_does(seed, tmp_path):
    theirs = made("marian", seed, seed=seed)
    theirs.final_logits_bias[0, 0] += (3, 6, 0)[seed]  # some like to end
    theirs.save_pretrained(tmp_path)
    ours, _ = network_of(tmp_path, values_of(tmp_path), 96)
    engine = engine_of(ours, "compiled")
    for n_new, beams, penalty in itertools.product((1, 2, 3, 6), (2, 3), (0.0, 1.0)):
        source = torch.randint(1, V - 1, (1, 6), generator=torch.Generator().manual_seed(n_new))
        said = theirs.generate(
            source, num_beams=beams, num_return_sequences=beams, early_stopping=True,
            length_penalty=penalty, max_new_tokens=n_new, do_sample=False,
            bad_words_ids=[[V - 1]],
        )  # fmt: skip
        wanted = []
        for row in said[:, 1:].tolist():
            row = row[: row.index(0) + 1] if 0 in row else row
            wanted.append(tuple(index for index in row if index != V - 1))
        for sessions in ([], [DecodeSession(engine)]):
            (found,) = beam_search(
                ours, source.tolist(), start=[V - 1], end_ids={0}, beams=beams,
                max_new_tokens=n_new, length_penalty=penalty, sessions=sessions,
            )  # fmt: skip
            assert [one.ids for one in found.hypotheses] == wanted, (n_new, beams, penalty)
