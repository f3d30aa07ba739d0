"""The engines against the network that they repeat."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from kit.models import EIGHT, spread

import transformer
from transformer import Sampling, Trace, build_transformer
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines.changes import digest
from transformer.inference.engines.compiled import (
    AHEAD_TOKENS,
    CompiledDecoder,
    CompiledText,
    engine_of,
)
from transformer.inference.generation import generate

V, MAX_LEN = 31, 14
SOURCE = [3, 9, 4, 4, 2]


def network(preset, **changes):
    sizes = dict(
        vocab_size=V, d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=MAX_LEN, padding_id=0
    )
    return spread(build_transformer(preset, **sizes | EIGHT.get(preset, {}) | changes)).eval()


def tokens(model, *, engine, n_new=8, prompt=(5,), end_ids=(1,), **settings):
    sources = [SOURCE] if model.config.family == "encoder-decoder" else None
    session = DecodeSession(engine) if engine else None
    steps = generate(
        model, [prompt], sources=sources, max_new_tokens=n_new, end_ids=end_ids, session=session,
        **settings,
    )  # fmt: skip
    return [step for (step,) in steps]


@pytest.fixture
def threads():
    """Sets how many threads torch has, until the test is over."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("preset", ["gpt", "vaswani-2017"])
def test_greedy_tokens_read_several_at_once_are_the_networks(preset, monkeypatch):
    model = network(preset, max_len=40)
    engine, calls = engine_of(model, "compiled"), []
    ahead = CompiledText.read_ahead

    def counted(self, *arguments):
        found = ahead(self, *arguments)
        calls.append([token for token, _ in found])
        return found

    monkeypatch.setattr(CompiledText, "read_ahead", counted)
    wanted = tokens(model, engine=None, n_new=30)
    found = tokens(model, engine=engine, n_new=30)
    assert [step.token for step in found] == [step.token for step in wanted]
    assert len(calls) == -(-len([*itertools.chain(*calls)]) // AHEAD_TOKENS)
    read = [step.token for step in wanted if step.token != 1]  # an end is not read
    assert len(read) > AHEAD_TOKENS
    assert [*itertools.chain(*calls)] == read  # and no more than is wanted
    early = wanted[10].token
    n_until = 1 + next(n for n, step in enumerate(wanted) if step.token == early)
    calls.clear()
    assert len(tokens(model, engine=engine, n_new=30, end_ids=[1, early])) == n_until
    assert early not in [*itertools.chain(*calls)]
    calls.clear()
    drawn = tokens(model, engine=engine, n_new=9, sampling=Sampling(temperature=1.0))
    forced = tokens(model, engine=engine, n_new=9, forced_tokens=[7, 8])
    assert [step.token for step in forced][:2] == [7, 8]
    assert len(drawn) <= 9
    assert calls == []


@pytest.mark.parametrize(("token", "n_read"), [(V, 0), (-V - 1, 0), (5, MAX_LEN - 1)])
def test_an_unknown_token_or_position_is_refused(token, n_read):
    session = DecodeSession(engine_of(network("gpt"), "compiled"))
    session.begin([5])
    for _ in range(n_read):
        session.read(7)
    with pytest.raises(IndexError):
        session.read(token)


LONG = [
    ("gpt", 1, {}), ("gpt", 2, dict(window=40)), ("gpt", 3, dict(norm="post")),
    ("llama", 2, {}), ("neox", 1, {}),
    ("qwen3", 3, {}), ("gpt", 2, dict(positions="alibi")),
    (
        "llama", 2,
        dict(
            norm="both", window=40, layer_types=("sliding_attention", "full_attention"),
            sliding_rotary_base=100.0, score_cap=5.0, logit_cap=3.0, residual_scale=0.5,
            logit_scale=0.5,
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "n_threads", "changes"), LONG)
def test_a_long_prompt_is_read_as_by_the_network_with_all_its_attention(
    preset, changes, n_threads, threads
):
    threads(n_threads)
    model, trace = network(preset, max_len=600, **changes), Trace()
    ids = [3 + n * n % 28 for n in range(560)]  # more than are read side by side
    session = DecodeSession(CompiledDecoder(model))
    session.begin(ids[:540])
    logits = session.read(*ids[540:558], ids[558]), session.read(ids[559])
    with torch.inference_mode():
        wanted = model(torch.tensor([ids]), trace=trace)[0, -2:]
    torch.testing.assert_close(torch.stack(logits), wanted, atol=5e-4, rtol=1e-4)
    found = session.trace()
    if model.config.scores_from_heads:
        torch.testing.assert_close(
            found.weights("decoder"), trace.weights("decoder"), atol=5e-5, rtol=0
        )
    for ours, theirs in zip(found.residuals["decoder"], trace.residuals["decoder"], strict=True):
        torch.testing.assert_close(ours, theirs, atol=5e-4, rtol=1e-4)


def test_eight_threads_share_an_engine_and_get_their_own_texts():
    shared = engine_of(network("gpt"), "compiled")

    def one(seed):
        steps = tokens(
            shared.network, engine=shared, sampling=Sampling(temperature=1.0), seeds=[seed]
        )
        return [step.token for step in steps]

    alone = [one(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone
    assert len({tuple(found) for found in alone}) > 1


@pytest.mark.parametrize("to", [torch.float64, "meta"])
def test_another_precision_or_device_has_no_engine(to):
    other = network("gpt").to(to)
    assert engine_of(other) is None
    with pytest.raises(ValueError, match="needs float32 weights on a CPU; allowed: 'auto'"):
        engine_of(other, "compiled")
    with pytest.raises(ValueError, match="needs float32 weights on a CPU; got torch"):
        CompiledDecoder(other)


def test_several_rows_are_left_to_the_network():
    model = network("gpt")
    session, options = DecodeSession(CompiledDecoder(model)), dict(max_new_tokens=5, end_ids={-1})
    assert len(list(generate(model, [[5, 7], [6, 3, 2]], session=session, **options))) == 5
    assert session.ids == []


def test_without_a_compiler_the_network_generates(monkeypatch):
    with pytest.raises(ValueError, match=r"engine must be one of \['auto', .*\]; got 'fast'"):
        engine_of(network("gpt"), "fast")
    monkeypatch.setattr("transformer.inference.engines.c_compiler.compiled_step", lambda: None)
    assert engine_of(network("gpt")) is None
    with pytest.raises(ValueError, match="needs a C compiler, and none was found"):
        engine_of(network("gpt"), "compiled")


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.2, "top_k": 30, "seed": 3}])
@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder"])
def test_a_loaded_model_writes_and_traces_the_same_with_each_engine(
    name, settings, request, tmp_path
):
    request.getfixturevalue(name).save(tmp_path, dtype="float16")
    models = {
        engine: transformer.load(tmp_path, engine=engine)
        for engine in ("network", "auto", "compiled")
    }
    bare = models["network"].weight_bytes
    for engine, model in models.items():
        if engine in ("auto", "compiled"):  # which reads float16 where the numbers are such
            halves = (one.nbytes for one in model.engine.weights if one.dtype != torch.float32)
            assert model.weight_bytes == bare + sum(halves) > bare
        by_engine = "compiled" if engine == "auto" else engine
        for n_new in (9, 40):  # past the window too
            options, passes = dict(max_new_tokens=n_new, **settings), []
            wanted = models["network"].generate("the fox said hello", **options)
            hook = model.network.decoder.register_forward_hook(lambda *_, p=passes: p.append(1))
            stream = model.stream("the fox said hello", **options)
            next(stream)
            early = stream.run()  # which changes no later token
            assert early.ids == wanted.ids[: wanted.n_prompt + 1]
            assert early.stopped == "cancelled"
            run = (list(stream), stream.run())[1]
            hook.remove()
            assert (run.ids, run.trace_start) == (wanted.ids, wanted.trace_start)
            assert run.engine == ("network" if run.trace_start else by_engine)
            # It reads prompts too; a text that slid is read once more.
            assert passes == [] if run.engine == "compiled" else passes
            for site in wanted.trace.sites:
                for part in ("scores", "pattern"):
                    ours, theirs = (getattr(one.trace[site], part) for one in (run, wanted))
                    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
            for stack, streams in wanted.trace.residuals.items():
                ours = torch.stack(run.trace.residuals[stack])
                torch.testing.assert_close(ours, torch.stack(streams), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder"])
def test_a_text_is_traced_by_the_engine_unless_it_could_miss_a_change(name, request, tmp_path):
    text = "the fox said hello"
    request.getfixturevalue(name).save(tmp_path)
    plain, model = (transformer.load(tmp_path, engine=engine) for engine in ("network", "auto"))
    for part in (plain.network, model.network):
        for weight in part.parameters():
            weight.data += 1e-3 / 7  # no float16 number
    for change in (lambda weight: weight, lambda weight: weight.data[3, 2].add_(0.5)):
        for one in (plain, model):
            change(one.network.decoder.layers[0].self_attention.query.weight)
        wanted, run = plain.trace(text), model.trace(text)
        assert (wanted.engine, run.engine) == ("network", "compiled")
        torch.testing.assert_close(run.logits, wanted.logits, atol=1e-4, rtol=1e-4)
        for site in wanted.trace.sites:
            ours, theirs = (one.trace[site].pattern for one in (run, wanted))
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    for weight in model.network.parameters():
        weight.data = weight.data.half().float()  # of which the engine keeps copies
    assert model.trace(text).engine == "network"


def test_weights_that_are_a_view_have_no_compiled_step():
    model = network("gpt")
    weight = model.head.weight
    weight.data = weight.data.T.contiguous().T
    with pytest.raises(ValueError, match="needs weights that lie in one piece; got a view"):
        CompiledDecoder(model)
    before = digest(model)
    with torch.no_grad():
        weight.data[3] += 1
    assert digest(model) != before


def test_a_network_that_could_read_very_much_reads_a_short_text():
    model = network("llama", max_len=1_000_000)
    wanted = tokens(model, engine=None, n_new=3)
    found = tokens(model, engine=CompiledDecoder(model), n_new=3)
    assert [step.token for step in found] == [step.token for step in wanted]
