"""Ids in, ids out: what each step saw and took."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from generating import (
    END,
    PROMPTS,
    SAMPLED,
    SOURCES,
    T_MAX,
    V,
    continued,
    network,
    next_logits,
    tokens,
)

from transformer import Trace
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.choice import engine_of
from transformer.inference.generation import generate


def same(got, expected, tolerance=1e-4):
    """Equal steps, up to rounding of the candidates' numbers."""
    assert tokens([got]) == tokens([expected])
    for a, b in zip(got, expected, strict=True):
        assert (a.index, a.window, a.n_kept) == (b.index, b.window, b.n_kept)
        numbers = [{c.id: c for c in step.candidates} for step in (a, b)]
        assert numbers[0].keys() == numbers[1].keys()
        for index, one in numbers[0].items():
            other = numbers[1][index]
            assert one.logit == pytest.approx(other.logit, abs=tolerance)
            assert one.probability == pytest.approx(other.probability, abs=tolerance)


def greedy_loop(model, prompt, n):
    row = list(prompt)
    for _ in range(n):
        logits = next_logits(model, row)
        logits[0] = -torch.inf  # padding
        row.append(int(logits.argmax()))
        if row[-1] == END:
            break
    return row[len(prompt) :]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_greedy_is_a_plain_loop_without_a_cache_even_past_max_len(prompt, positions):
    model = network(positions=positions)
    (got,) = tokens(continued(model, [prompt], max_new_tokens=20))
    assert got == greedy_loop(model, prompt, 20)
    assert len(set(got)) > 2


@torch.inference_mode()
def test_greedy_translation_is_a_plain_loop_without_a_cache():
    model = network("encoder-decoder")
    for source in SOURCES:
        (got,) = tokens(continued(model, [[1]], sources=[source], max_new_tokens=T_MAX))
        row = [1]
        while len(row) <= T_MAX and (len(row) == 1 or row[-1] != END):
            logits = model(torch.tensor([source]), torch.tensor([row]))[0, -1]
            logits[0] = -torch.inf
            row.append(int(logits.argmax()))
        assert got == row[1:]


@pytest.mark.parametrize("sampling", [None, SAMPLED])
@pytest.mark.parametrize("n", [4, 15])  # 15 slides past max_len at a different step for each row
def test_each_row_of_a_batch_is_what_it_is_alone(sampling, n):
    model, seeds = network(), [5, 6, 7]
    together = continued(model, PROMPTS, sampling=sampling, seeds=seeds, max_new_tokens=n)
    for row, prompt in enumerate(PROMPTS):
        (alone,) = continued(
            model, [prompt], sampling=sampling, seeds=[seeds[row]], max_new_tokens=n
        )
        same(together[row], alone)


@pytest.mark.parametrize("sampling", [None, SAMPLED])
def test_each_row_of_a_translated_batch_is_what_it_is_alone(sampling):
    model, seeds = network("encoder-decoder"), [5, 6, 7]
    together = continued(model, [[1]] * 3, sources=SOURCES, sampling=sampling, seeds=seeds)
    for row, source in enumerate(SOURCES):
        (alone,) = continued(model, [[1]], sources=[source], sampling=sampling, seeds=[seeds[row]])
        same(together[row], alone)


def test_one_seed_gives_one_text_and_another_seed_another():
    model = network()
    first, again, other = (
        tokens(continued(model, [PROMPTS[0]], sampling=SAMPLED, seeds=[seed])) for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_eight_threads_get_the_texts_of_their_seeds():
    model = network()

    def text(seed):
        prompt = PROMPTS[seed % 3]
        return tokens(continued(model, [prompt], sampling=SAMPLED, seeds=[seed], max_new_tokens=10))

    alone = [text(seed) for seed in range(16)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(text, range(16))) == alone


def test_the_global_generator_is_neither_read_nor_moved():
    model = network()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = tokens(continued(model, PROMPTS, sampling=SAMPLED, seeds=[1, 2, 3]))
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(2)
    assert tokens(continued(model, PROMPTS, sampling=SAMPLED, seeds=[1, 2, 3])) == first


def test_the_window_slides_and_says_what_it_saw():
    (steps,) = continued(network(), [PROMPTS[0]], max_new_tokens=15, end_id=V)
    lengths = [4 + index for index in range(15)]
    assert [step.window for step in steps] == [(max(0, n - T_MAX), n) for n in lengths]
    assert [step.index for step in steps] == list(range(15))


def test_only_what_is_in_the_window_matters():
    model, tail = network(), list(range(3, 3 + T_MAX))
    rows = continued(model, [[2, 30, 31, *tail], [2, 35, 36, *tail]], end_id=V)
    same(rows[0], rows[1])
    assert rows[0][0].window == (3, 15)


def test_a_row_stops_at_its_end_token_and_the_others_go_on():
    model, settings = network(), dict(sampling=SAMPLED, seeds=[5, 6, 7])
    full = tokens(continued(model, PROMPTS, end_id=V, **settings))
    end = next(token for token in full[0] if token not in full[1])
    rows = tokens(continued(model, PROMPTS, end_id=end, **settings))
    for got, whole in zip(rows, full, strict=True):
        stop = whole.index(end) + 1 if end in whole else len(whole)
        assert got == whole[:stop]
    assert len(rows[0]) < len(rows[1]) == 8


def test_nothing_is_computed_after_all_rows_have_ended():
    model = network()
    end = tokens(continued(model, [PROMPTS[0]], end_id=V))[0][0]
    passes = []
    model.register_forward_hook(lambda *_: passes.append(1))
    (steps,) = continued(model, [PROMPTS[0]], end_id=end, max_new_tokens=9)
    assert len(steps) == len(passes) == 1


def test_cancelling_is_ceasing_to_ask():
    model, passes = network(), []
    model.register_forward_hook(lambda *_: passes.append(1))
    stream = generate(model, [PROMPTS[0]], max_new_tokens=9, end_id=V)
    taken = [next(stream)[0].token for _ in range(3)]
    stream.close()
    assert len(passes) == 3
    (whole,) = tokens(continued(model, [PROMPTS[0]], end_id=V))
    assert taken == whole[:3]


def test_inference_mode_does_not_leak_out_of_a_stream():
    stream = generate(network(), [PROMPTS[0]], max_new_tokens=3, end_id=V)
    next(stream)
    assert not torch.is_inference_mode_enabled()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(next, stream).result()[0].index == 1


def test_a_full_encoder_decoder_stops():
    (steps,) = continued(
        network("encoder-decoder"), [[1]], sources=[SOURCES[0]], max_new_tokens=50, end_id=V
    )
    assert len(steps) == T_MAX
    assert steps[-1].window == (0, T_MAX)


@pytest.mark.parametrize("family", ["decoder", "encoder-decoder"])
@torch.inference_mode()
def test_one_pass_over_the_finished_text_shows_what_each_step_saw(family):
    model = network(family)
    prompt, source = ([1], [SOURCES[0]]) if family == "encoder-decoder" else (PROMPTS[0], None)
    (steps,) = continued(model, [prompt], sources=source, max_new_tokens=7, end_id=V)
    ids, given = [*prompt, *(step.token for step in steps)], []
    if source:
        given = [torch.tensor(source)]
    full = Trace()
    model(*given, torch.tensor([ids]), trace=full)
    for step in steps:
        seen = Trace()
        start, stop = step.window
        model(*given, torch.tensor([ids[start:stop]]), trace=seen)
        for site in full.sites:
            row = seen[site].weights[0, :, -1]
            n = row.shape[-1]
            if site.stack == "decoder":
                expected = full[site].weights[0, :, stop - 1, :n]
                torch.testing.assert_close(row, expected, atol=1e-5, rtol=0)


def test_no_new_tokens_means_no_steps():
    assert continued(network(), [PROMPTS[0]], max_new_tokens=0) == [[]]


@pytest.mark.parametrize("prompts", [[], [[]], [[2, 3], []]])
def test_a_prompt_without_a_token_gets_a_sentence(prompts):
    with pytest.raises(ValueError, match="needs at least one token to go on from"):
        next(generate(network(), prompts, max_new_tokens=1, end_id=END))


def test_what_cannot_generate_says_so():
    with pytest.raises(ValueError, match=r"an? encoder model cannot generate; it has no decoder"):
        next(generate(network("encoder"), PROMPTS, max_new_tokens=1, end_id=END))
    for sources in (None, [], [[]], [[3], [4]]):
        with pytest.raises(ValueError, match="needs one source of at least one token"):
            next(
                generate(
                    network("encoder-decoder"),
                    [[1]],
                    sources=sources,
                    max_new_tokens=1,
                    end_id=END,
                )
            )


@pytest.mark.parametrize("engine", ["network", "compiled", "packed"])
def test_a_target_ends_where_the_decoder_has_no_more_positions(engine):
    model = network("encoder-decoder", max_len=9, target_max_len=4, target_vocab_size=6)
    fast = engine_of(model, engine)
    session = None if fast is None else DecodeSession(fast)
    source = [1, 7, 3, 2, 8, 5, 4]
    steps = list(
        generate(
            model, [[2]], sources=[source], max_new_tokens=20, end_id=99, session=session
        )
    )  # fmt: skip
    assert len(steps) == 4  # the start and three tokens are read; the fourth is written
    assert session is None or session.ids == [2, *(step.token for (step,) in steps[:-1])]


def test_the_targets_own_padding_is_never_taken():
    model = network("encoder-decoder", target_vocab_size=6, target_padding_id=5)
    with torch.no_grad():
        model.head.bias.fill_(0)
        model.head.bias[5] = 50.0  # the likeliest by far
        model.head.bias[0] = 20.0  # padding of the source, a token of the target
    ((step,),) = generate(model, [[2]], sources=[[1, 7]], max_new_tokens=1, end_id=99)
    assert step.token == 0
