"""Text in, runs out: the public face of a loaded model."""

import codecs
import dataclasses
import itertools
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kit.models import model_of, tiny

from transformer import Ablate, Batch, Break, Request, Run, Site
from transformer.inference.engines.compiled import engine_of
from transformer.inference.run_builder import complete_characters
from transformer.runs.head_data import switched_off
from transformer.runs.request import MAX_NEW_TOKENS

TEXT = "The fox said hello"


def settings(**changes):
    return {"max_new_tokens": 9, "temperature": 1.0, "seed": 3, **changes}


# What can be asked

N = "max_new_tokens must be a whole number from 0 to 4,096; got"
SEED = "seed must be a whole number from 0 to 4,294,967,295; got"
PENALTY = "length_penalty must be a number from 0 to 5; got"
BEAMS = "beams must be a whole number from 1 to 16; got"
SEARCH = "a beam search needs an encoder-decoder; tiny is decoder"
FORCED = "forced_tokens must be a list of token ids"
SETTINGS = [
    ({"max_new_tokens": -1}, N), ({"max_new_tokens": MAX_NEW_TOKENS + 1}, N),
    ({"max_new_tokens": 2.0}, N), ({"max_new_tokens": None}, N),
    ({"seed": -1}, SEED), ({"seed": 2**32}, SEED), ({"seed": True}, SEED),
    ({"min_p": "much"}, "min_p must be a number from 0 to 1; got 'much'"),
    ({"temperature": 0, "top_k": 0}, "top_k must be"),
    ({"topk": 4}, "unknown setting 'topk'; allowed: .*'top_k'.*'seed'"),
    ({"beams": 0}, BEAMS), ({"beams": 17}, BEAMS), ({"beams": 2.0}, BEAMS),
    ({"length_penalty": -1}, PENALTY), ({"length_penalty": float("nan")}, PENALTY),
    ({"beams": 2, "top_k": 5}, "a beam search does not sample; got beams=2"),
    ({"beams": 2}, SEARCH),
    ({"beams": 2, "forced_tokens": [3]}, "allowed: beams=1"),
    ({"beams": 2, "interventions": [Break("no-scale")]}, "allowed: beams=1"),
    *(({"forced_tokens": bad}, FORCED) for bad in ("12", [1.0], [True], [-1], 5)),
    ({"forced_tokens": [4, 5], "max_new_tokens": 1}, "at most max_new_tokens=1 .*; got 2"),
    ({"beams": 2, "stop": "a"}, "allowed: beams=1"),
    ({"beams": 2, "repetition_penalty": 2}, "allowed: beams=1"),
    ({"repetition_penalty": 0}, "repetition_penalty must be a number above 0 to 10; got 0"),
    *(({"stop": bad}, "stop must be a text or a list of up to 16") for bad in ("", [""], 5, [5])),
    ({"num_beams": 4}, "unknown setting 'num_beams'; here it is beams; allowed"),
    ({"forced_tokens": [320]}, "an id from 0 to 319"),
    ({"forced_tokens": [0]}, "without the padding"),
]  # fmt: skip
NO_LIST = "a list of texts is needed; got"
OTHERS = [  # of which model, by which of its functions, given what
    *(("tiny_model", "stream", text, "the text is empty") for text in ("", " ", "\n\t  ")),
    ("tiny_model", "trace", [], "at least one text is needed"),
    ("tiny_model", "trace", [TEXT, " "], "the text is empty"),
    ("tiny_model", "trace", [TEXT, 5], "the text must be a string; got int"),
    ("tiny_model", "trace", [TEXT, TEXT * 20], "the text is 81 tokens long; tiny reads at most 32"),
    ("tiny_model", "trace", 3, "the text must be a string; got int"),
    ("tiny_model", "generate_batch", [], "at least one text is needed; got an empty list"),
    ("tiny_model", "generate_batch", "Once", f"{NO_LIST} one string, 'Once'"),
    ("tiny_model", "translate_batch", [TEXT], "translating needs an .*; tiny is decoder"),
    ("tiny_encoder_decoder", "translate_batch", "Once", f"{NO_LIST} one string, 'Once'"),
    ("tiny_encoder_decoder", "generate", "fox " * 30, r"is \d+ tokens .* reads at most 24"),
    *(("tiny_encoder", read, TEXT * 20, r"the text is \d+ tokens long; .* reads at most 28")
      for read in ("trace", "prepare")),
    ("tiny_encoder", "trace", ["a", TEXT * 20], "text 1 of 2, counted from 0: the text is"),
    ("tiny_encoder", "generate", TEXT, "tiny-encoder is an encoder: .* cannot generate"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "sentence"), SETTINGS)
def test_a_setting_that_is_not_allowed_gets_a_sentence(tiny_model, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        tiny_model.stream(TEXT, **settings)
    with pytest.raises(ValueError, match=sentence):
        tiny_model.generate_batch([TEXT], **settings)


@pytest.mark.parametrize(("name", "function", "given", "sentence"), OTHERS)
def test_a_text_that_a_model_cannot_read_gets_a_sentence(name, function, given, sentence, request):
    with pytest.raises(ValueError, match=sentence):
        getattr(request.getfixturevalue(name), function)(given)


def test_a_batch_has_a_seed_for_each_text(tiny_model):
    with pytest.raises(ValueError, match="one seed a text is needed; got 2 for 3 texts"):
        tiny_model.generate_batch([TEXT] * 3, seeds=[1, 2])


@pytest.mark.parametrize("zero", [0, 0.0])
def test_a_temperature_of_0_is_greedy_with_any_filter(tiny_model, tiny_encoder_decoder, zero):
    greedy = tiny_model.generate(TEXT, max_new_tokens=8)
    assert greedy.ids != tiny_model.generate(TEXT, max_new_tokens=8, temperature=1.5).ids
    for filters in ({}, {"top_k": 40}, {"top_p": 0.9, "min_p": 0.1, "seed": 4}):
        run = tiny_model.generate(TEXT, max_new_tokens=8, temperature=zero, **filters)
        assert run.ids == greedy.ids
        assert [step.n_kept for step in run.steps] == [1] * len(run.steps)
    searched = (
        tiny_encoder_decoder.generate(TEXT, max_new_tokens=4, beams=2, **given).ids
        for given in ({}, {"temperature": zero})
    )
    assert len(set(searched)) == 1


# What a run says


def test_a_run_holds_prompt_steps_and_text(tiny_model, tokenizer):
    run = tiny_model.generate(TEXT, **settings())
    prompt = [tokenizer.end_id, *tokenizer.encode(TEXT)]
    assert isinstance(run, Run)
    assert run.model == "tiny"
    assert run.request == Request(text=TEXT, **settings())
    assert list(run.ids) == prompt + [step.token for step in run.steps]
    assert run.n_prompt == len(prompt)
    assert len(run.steps) == 9
    assert run.tokens == run.labels == tuple(tokenizer.labels(run.ids))
    generated = tokenizer.to_bytes(step.token for step in run.steps)
    assert run.text == TEXT + complete_characters(generated)
    assert run.source_ids == run.source_labels == ()
    assert run.queries("decoder") == run.keys("decoder", "self") == run.labels


@pytest.mark.parametrize(
    ("ablation", "off"),
    [
        (dict(heads=[1]), (1,)),
        (dict(part="layer"), (0, 1)),
        (dict(part="mlp_out"), ()),
        (dict(heads=[1], positions=[0]), ()),
    ],
)
def test_the_heads_of_an_ablated_attention_or_layer_are_switched_off(tiny_model, ablation, off):
    run = tiny_model.generate(
        TEXT, max_new_tokens=1, interventions=[Ablate("decoder", 1, **ablation)]
    )
    batch = tiny_model.trace([TEXT, "two"], run.request.interventions)
    for item in (run, batch, batch[1]):
        assert switched_off(item, Site("decoder", 1, "self")) == off
        assert switched_off(item, Site("decoder", 0, "self")) == ()


# Why a run stopped


def test_a_run_says_why_it_stopped(tiny_model, tokenizer):
    assert tiny_model.generate(TEXT, max_new_tokens=3).stopped == "length"
    assert tiny_model.generate(TEXT, max_new_tokens=0).stopped == "read"
    assert tiny_model.trace(TEXT).stopped == "read"
    assert tiny_model.stream(TEXT).run().stopped == "cancelled"
    model = model_of("ending", tiny_model.config.replace(head_bias=True), tokenizer)
    model.network.head.bias[tokenizer.end_id] = 1_000
    ended = model.generate(TEXT)
    assert ended.stopped == "end"
    assert ended.ids[-1] == tokenizer.end_id
    assert ended.text == TEXT


@pytest.mark.parametrize(
    ("stopped", "n_steps", "length"),
    [("cancelled", 0, 1), ("cancelled", 2, 2), ("time", 2, 2), ("length", 2, 9), ("end", 2, 9)],
)
def test_a_request_asks_for_enough_tokens_to_repeat_its_run(tiny_model, stopped, n_steps, length):
    run = tiny_model.generate("The fox", max_new_tokens=9)
    forced = dataclasses.replace(run.request, forced_tokens=run.ids[-9:][:3])
    run = dataclasses.replace(run, steps=run.steps[:n_steps], stopped=stopped, request=forced)
    asked = run.reproducing_request
    assert asked.max_new_tokens == length
    assert len(asked.forced_tokens) == min(3, length)


@pytest.mark.parametrize("engine", ["network", "compiled"])
def test_a_generation_ends_once_it_has_written_a_stop_text(engine, tiny_model, tokenizer):
    made = engine_of(tiny_model.network, engine)
    model = dataclasses.replace(tiny_model, engine=made)
    whole = [step.token for step in model.generate(TEXT, max_new_tokens=40).steps]
    longest = max(re.findall("[ -~]+", tokenizer.to_bytes(whole).decode(errors="replace")), key=len)
    assert len(longest) > 2
    for text in (longest[-1], longest):
        n_read = next(n for n in range(1, 41) if text.encode() in tokenizer.to_bytes(whole[:n]))
        for stop in (text, ["never written", text]):
            found = model.generate(TEXT, max_new_tokens=40, stop=stop)
            assert [step.token for step in found.steps] == whole[:n_read]
            assert found.stopped == "stop"
        same, other = model.generate([TEXT, "Hi"], max_new_tokens=40, stop=text)
        assert (same.ids, same.stopped) == (found.ids, "stop")
        assert other.ids == model.generate("Hi", max_new_tokens=40, stop=text).ids


def test_what_was_only_read_has_logits(tiny_model, tiny_encoder_decoder):
    texts = [TEXT, "Hi", "The bird"]
    for model in (tiny_model, tiny_encoder_decoder):
        batch = model.trace(texts)
        for row, text in enumerate(texts):
            run = model.trace(text)
            given = [torch.tensor([ids]) for ids in (run.source_ids, run.ids) if ids]
            for found in (run.logits, batch.logits[row, None], batch[row].logits):
                wanted = model.network(*given)
                torch.testing.assert_close(found[:, : len(run.ids)], wanted)
    assert tiny_model.generate(TEXT, max_new_tokens=1).logits is None


# Streams


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder"])
def test_a_stream_yields_the_steps_of_the_run(name, request):
    model = request.getfixturevalue(name)
    stream = model.stream(TEXT, **settings())
    begins = stream.prompt_ids, stream.n_prompt, stream.source_ids
    steps = list(stream)
    run = stream.run()
    assert begins == (run.ids[: run.n_prompt], len(run.ids) - len(steps), run.source_ids)
    assert tuple(steps) == run.steps == model.generate(TEXT, **settings()).steps


def test_the_text_of_a_stream_never_shows_half_a_character(tiny_model, tokenizer):
    ids = tokenizer.encode("né 🦉ß")
    stream = tiny_model.stream("Hello", max_new_tokens=len(ids), forced_tokens=ids)
    seen = [stream.text, *(stream.text for _ in stream)]
    assert (seen[0], seen[-1]) == ("Hello", "Hellon\u00e9 🦉ß")
    for earlier, later in itertools.pairwise(seen):
        assert later.startswith(earlier)
        assert "\ufffd" not in later


@given(raw=st.binary() | st.tuples(st.text(), st.binary(max_size=3)).map(
    lambda parts: parts[0].encode() + parts[1]
))  # fmt: skip
def test_invalid_utf8_is_replaced_and_unfinished_characters_left_out(raw):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    assert complete_characters(raw) == decoder.decode(raw)


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
@pytest.mark.parametrize("filler", [None, 2, 70])
def test_a_batch_gives_each_text_what_it_gets_alone(family, filler, tokenizer, monkeypatch):
    """filler: the padding id of a model without a padding token; None if it has one."""
    model = tiny("batched", family, tokenizer)
    if filler is not None:
        model = model_of("bare", model.config.replace(padding_id=None), tokenizer)
        monkeypatch.setattr(tokenizer, "padding_id", filler)
    texts = [TEXT, "Hi", "The bird"]
    batch = model.trace(texts)
    assert isinstance(batch, Batch)
    assert batch.texts == tuple(texts)
    for row, text in enumerate(texts):
        alone = model.trace(text)
        read = alone.source_ids or alone.ids
        n, rest = len(read), batch.ids.shape[1] - len(read)
        assert batch.ids[row].tolist() == [*read, *[tokenizer.padding_id] * rest]
        assert batch.labels[row][n:] == ("<|padding|>",) * rest
        assert batch.padding[row].tolist() == [True] * n + [False] * rest
        for site in alone.trace.sites:
            n_queries = n if site.stack == "encoder" or family == "decoder" else len(alone.ids)
            n_keys = n if site.kind == "cross" else n_queries
            found = batch.trace[site].pattern[row, :, :n_queries]
            wanted = alone.trace[site].pattern[0]
            torch.testing.assert_close(found[..., :n_keys], wanted, atol=1e-5, rtol=1e-5)
            assert (found[..., n_keys:] == 0).all()
    if family == "encoder":
        return
    beams = {"beams": 3, "length_penalty": 0.5} if family == "encoder-decoder" else {}
    off = {"interventions": [Ablate("decoder", 0, [1])]}
    for chosen in ({}, {"temperature": 1.2, "top_k": 9}, off, beams):  # past the window too
        seeds = [1, 2, 3] if "temperature" in chosen else None
        runs = model.generate_batch(texts, seeds, max_new_tokens=25, **chosen)
        for seed, text, run in zip(seeds or [0] * 3, texts, runs, strict=True):
            alone = model.generate(text, max_new_tokens=25, seed=seed, **chosen)
            for name in ("ids", "request", "stopped", "text"):
                assert getattr(run, name) == getattr(alone, name)
            assert (run.search and run.search.texts) == (alone.search and alone.search.texts)
            for site in alone.trace.sites:
                torch.testing.assert_close(run.trace[site].pattern, alone.trace[site].pattern)
