"""Own hooks, steering vectors, and parts or positions that are ablated or patched, against loops
by hand."""

import pytest
import torch

import transformer
from transformer import Ablate, Add, Break, Patch, Site
from transformer.analysis.logit_contribution import logit_contribution
from transformer.interventions.hooks import hooks_of

TEXT, OTHER = "the fox said hello", "the dog said hello"


def by_hand(model, name, layer, change, n_new=5, text=TEXT):
    """The greedy text, and the last stream, of a network whose part is changed by a function."""

    def hook(point, value):
        return change(value) if (point.name, point.layer) == (name, layer) else None

    ids, streams = model.tokenizer.encode(text, special=True), {}

    def keep(point, value):
        streams[point] = value

    for _ in range(n_new + 1):
        logits = model.network(torch.tensor([ids]), hooks=[hook, keep])
        ids = [*ids, int(logits[0, -1, 1:].argmax()) + 1]  # never padding
    last = next(x for point, x in streams.items() if point[:3] == ("resid_post", "decoder", 1))
    return ids[:-1], last


def same(run, wanted):
    ids, stream = wanted
    assert list(run.ids) == ids
    torch.testing.assert_close(run.hidden_states[-1], stream, atol=1e-5, rtol=1e-5)


def zero_at(positions):
    def change(value):
        value = value.clone()
        value[..., positions, :] = 0
        return value

    return change


@pytest.mark.parametrize(
    ("part", "name", "positions"),
    [("z", "z", [1]), ("mlp_out", "mlp_out", None), ("mlp_out", "mlp_out", [0, 2])],
)
def test_a_part_is_ablated_at_positions_as_by_hand(part, name, positions, tiny_model):
    ablation = Ablate("decoder", 1, part=part, positions=positions)
    run = tiny_model.generate(TEXT, max_new_tokens=5, interventions=[ablation])
    at = slice(None) if positions is None else positions
    same(run, by_hand(tiny_model, name, 1, zero_at(at)))
    again = transformer.from_json(run.to_json())
    assert again.request.interventions == (ablation,)
    assert str(ablation)


def test_an_ablated_layer_adds_nothing(tiny_model):
    run = tiny_model.trace(TEXT, [Ablate("decoder", 0, part="layer")])
    assert run.hidden_states[1].equal(run.hidden_states[0])
    by_mean = tiny_model.trace(TEXT, [Ablate("decoder", 0, part="mlp_out", by="mean")])
    assert by_mean.hidden_states[0].equal(run.hidden_states[0])
    with pytest.raises(ValueError, match="heads are for part='z'"):
        Ablate("decoder", 0, [1], part="layer")


def test_a_vector_steers_reading_and_generating(tiny_model):
    vector = torch.linspace(-2, 2, tiny_model.config.d_model)
    steering = Add("decoder", 0, vector)
    run = tiny_model.generate(TEXT, max_new_tokens=5, interventions=[steering])
    same(run, by_hand(tiny_model, "resid_post", 0, lambda x: x + vector))
    at = Add("decoder", 0, vector.tolist(), positions=[2])

    def change(value):
        value = value.clone()
        value[:, 2] += vector
        return value

    same(
        tiny_model.generate(TEXT, max_new_tokens=5, interventions=[at]),
        by_hand(tiny_model, "resid_post", 0, change),
    )
    assert transformer.from_json(run.to_json()).request.interventions == (steering,)
    with pytest.raises(ValueError, match=f"a vector of {tiny_model.config.d_model} numbers"):
        tiny_model.trace(TEXT, [Add("decoder", 0, [1.0])])
    with pytest.raises(ValueError, match="vector must be finite numbers"):
        Add("decoder", 0, [float("nan")])


@pytest.mark.parametrize("part", ["resid_post", "z"])
def test_a_patch_of_values_is_that_of_their_text(part, tiny_model):
    other = tiny_model.trace(OTHER)
    rows = other.hidden_states[1][0, [1, 2]]
    if part == "z":
        record = other.trace[0]
        rows = (record.pattern @ record.v)[0, :, [1, 2]].transpose(0, 1)
    given = Patch("decoder", 0, [1, 2], values=rows, part=part)
    by_text = Patch("decoder", 0, [1, 2], OTHER, part=part)
    found, wanted = (
        tiny_model.generate(TEXT, max_new_tokens=4, interventions=[one]) for one in (given, by_text)
    )
    assert found.ids == wanted.ids
    torch.testing.assert_close(found.hidden_states[-1], wanted.hidden_states[-1])
    assert not found.hidden_states[-1].equal(tiny_model.trace(TEXT).hidden_states[-1])
    with pytest.raises(ValueError, match="needs one row a position, each once, and no text"):
        Patch("decoder", 0, [1], values=rows)


def test_own_hooks_are_called_where_they_are_told(tiny_model, tiny_encoder_decoder):
    seen = []

    def double(point, value):
        seen.append(tuple(point))
        return 2 * value

    settings = dict(max_new_tokens=5, hooks=[("decoder.1.mlp_out", double)])
    same(tiny_model.generate(TEXT, **settings), by_hand(tiny_model, "mlp_out", 1, lambda x: 2 * x))
    assert {*seen} == {("mlp_out", "decoder", 1, "")}
    assert (
        tiny_model.generate([TEXT], **settings)[0].ids == tiny_model.generate(TEXT, **settings).ids
    )
    unchanged = tiny_model.trace(TEXT, hooks=[lambda point, value: None])
    plain = tiny_model.trace(TEXT)
    torch.testing.assert_close(unchanged.hidden_states[-1], plain.hidden_states[-1])
    batch = tiny_model.trace([TEXT, "the"], hooks=[("mlp_out", double)])
    one = tiny_model.trace(TEXT, hooks=[("mlp_out", double)])
    torch.testing.assert_close(batch[0].hidden_states[-1], one.hidden_states[-1])
    with pytest.raises(ValueError, match="a hook's place must end with one of"):
        tiny_model.trace(TEXT, hooks=[("decoder.1.attn", double)])
    with pytest.raises(ValueError, match="a beam search takes no hooks"):
        tiny_encoder_decoder.generate(TEXT, beams=2, hooks=[double])


def test_runs_have_the_names_of_transformers(tiny_model):
    run = tiny_model.trace(TEXT)
    assert len(run.attentions) == tiny_model.config.n_layers == len(run.hidden_states) - 1
    assert run.attentions[1].equal(run.trace[1].pattern)
    assert run.trace["decoder", 1].site == run.trace[1].site == Site("decoder", 1, "self")
    runs = tiny_model.samples(TEXT, 3, max_new_tokens=4, temperature=1.5, seed=7)
    assert [one.request.seed for one in runs] == [7, 8, 9]
    for name, ours in (("num_beams", "beams"), ("do_sample", "temperature"), ("n", "samples")):
        with pytest.raises(ValueError, match=f"unknown setting '{name}'; here it is .*{ours}"):
            tiny_model.generate(TEXT, **{name: 2})


def test_a_difference_of_two_logits_is_attributed(tiny_model):
    run = tiny_model.trace(TEXT)
    one, other = (logit_contribution(tiny_model, run, 2, token) for token in (70, 71))
    both = logit_contribution(tiny_model, run, 2, 70, minus=71)
    assert both.total == pytest.approx(one.logit - other.logit, abs=1e-4)
    assert both.logit == pytest.approx(one.logit - other.logit)
    torch.testing.assert_close(both.heads["self"], one.heads["self"] - other.heads["self"])


@pytest.mark.parametrize(
    "intervention",
    [
        Ablate("decoder", 0, [1]),
        Ablate("decoder", 1, part="layer"),
        Add("decoder", 0, torch.linspace(-2, 2, 16)),
        Add("decoder", 0, torch.linspace(-2, 2, 16), positions=[0, 2, 9]),
        Ablate("decoder", 0, [1], positions=[1, 8, 20]),
        Ablate("decoder", 1, part="mlp_out", positions=[0, 5]),
        Patch("decoder", 0, [0, 7], values=[[1.0] * 16, [-1.0] * 16]),
        Patch("decoder", 1, [0, 6], values=[[1.0] * 8, [-1.0] * 8], part="z", heads=[1]),
        *map(Break, ("no-scale", "no-positions", "no-residual", "no-feed-forward",
                     "hard-attention", "uniform-attention", "no-final-norm")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("family", ["tiny_model", "tiny_encoder_decoder"])
def test_altered_texts_grow_by_one_token_where_the_past_stays(family, intervention, request):
    model = request.getfixturevalue(family)
    (own,) = hooks_of([intervention], model.config)
    hooks = [lambda point, value, **context: own(point, value, **context)]  # not known as local
    whole = model.generate("the fox", max_new_tokens=24, hooks=hooks)
    lengths = []
    embedding = model.network.embeddings["decoder"]
    handle = embedding.register_forward_pre_hook(lambda _, given: lengths.append(len(given[0][0])))
    grown = model.generate("the fox", max_new_tokens=24, interventions=[intervention])
    handle.remove()
    assert grown.ids == whole.ids
    assert lengths[:2] == [grown.n_prompt, 1]
    for one, other in zip(grown.steps, whole.steps, strict=True):
        assert one.chosen.probability == pytest.approx(other.chosen.probability, rel=1e-3)
