"""Text in, runs out: the public face of a loaded model."""

import itertools

import pytest
from builders import model_of

from transformer import Request, Run
from transformer.inference.record import complete_characters
from transformer.runs.request import MAX_NEW_TOKENS

TEXT = "The fox said hello"


def settings(**changes):
    return {"max_new_tokens": 9, "temperature": 1.0, "seed": 3, **changes}


# What a request allows


@pytest.mark.parametrize("bad", ["", " ", "\n\t  "])
def test_an_empty_text_gets_a_sentence(bad):
    with pytest.raises(ValueError, match="the text is empty"):
        Request(text=bad)


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [
        ("max_new_tokens", -1, "a whole number from 0 to 4,096"),
        ("max_new_tokens", MAX_NEW_TOKENS + 1, "a whole number from 0 to 4,096"),
        ("max_new_tokens", 2.0, "a whole number from 0 to 4,096"),
        ("max_new_tokens", None, "a whole number from 0 to 4,096"),
        ("seed", -1, "a whole number from 0 to 4,294,967,295"),
        ("seed", 2**32, "a whole number from 0 to 4,294,967,295"),
        ("seed", True, "a whole number from 0 to 4,294,967,295"),
        ("min_p", "much", "a number from 0 to 1"),
    ],
)
def test_a_setting_out_of_range_gets_a_sentence(tiny_model, name, bad, allowed):
    with pytest.raises(ValueError, match=f"{name} must be {allowed}; got {bad!r}"):
        tiny_model.stream(TEXT, **{name: bad})


@pytest.mark.parametrize("zero", [0, 0.0])
def test_a_temperature_of_0_is_greedy_whatever_the_filters(tiny_model, zero):
    greedy = tiny_model.generate(TEXT, max_new_tokens=8)
    assert greedy.ids != tiny_model.generate(TEXT, max_new_tokens=8, temperature=1.5).ids
    for filters in ({}, {"top_k": 40}, {"top_p": 0.9, "min_p": 0.1, "seed": 4}):
        run = tiny_model.generate(TEXT, max_new_tokens=8, temperature=zero, **filters)
        assert run.ids == greedy.ids
        assert [step.n_kept for step in run.steps] == [1] * len(run.steps)
    with pytest.raises(ValueError, match="top_k must be"):
        tiny_model.generate(TEXT, temperature=zero, top_k=0)


def test_a_temperature_of_0_goes_with_a_beam_search(tiny_encoder_decoder):
    run = tiny_encoder_decoder.generate(TEXT, max_new_tokens=4, beams=2, temperature=0)
    assert run.ids == tiny_encoder_decoder.generate(TEXT, max_new_tokens=4, beams=2).ids


def test_an_unknown_setting_gets_a_list_of_the_known(tiny_model):
    with pytest.raises(ValueError, match=r"unknown setting 'topk'; allowed: .*'top_k'.*'seed'"):
        tiny_model.generate(TEXT, topk=4)
    with pytest.raises(ValueError, match="unknown setting 'topk'"):
        tiny_model.generate_batch([TEXT], topk=4)


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


def test_past_max_len_the_trace_says_where_it_starts(tiny_model):
    run = tiny_model.generate(TEXT, **settings(max_new_tokens=40))
    assert len(run.ids) > 32
    assert run.trace_start == len(run.ids) - 32
    assert run.trace.weights("decoder").shape[-1] == 32
    assert run.queries("decoder") == run.labels[-32:]
    assert run.steps[-1].window == (len(run.ids) - 33, len(run.ids) - 1)


def test_a_source_longer_than_the_model_gets_a_sentence(tiny_encoder_decoder):
    with pytest.raises(ValueError, match=r"is \d+ tokens long; tiny-translator reads at most 24"):
        tiny_encoder_decoder.generate("fox " * 30)


def test_an_encoder_reads_and_says_that_it_cannot_generate(tiny_encoder):
    run = tiny_encoder.trace(TEXT)
    assert run.stopped == "read"
    assert run.queries("encoder") == run.keys("encoder", "self") == run.labels
    assert run.trace.weights("encoder").shape[-1] == len(run.labels)
    with pytest.raises(ValueError, match=r"tiny-encoder is an encoder: .* cannot generate"):
        tiny_encoder.generate(TEXT)


# Why a run stopped


def ending_model(tiny_model, tokenizer):
    """One that always ends its text at once."""
    model = model_of("ending", tiny_model.config.replace(head_bias=True), tokenizer)
    model.network.head.bias[tokenizer.end_id] = 1_000
    return model


def test_a_run_says_why_it_stopped(tiny_model, tokenizer):
    assert tiny_model.generate(TEXT, max_new_tokens=3).stopped == "length"
    assert tiny_model.generate(TEXT, max_new_tokens=0).stopped == "read"
    assert tiny_model.trace(TEXT).stopped == "read"
    ended = ending_model(tiny_model, tokenizer).generate(TEXT)
    assert ended.stopped == "end"
    assert ended.ids[-1] == tokenizer.end_id
    assert ended.text == TEXT


def test_a_stream_left_early_is_a_cancelled_run(tiny_model):
    stream = tiny_model.stream(TEXT, **settings())
    taken = [next(stream) for _ in range(4)]
    run = stream.run()
    assert run.stopped == "cancelled"
    assert list(run.steps) == taken
    assert run.steps == tiny_model.generate(TEXT, **settings()).steps[:4]
    assert tiny_model.stream(TEXT).run().stopped == "cancelled"


# Streams


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder"])
def test_a_stream_gives_what_the_run_has(name, request):
    model = request.getfixturevalue(name)
    stream = model.stream(TEXT, **settings())
    begins = stream.prompt_ids, stream.n_prompt, stream.source_ids
    steps = list(stream)
    run = stream.run()
    assert begins == (run.ids[: run.n_prompt], len(run.ids) - len(steps), run.source_ids)
    assert tuple(steps) == run.steps == model.generate(TEXT, **settings()).steps


def test_the_text_of_a_stream_never_shows_half_a_character(tiny_model, tokenizer):
    stream = tiny_model.stream("Hello", max_new_tokens=3)
    ids = tokenizer.encode("né 🦉ß")
    step = next(stream)
    stream.steps.clear()
    seen = [stream.text]
    for index in ids:
        stream.steps.append(
            type(step)(index=0, token=index, window=(0, 1), candidates=(), n_kept=1)
        )
        seen.append(stream.text)
    assert seen[0] == "Hello"
    assert seen[-1] == "Hellon\u00e9 🦉ß"
    for earlier, later in itertools.pairwise(seen):
        assert later.startswith(earlier)
        assert "\ufffd" not in later


def test_bytes_that_are_no_text_are_replaced_and_only_the_unfinished_left_out():
    assert complete_characters("é🦉".encode()) == "é🦉"
    for cut in (1, 2, 3):
        assert complete_characters("é🦉".encode()[:-cut]) == "é"
    assert complete_characters(b"a\xffb") == "a\ufffdb"
    assert complete_characters(b"a\xff") == "a\ufffd"
    assert complete_characters("\ufffd".encode()) == "\ufffd"
    assert complete_characters(b"") == ""
