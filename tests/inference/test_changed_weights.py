"""A network that is changed between two texts: each text is made with what it is then."""

import copy
import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from kit.models import spread
from torch import nn

from transformer import Trace, build_transformer
from transformer.analysis.journey import journey
from transformer.inference.decode_session import DecodeSession
from transformer.inference.engines import c_compiler, changes
from transformer.inference.engines.compiled import engine_of
from transformer.inference.generation import generate

PROMPT = [5, 9, 3]
RANDOM = torch.Generator()


def noise(like):
    return 0.3 * torch.randn(like.shape, generator=RANDOM)


def in_place(network):
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(noise(weight))


def past_the_count(network):
    for weight in network.parameters():
        weight.data.add_(noise(weight))


def one_row(network):
    network.head.weight.data[17] += 4


def one_column(network):
    network.decoder.layers[1].feed_forward.contract.weight.data[:, 30] -= 4


def by_numpy(network):
    network.decoder.norm.weight.detach().numpy()[2] = -3


def other_numbers(network):
    for weight in network.parameters():
        weight.data = weight.data + noise(weight)


def loaded(network):
    network.load_state_dict({k: x + noise(x) for k, x in network.state_dict().items()})


def assigned(network):
    stored = {k: x + noise(x) for k, x in network.state_dict().items()}
    stored["embedding.tokens.weight"] = stored["head.weight"]
    network.load_state_dict(stored, assign=True)


def other_layer(network):
    network.decoder.layers[0] = copy.deepcopy(network.decoder.layers[0])
    in_place(network.decoder.layers[0])


def trained(network):
    network.requires_grad_(True).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1, fused=True)  # is not counted
    for _ in range(3):
        network.loss(torch.tensor([[5, 2, 7, 9, 11, 4]])).backward()
        optimizer.step()
        optimizer.zero_grad()
    network.eval()


def in_double(network):
    network.double()


def of_other_parts(network):
    wide = nn.Sequential(nn.Linear(24, 24), nn.Tanh())
    network.decoder.layers[1].self_attention.output = wide


def wider(network):
    forward = network.decoder.layers[1].feed_forward
    forward.expand, forward.contract = nn.Linear(24, 60), nn.Linear(60, 24)


def hooked(network):
    network.decoder.layers[0].register_forward_hook(lambda _, read, made: -made)


CHANGES = (
    in_place, past_the_count, one_row, one_column, by_numpy, other_numbers, loaded, assigned,
    other_layer, trained, in_double, of_other_parts, wider, hooked,
)  # fmt: skip


@pytest.fixture
def network():
    """Its weights are float16 numbers, of which the compiled step keeps a copy."""
    RANDOM.manual_seed(4)
    sizes = dict(vocab_size=31, d_model=24, n_heads=3, n_layers=2, d_ff=40, max_len=14)
    made = spread(build_transformer("gpt", **sizes, tie_embeddings=True)).eval()
    return made.half().float().requires_grad_(False)


def check(network, engine):
    """Assert that the engine generates and records what the network computes now."""
    session = DecodeSession(engine)
    steps = list(generate(network, [PROMPT], max_new_tokens=6, end_ids={-1}, session=session))
    ids = torch.tensor([[*PROMPT, *(step.token for (step,) in steps)]])
    trace = Trace()
    with torch.no_grad():
        logits = network(ids, trace=trace)[0].float()
    logits[:, 0] = -torch.inf  # padding is never taken
    wanted = logits[len(PROMPT) - 1 : -1].argmax(-1).tolist()
    assert [step.token for (step,) in steps] == wanted
    recorded = session.trace_of(ids[0].tolist())
    if recorded is not None:
        weights = trace.weights("decoder")
        torch.testing.assert_close(recorded.weights("decoder"), weights, atol=1e-4, rtol=0)


@pytest.mark.parametrize("change", CHANGES)
def test_a_text_begins_with_the_weights_as_they_are_then(change, network):
    engine = engine_of(network, "compiled")
    check(network, engine)
    change(network)
    check(network, engine)
    check(network, engine)


def test_an_engine_resumes_once_the_network_is_float32_again(network):
    engine = engine_of(network, "compiled")
    assert engine.refresh()
    network.double()
    assert not engine.refresh()
    network.float()
    assert engine.refresh()
    check(network, engine)


def test_threads_get_whole_texts_while_the_weights_are_read_again(network):
    engine = engine_of(network, "compiled")

    def text(_):
        session = DecodeSession(engine)
        steps = generate(network, [PROMPT], max_new_tokens=9, end_ids={-1}, session=session)
        return [step.token for (step,) in steps]

    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            in_place(network)
            found = list(threads.map(text, range(8)))
            assert found == [text(0)] * 8
            check(network, engine)


def test_a_copied_model_has_an_independent_engine(tiny_model):
    network = copy.deepcopy(tiny_model.network)
    model = dataclasses.replace(tiny_model, network=network, engine=engine_of(network, "compiled"))
    before = model.generate("the fox", max_new_tokens=6)
    other = copy.deepcopy(model)
    assert other.engine is not None
    past_the_count(other.network)
    check(other.network, other.engine)
    assert model.generate("the fox", max_new_tokens=6).ids == before.ids


def test_a_text_between_two_states_of_the_weights_is_of_neither(tiny_model):
    network = copy.deepcopy(tiny_model.network)
    model = dataclasses.replace(tiny_model, network=network, engine=engine_of(network, "compiled"))
    stream = model.stream("the fox", max_new_tokens=6)
    next(stream)
    in_place(model.network)
    mixed = stream.finish()
    with pytest.raises(ValueError, match="are not those that made this run"):
        journey(model, mixed)
    journey(model, model.generate("the fox", max_new_tokens=6))


def weights_of(dtype):
    """Weights of a few shapes, in each of the ways in which a matrix may lie in memory."""
    for n_rows, n_columns in ((5, 3), (3, 5), (4, 8), (8, 4), (6, 6), (1, 9), (9, 1)):
        yield torch.randn(n_rows, n_columns, dtype=dtype)
        yield torch.randn(n_columns, n_rows, dtype=dtype).T
        yield torch.randn(n_rows, 2 * n_columns, dtype=dtype)[:, ::2]
    for shape in ((), (7,), (2, 3, 4)):
        yield torch.randn(shape, dtype=dtype)
    yield torch.randn(4, 3, 2, dtype=dtype).permute(1, 0, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_an_uncounted_change_of_a_row_or_column_is_found(dtype, is_compiled, monkeypatch):
    step = c_compiler.compiled_step() if is_compiled else None
    monkeypatch.setattr(changes, "loaded_step", lambda: step)
    network = nn.ParameterList(weights_of(dtype))
    before = changes.Fingerprint(network)
    for weight in (parameter.data for parameter in network):
        for row in [*weight, *weight.T] if weight.dim() == 2 else [weight]:
            numbers = row.clone()
            row.add_(1)
            assert not before.same
            row.copy_(numbers)
            assert before.same
    assert all(parameter._version == 0 for parameter in network)  # PyTorch counted nothing
