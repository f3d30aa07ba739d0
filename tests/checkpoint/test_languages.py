"""Translators of many languages: source, target and translation as transformers has them."""

import pytest
from kit.hf_folders import LANGUAGES, change, write

import transformer
from transformer.analysis.ablation import broken_ids
from transformer.analysis.continuation import N_WRITTEN, continuation
from transformer.inference.generation import generate

pytestmark = pytest.mark.filterwarnings("ignore")
TEXT = "The black cat is not on the bed."
FOLDERS = [("m2m_100", "NllbTokenizer"), ("mbart", "MBartTokenizer")]


@pytest.mark.parametrize(("family", "kind"), FOLDERS)
def test_a_translation_goes_from_the_chosen_language_to_the_other(family, kind, tmp_path):
    from transformers import AutoTokenizer

    theirs = write(tmp_path, family, 0, kind)
    english, french = LANGUAGES[kind]
    model = transformer.load(tmp_path)
    assert {english, french} < {*model.tokenizer.languages}
    for source, target in ((english, french), (french, english)):
        asked = AutoTokenizer.from_pretrained(tmp_path, src_lang=source)
        language = asked.convert_tokens_to_ids(target)
        begin = {"forced_bos_token_id": language}
        if family == "mbart":
            change(tmp_path / "generation_config.json", decoder_start_token_id=language)
            begin = {"decoder_start_token_id": language}
            model = transformer.load(tmp_path)
        run = model.between(source, target).generate(TEXT, max_new_tokens=9)
        read = asked(TEXT, return_tensors="pt")
        assert list(run.source_ids) == read.input_ids[0].tolist()
        wanted = theirs.generate(
            **read, **begin, max_new_tokens=9 + (family != "mbart"), do_sample=False,
            suppress_tokens=[1],
        )  # fmt: skip
        assert list(run.ids) == wanted[0].tolist()
        assert model.between(source, target).translate(TEXT, max_new_tokens=9) == run.text
        for beams in (1, 3):
            settings = dict(source_language=source, target_language=target, max_new_tokens=9)
            wanted = model.between(source, target).generate(TEXT, max_new_tokens=9, beams=beams)
            for chosen in (
                model.generate(TEXT, beams=beams, **settings),
                *model.generate([TEXT] * 2, beams=beams, **settings),
            ):
                assert (chosen.ids, chosen.source_ids) == (wanted.ids, wanted.source_ids)
        plain = model.generate(TEXT, **settings)
        assert broken_ids(model, plain)[: len(plain.ids)] == plain.ids
        rest = plain.ids[3 : 3 + N_WRITTEN]
        assert continuation(model, plain, 2)[: len(rest)] == rest
        batch = model.translate_batch([TEXT] * 2, **settings)
        assert batch[1].request == plain.request.greedy(max_new_tokens=0)
    with pytest.raises(ValueError, match="language must be one of"):
        model.generate(TEXT, source_language=english, target_language="Latin")


def test_languages_of_the_settings_file_are_used_and_saved(tmp_path):
    english, french = LANGUAGES["NllbTokenizer"]
    write(folder := tmp_path / "nllb", "m2m_100", 0, "NllbTokenizer")
    change(folder / "tokenizer_config.json", src_lang=french, tgt_lang=english)
    model = transformer.load(folder)
    names = model.tokenizer.languages
    run = model.generate(TEXT, max_new_tokens=3)
    assert (run.source_ids[0], run.ids[:2]) == (names[french], (2, names[english]))
    model.between(english, french).save(tmp_path / "saved")
    again = transformer.load(tmp_path / "saved").generate(TEXT, max_new_tokens=3)
    assert (again.source_ids[0], again.ids[:2]) == (names[english], (2, names[french]))


def test_a_forced_first_token_is_part_of_every_target(tmp_path):
    theirs = write(tmp_path, "bart", 0, forced_bos_token_id=9)  # generation_config.json counts
    change(tmp_path / "generation_config.json", forced_bos_token_id=7)
    model = transformer.load(tmp_path)
    run = model.generate(TEXT, max_new_tokens=6)
    assert (run.ids[:2], run.n_prompt) == ((2, 7), 2)
    source = [list(run.source_ids)]
    greedy = generate(model.network, [[2, 7]], sources=source, max_new_tokens=6, end_ids={2})
    assert [step[0].token for step in greedy] == list(run.ids[2:])
    assert model.generate(TEXT, max_new_tokens=6, beams=2).ids[:2] == (2, 7)
    assert theirs.config.decoder_start_token_id == 2
