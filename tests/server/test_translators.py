"""Translators of several languages, served: what a translation costs is what transformers' own
loss says, and every route reads between the languages that were asked for."""

import math

import pytest
import torch
import transformers
from kit.hf_folders import change, roberta, t5, write

import transformer
from transformer.server.kept.page_runs import batch_facts, batch_of
from transformer.server.kept.service import Service
from transformer.server.programs.api_runs import experiment_endpoints, run_endpoints

SOURCE, TARGET = "The black cat is sleeping.", "Le chat noir dort sur le lit."
FRENCH, ENGLISH = {"target_language": "fra_Latn"}, {"target_language": "eng_Latn"}
FOLDERS = {
    "bart": dict(family="bart", tokenizer=roberta),
    "bart-forced": dict(family="bart", tokenizer=roberta),
    "t5": dict(family="t5", tokenizer=t5),
    "marian": dict(family="marian"),
    "mbart": dict(family="mbart", tokenizer="MBartTokenizer"),
    "nllb": dict(family="m2m_100", tokenizer="NllbTokenizer"),
}
LANGUAGES = {"nllb": ("eng_Latn", "fra_Latn"), "mbart": ("en_XX", "fr_XX")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("translators")


@pytest.fixture(scope="module")
def theirs(folder):
    networks = {name: write(folder / name, **how).eval() for name, how in FOLDERS.items()}
    change(folder / "bart-forced" / "generation_config.json", forced_bos_token_id=0)
    tokens = transformers.AutoTokenizer.from_pretrained(folder / "mbart")
    start = tokens.convert_tokens_to_ids("fr_XX")  # as mBART's first translators; not as NLLB's
    for file in ("config.json", "generation_config.json"):
        change(folder / "mbart" / file, decoder_start_token_id=start)
    return networks


@pytest.fixture(scope="module")
def service(folder, theirs):
    return Service([transformer.load(folder / name) for name in theirs], trainings=0)


@pytest.fixture(scope="module")
def ask(service):
    endpoints = [*run_endpoints(service), *experiment_endpoints(service)]
    return {endpoint.__name__: endpoint for endpoint in endpoints}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_translations_bits_are_transformers_loss(folder, theirs, ask, name):
    source, target = LANGUAGES.get(name, (None, None))
    sides = {"src_lang": source, "tgt_lang": target} if source else {}
    read = transformers.AutoTokenizer.from_pretrained(folder / name, **sides)
    given = read(SOURCE, text_target=TARGET, return_tensors="pt")
    written, start = given["labels"][0].tolist(), theirs[name].config.decoder_start_token_id
    if name in LANGUAGES:  # which stands before the target or, in mBART's labels, behind it
        language = read.convert_tokens_to_ids(target)
        written = [language, *(index for index in written if index != language)]
    whole = torch.tensor([written if name == "mbart" else [start, *written]])
    with torch.no_grad():
        logits = theirs[name](given["input_ids"], decoder_input_ids=whole[:, :-1]).logits[0]
    nats = torch.nn.functional.cross_entropy(logits, whole[0, 1:], reduction="none")
    skipped = 1 if name in ("nllb", "bart-forced") else 0  # what is given, not predicted
    languages = {"source_language": source, "target_language": target}
    got = ask["score"](SOURCE, name, TARGET, **languages)
    assert got["total_bits"] == pytest.approx(sum(nats[skipped:]).item() / math.log(2), rel=1e-4)
    assert got["n_bytes"] == len(TARGET.encode())
    assert sum(bit is None for bit in got["bits"]) == 1 + skipped


def test_every_route_reads_between_the_languages_that_are_asked_for(service, ask):
    (french,) = service.model("nllb").between(None, "fra_Latn").tokenizer.ids.then
    runs = {
        "generate": ask["generate"](SOURCE, "nllb", max_new_tokens=3, **FRENCH)["ids"],
        "translate": ask["translate"]([SOURCE], "nllb", max_new_tokens=3, **FRENCH)[0]["ids"],
        "trace": ask["trace"](SOURCE, "nllb", **FRENCH)["ids"],
        "batch": ask["batch"]([SOURCE, "A dog."], "nllb", **FRENCH)["target_ids"][0],
    }
    assert {name: ids[1] for name, ids in runs.items()} == dict.fromkeys(runs, french)
    sources = [
        service.batch("nllb", [SOURCE, "A dog."], source_language=one).ids[0, 0].item()
        for one in LANGUAGES["nllb"]
    ]
    assert sources[0] != sources[1] == french
    for name, given in (
        ("generate", [SOURCE, "t5"]), ("translate", [[SOURCE], "t5"]), ("trace", [SOURCE, "t5"]),
        ("batch", [[SOURCE], "t5"]), ("score", [SOURCE, "t5", TARGET]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="names no languages"):
            ask[name](*given, **FRENCH)


def test_a_page_batch_is_read_between_the_languages_that_are_set(service):
    asked = {"model": "nllb", "lines": f"{SOURCE}\nA dog."}
    batches = [batch_of(service, asked | languages) for languages in (FRENCH, ENGLISH)]
    first, second = (batch.target_ids[0, 1].item() for batch in batches)
    assert first != second
    # The page makes a batch that the server has dropped again, by these facts.
    facts = batch_facts(batches[0], "id")
    again = batch_of(service, asked | facts["languages"])
    assert torch.equal(again.target_ids, batches[0].target_ids)
