"""Folders of other projects and models on the hub, opened, converted and refused in a sentence."""

import json
import os
import shutil
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from kit.hf_folders import byte_fallback, byte_level, change, roberta, word_piece, write

import transformer
from transformer import CheckpointError, checkpoint
from transformer.checkpoint import hub, weight_files
from transformer.checkpoint.adapters.families import FAMILIES, Family
from transformer.model.config import preset
from transformer.model.weights import check_surplus

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """(folder, transformers' network): a Llama in bfloat16 with SentencePiece-BPE."""
    folder = tmp_path_factory.mktemp("made") / "my-llama"
    return folder, write(folder, "llama", tokenizer=byte_fallback, dtype=torch.bfloat16)


@pytest.fixture
def copied(llama, tmp_path):
    """A copy of the folder to damage."""
    return shutil.copytree(llama[0], tmp_path / "my-llama")


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox"])
def test_an_ordinary_token_that_pads_their_batches_is_text_in_a_text(family, tmp_path):
    """As for transformers' tokenizer, whose attention_mask is 1 there."""
    theirs, texts = write(tmp_path, family, 1), ["? not at all? The cat?? is", "The cat? is"]
    fill = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]["?"]
    for name in ("config.json", "generation_config.json"):
        change(tmp_path / name, pad_token_id=fill)
    model = transformer.load(tmp_path)
    theirs.set_attn_implementation("eager")
    batch = model.trace(texts)
    for row, run in enumerate(model.generate_batch(texts, max_new_tokens=9)):
        ids = torch.tensor([run.ids[: run.n_prompt]])
        assert fill in ids
        said = theirs(ids, attention_mask=torch.ones_like(ids), output_attentions=True)
        wanted = torch.stack(said.attentions)[:, 0]
        for weights in (model.trace(texts[row]).trace.weights("decoder")[:, 0],
                        batch.trace.weights("decoder")[:, row]):  # fmt: skip
            n = ids.shape[1]
            torch.testing.assert_close(weights[..., :n, :n], wanted, atol=1e-5, rtol=1e-4)
        options = dict(attention_mask=torch.ones_like(ids), max_new_tokens=9, do_sample=False)
        assert list(run.ids) == theirs.generate(ids, **options, pad_token_id=fill)[0].tolist()
        assert model.generate(texts[row], max_new_tokens=9).ids == run.ids
    assert model.generate("The cat", max_new_tokens=1, forced_tokens=[fill]).text == "The cat?"


def test_an_adapter_with_other_signatures_is_named_in_the_error(copied, llama, monkeypatch):
    def config(values, max_len, stored):
        return FAMILIES["llama"].adapter.config({**values, "model_type": "llama"}, max_len, stored)

    def weights(stored, config, values):
        return FAMILIES["llama"].adapter.weights(stored, config, {"model_type": "llama"})

    change(copied / "config.json", model_type="mine")
    monkeypatch.setitem(FAMILIES, "mine", Family(SimpleNamespace(config=config, weights=weights)))
    ids = torch.tensor([[1, 5, 6]])
    assert transformer.load(copied).network(ids).equal(transformer.load(llama[0]).network(ids))
    for wrong, sentence in (
        ({"config": lambda values: 1}, r"of mine must have config\(values, max_len, stored\)"),
        ({"weights": lambda stored: 1}, r"of mine must have weights\(stored, config, values\)"),
        ({"weights": lambda a, b, c, d: 1}, r"weights\(stored, config, values\): missing"),
    ):
        made = {"config": config, "weights": weights, **wrong}
        monkeypatch.setitem(FAMILIES, "mine", Family(SimpleNamespace(**made)))
        with pytest.raises(RuntimeError, match=sentence):
            transformer.load(copied)


def test_any_of_several_ends_ends_a_text(copied):
    model = transformer.load(copied)
    steps = [step.token for step in model.generate("The cat", max_new_tokens=9).steps]
    later = next(token for token in steps if token != steps[0])
    change(copied / "generation_config.json", eos_token_id=[2, later])
    run = transformer.load(copied).generate("The cat", max_new_tokens=9)
    assert run.stopped == "end"
    assert run.ids[-1] == later
    assert len(run.steps) == steps.index(later) + 1


UNREAD = [
    (dict(model_type="mamba"), r"'mamba', a state-space model, which is not .*checkpoint families"),
    (dict(model_type="mixtral"), r"'mixtral', a mixture of experts, which is not read"),
    (dict(model_type="unheard_of"), r"model_type 'unheard_of', which is not read; what is read"),
    (dict(quantization_config={"quant_method": "awq"}), r"its weights are quantized \('awq'\)"),
    (dict(model_type=["llama"]), r"it has model_type \['llama'\], which is not"),
    (dict(hidden_act="laplace"), r"hidden_act='laplace'; what is read: .*'silu'"),
    (dict(hidden_act=["silu"]), r"it has hidden_act=\['silu'\]; what is read"),
    (
        dict(rope_parameters={"rope_type": "proportional"}),
        r"rope_type='proportional'; what is read: .*'llama3",
    ),
    (dict(rope_parameters={"rope_type": "longrope"}), "no original_max_position_embeddings"),
    (
        dict(
            rope_parameters={
                "rope_type": "longrope",
                "short_factor": [1.0] * 4,
                "original_max_position_embeddings": 50,
            }
        ),
        "longrope scaling changes the rotation of every token beyond the trained 50 tokens",
    ),
    (dict(rope_parameters=[1]), "holds a value of an unexpected type or size"),
    (dict(hidden_size="24"), "it has hidden_size='24'; needed: a number"),
    (dict(num_attention_heads=None), "config.json has no num_attention_heads"),
    (dict(num_attention_heads=0), "n_heads must be a whole number of at least 1; got 0"),
    (dict(num_hidden_layers=1), r"a weight 'layers\.1\..*' that this network has no place for"),
    (dict(num_hidden_layers=3), r"the weight 'layers\.2\.self_attn.q_proj.weight' is missing"),
    (dict(intermediate_size=41), r"feed_forward\.gate\.weight is \(40, 24\), needed: \(41, 24\)"),
    (dict(vocab_size=50), "embedding.tokens.weight is"),
]


@pytest.mark.parametrize(("config", "sentence"), UNREAD)
def test_what_is_not_read_is_said_in_a_sentence(copied, config, sentence):
    change(copied / "config.json", **config)
    with pytest.raises(CheckpointError, match=f"my-llama cannot be read: .*{sentence}"):
        transformer.load(copied)


NAMES = "must be JSON that names the file of each weight under 'weight_map'"
INDICES = [
    ({"weight_map": ["model.safetensors"]}, NAMES),
    ({"weight_map": {"a": 5}}, NAMES),
    ([{"weight_map": {}}], NAMES),
    ({"weight_map": {"a": "x" * 5_000 + ".safetensors"}}, "names the file 'x{59}…; allowed: names"),
    ({"weight_map": {"a": "pytorch_model.bin"}}, "names the file 'pytorch_model.bin'; allowed: "),
]


@pytest.mark.parametrize(("index", "sentence"), INDICES)
def test_an_index_that_names_no_files_is_refused(copied, index, sentence):
    (copied / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(CheckpointError, match=sentence):
        transformer.load(copied)


def test_weights_that_no_memory_holds_are_refused_before_they_are_read(copied, monkeypatch):
    n_bytes = 2 * 10**9  # sparse
    about = {"dtype": "F32", "shape": [n_bytes // 4], "data_offsets": [0, n_bytes]}
    header = json.dumps({"model.embed_tokens.weight": about}).encode()
    path = copied / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + n_bytes)
    monkeypatch.setattr(weight_files, "memory_bytes", lambda: 3e9)
    with pytest.raises(CheckpointError, match="hold 500,000,000 numbers, but its config"):
        transformer.load(copied)
    check_surplus(copied, preset("gpt-2", vocab_size=50_257), 490_000_000)  # fewer than four times


DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
TEMPLATE = {"type": "TemplateProcessing", "special_tokens": {}, "pair": [],
            "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2}  # fmt: skip
ENDLESS = [
    ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}] + [DOUBLES] * 40}),
    ("normalizer", DOUBLES | {"content": "b" * 5_000}),
    ("normalizer", DOUBLES | {"pattern": {"Regex": "x*"}, "content": "b" * 5_000}),
    ("post_processor", {"type": "Sequence", "processors": [TEMPLATE] * 40}),
]


LONG = r"may make a text .* times as long; allowed"
PARTS = "its steps have .* parts; allowed: at most 500"
BACKTRACKS = "its patterns backtrack without end"
PIECE = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}
SPECIAL = {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


FEW_WORDS = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}  # others are an error
COSTLY = [
    *(({part: step}, LONG) for part, step in ENDLESS),
    ({"post_processor": TEMPLATE | {"single": TEMPLATE["single"] * 6}}, LONG),
    ({"post_processor": TEMPLATE | {"single": [PIECE] * 400 + TEMPLATE["single"],
                                    "special_tokens": {"<|endoftext|>": SPECIAL}}}, PARTS),
    ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 600}}, PARTS),
    *(({"pre_tokenizer": split(pattern)}, BACKTRACKS) for pattern in (
        "(?:a|a|aa)+!", "(a+)+$", r"(\p{L}+)+!", "(?:ab|abab|ab)+c", "([0-9]|[0-9])+x", "(.|.)+Q",
        r"(?:\s|\s)+Z",
    )),
    ({"pre_tokenizer": split("([0-9]|[0-9])+x"), "model": FEW_WORDS}, BACKTRACKS),
    ({"normalizer": DOUBLES | {"pattern": {"Regex": "(?:word|wordword)+;"}}}, BACKTRACKS),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), COSTLY)
def test_a_costly_tokenizer_is_refused(copied, changes, sentence):
    change(copied / "tokenizer.json", **changes)
    with pytest.raises(CheckpointError, match=sentence):
        transformer.load(copied)


def test_an_unknown_name_suggests_the_hub():
    for name in ("gpt2", "openai-community/gpt2"):
        with pytest.raises(CheckpointError, match=f"or a model of the hub, as hub:{name}$"):
            transformer.load(name)


def test_other_options_that_are_not_read(tmp_path):
    write(tmp_path / "marian", "marian", decoder_ffn_dim=7)
    with pytest.raises(CheckpointError, match="its encoder has ffn_dim=40 and its decoder 7"):
        transformer.load(tmp_path / "marian")


def test_a_pickle_is_never_opened_and_a_tokenizer_is_needed(copied):
    (copied / "tokenizer.json").rename(copied / "away")
    with pytest.raises(CheckpointError, match=r"holds no tokenizer\.json; needed: one, or vocab"):
        transformer.load(copied)
    (copied / "away").rename(copied / "tokenizer.json")
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"as a pickle, .* never read; needed: model.safeten"):
        transformer.load(copied)
    (copied / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"holds no model\.safetensors; needed: its weights$"):
        transformer.load(copied)
    (copied / "adapter_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"weights; it holds an adapter, which peft merges"):
        transformer.load(copied)
    (copied / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"needs one; it holds an adapter, which peft merges"):
        transformer.load(copied)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_a_model_is_converted_into_our_format(family, llama, tmp_path, capsys, monkeypatch):
    from transformer.checkpoint.__main__ import main

    source = llama[0]
    if family == "marian":
        write(source := tmp_path / "marian", "marian")
    monkeypatch.setattr(sys, "argv", ["checkpoint", "convert", str(source), str(tmp_path / "ours")])
    main()
    assert "in bfloat16" in capsys.readouterr().out or family == "marian"
    content = json.loads((tmp_path / "ours" / "config.json").read_text(encoding="utf-8"))
    assert content["format"] == 1
    first, again = transformer.load(source), transformer.load(tmp_path / "ours")
    assert again.config == first.config
    assert again.tokenizer.ids == first.tokenizer.ids
    assert again.card == first.card != {}
    for name, weight in again.network.state_dict().items():
        assert weight.equal(first.network.state_dict()[name])
    text = "The black cat"
    assert again.generate(text, max_new_tokens=8).ids == first.generate(text, max_new_tokens=8).ids
    del content["metadata"]["tokenizer"]["ends"]
    change(tmp_path / "ours" / "config.json", **content)
    with pytest.raises(CheckpointError, match="the ids under 'tokenizer' must be start, ends, pad"):
        transformer.load(tmp_path / "ours")


def test_a_model_of_the_hub_is_fetched_once(llama, tmp_path, monkeypatch, capsys):
    folders, fetches = [llama[0]], []

    def snapshot_download(*, local_files_only=False, **options):
        if local_files_only and not fetches:
            raise OSError("nothing is cached")
        fetches.extend([] if local_files_only else [options])
        return str(folders[-1])

    class Api:
        def model_info(self, name, *, revision, files_metadata):
            sizes = {"model.safetensors": 5_000_000, "pytorch_model.bin": 9_000_000}
            files = [
                SimpleNamespace(rfilename=file, size=size if files_metadata else None)
                for file, size in sizes.items()
            ]
            return SimpleNamespace(siblings=files)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    for message in ("someone/a-llama: 5.0 MB are fetched once", ""):
        assert transformer.load("hub:someone/a-llama@main").name == "a-llama"
        said = capsys.readouterr().err
        assert message in said if message else not said
    ((repository, revision),) = {(options["repo_id"], options["revision"]) for options in fetches}
    assert (len(fetches), repository, revision) == (1, "someone/a-llama", "main")
    assert not any("bin" in pattern or "*.json" in pattern for pattern in hub.PATTERNS)
    folders.append(shutil.copytree(llama[0], tmp_path / "a-llama"))
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folders[-1] / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folders[-1] / "model.safetensors").rename(folders[-1] / "model-1.safetensors")
    (folders[-1] / "model-2.safetensors").touch()
    for part in ("model-2.safetensors", "model-1.safetensors", "config.json"):
        there, away = folders[-1] / part, tmp_path / "away"
        for before, after, said in ((there, away, "fetched once"), (away, there, "")):
            before.rename(after)
            assert hub.fetched("hub:someone/a-llama") == folders[-1]
            message = capsys.readouterr().err
            assert said in message if said else not message, part


@pytest.mark.parametrize("name", ["hub:", "hub:a/b/c", "hub:../x y", "hub:a@"])
def test_a_name_that_the_hub_cannot_have_is_refused(name):
    with pytest.raises(CheckpointError, match="a model on the hub is hub:OWNER/NAME or"):
        checkpoint.read(name)


def test_a_network_in_a_sub_folder_and_second_heads_are_read(tmp_path):
    """As sentence-transformers' first folders, and GPT2DoubleHeadsModel."""
    folder = tmp_path / "old" / "0_Transformer"
    folder.mkdir(parents=True)
    write(folder, "bert", 0, word_piece, head="Model")
    types = {"0_Transformer": "st.models.Transformer", "1_Pooling": "st.models.Pooling"}
    modules = [{"path": name, "type": kind} for name, kind in types.items()]
    (tmp_path / "old" / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    wanted = transformer.load(folder).trace("the cat").hidden_states[-1]
    assert transformer.load(tmp_path / "old").trace("the cat").hidden_states[-1].equal(wanted)
    (tmp_path / "old" / "modules.json").write_text('[{"path": "../.."}, 3]', encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"holds no config\.json"):
        transformer.load(tmp_path / "old")
    theirs = write(tmp_path / "gpt2", "gpt2", 0, byte_level)
    double = transformers.GPT2DoubleHeadsModel(theirs.config)
    double.transformer.load_state_dict(theirs.transformer.state_dict())
    double.save_pretrained(tmp_path / "gpt2")
    ids = torch.tensor([[5, 9, 3]])
    found = transformer.load(tmp_path / "gpt2").network(ids)
    torch.testing.assert_close(found, theirs(ids).logits, atol=1e-4, rtol=1e-4)
    write(tmp_path / "choice", "bert", 0, word_piece, head="ForMultipleChoice")
    with pytest.raises(CheckpointError, match="its head chooses between texts"):
        transformer.load(tmp_path / "choice")


DECODERS_THAT_ONLY_READ = [
    ("llama", "Model", byte_fallback), ("mistral", "ForSequenceClassification", byte_level),
    ("gpt2", "ForTokenClassification", byte_level), ("bart", "ForSequenceClassification", roberta),
]  # fmt: skip


@pytest.mark.parametrize(("family", "head", "tokenizer"), DECODERS_THAT_ONLY_READ)
def test_a_decoder_that_only_reads_is_loaded_altered_and_saved(family, head, tokenizer, tmp_path):
    theirs = write(tmp_path / "theirs", family, 1, tokenizer, head=head).eval()
    model = transformer.load(tmp_path / "theirs")
    texts = ["The black cat is", "The"]
    alone, batch = model.trace(texts[1]), model.trace(texts)
    ids = torch.tensor([alone.source_ids or alone.ids])
    said = theirs(ids)
    wanted = said.last_hidden_state if head == "Model" else said.logits
    found = alone.hidden_states[-1] if head == "Model" else alone.logits
    if head == "Model":
        found = model.network.last_stack.end(found)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        batch[1].hidden_states[-1], alone.hidden_states[-1], atol=1e-4, rtol=1e-4
    )
    assert model.engine is None
    for refused in (
        lambda: model.generate("The", max_new_tokens=2),
        lambda: model.generate("The", beams=2),
    ):
        with pytest.raises(
            ValueError, match=r"no output layer that predicts tokens|beam search needs"
        ):
            refused()
    site = alone.trace.sites[-1]
    altered = model.trace(texts[1], [transformer.Ablate(site.stack, 0, [0], site.kind)])
    assert not altered.hidden_states[-1].equal(alone.hidden_states[-1])
    assert (
        transformer.read_npz(alone.to_npz(tmp_path / "run.npz") or tmp_path / "run.npz").ids
        == alone.ids
    )
    assert alone.to_html(tmp_path / "run.html") is None or (tmp_path / "run.html").is_file()
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    memory = transformer.from_transformers(theirs, fast).trace(texts[1])
    torch.testing.assert_close(memory.hidden_states[-1], alone.hidden_states[-1])
    model.save(tmp_path / "ours")
    again = transformer.load(tmp_path / "ours").trace(texts[1])
    assert again.hidden_states[-1].equal(alone.hidden_states[-1])
