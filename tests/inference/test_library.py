"""What users of other libraries expect of this one: plain errors, short reprs, copies, files."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from kit.models import ONE_FILE
from safetensors.torch import load_file

import transformer
from transformer import Request, Run, Site, Trace, read_npz
from transformer.analysis.ablation import head_importance, next_token
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.journey import journey
from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.nearest_tokens import nearest_tokens
from transformer.analysis.patching import patch_effect
from transformer.model.summary import blocks

TEXT = "the fox said"


def numbers(run: Run | transformer.Batch) -> dict[str, Any]:
    """Every array of a trace by its name."""
    return {
        f"{record.site}/{name}": getattr(record, name)
        for record in run.trace
        for name in ("scores", "pattern", "q", "k", "v", "allowed")
    }


def test_numpy_scalars_are_numbers(tiny_model):
    plain = tiny_model.generate(TEXT, max_new_tokens=6, temperature=0.5, top_k=7, seed=3)
    options = dict(temperature=np.float32(0.5), top_k=np.int16(7), seed=np.uint8(3))
    run = tiny_model.generate(TEXT, max_new_tokens=np.int64(6), **options)
    assert (run.request, run.ids) == (plain.request, plain.ids)
    assert transformer.from_json(run.to_json()).request == plain.request
    assert run.attention("decoder.1.self", np.int64(1)).data
    forced = tiny_model.generate(TEXT, max_new_tokens=3, forced_tokens=np.array([70, 71]))
    assert forced.request.forced_tokens == (70, 71)
    assert Request(TEXT, max_new_tokens=1, forced_tokens=np.zeros(1, int)).forced_tokens == (0,)
    seeds = np.arange(2)
    assert [one.request.seed for one in tiny_model.generate_batch([TEXT] * 2, seeds)] == [0, 1]


def test_a_trace_iterates_over_its_records_and_has_a_repr(tiny_model):
    trace = tiny_model.trace("the fox").trace
    assert [record.site for record in trace] == trace.sites
    assert repr(trace) == "<Trace of decoder.0.self, decoder.1.self; decoder residual stream>"
    four = Trace(dict.fromkeys((Site("decoder", n, "self") for n in range(4)), trace[0]))
    assert repr(four) == "<Trace of decoder.0.self to decoder.3.self, 4 sites>"
    for wrong, said in (
        (3.5, "a site is .*; recorded: decoder.0.self, decoder.1"),
        (9, "no record of site decoder.9.self; recorded: decoder.0"),
        ("attention", "a site is written STACK.LAYER.KIND"),
        (Site("decoder", 9, "self"), "no record of site decoder.9.self; recorded: decoder.0"),
    ):
        with pytest.raises(ValueError, match=said):
            trace[wrong]


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder", "tiny_encoder"])
def test_a_model_is_copied_and_pickled_with_its_engine(name, request, tmp_path):
    request.getfixturevalue(name).save(tmp_path, dtype="float32")
    model = transformer.load(tmp_path)
    before = numbers(model.trace(TEXT))
    without = dataclasses.replace(model, engine=None)
    assert pickle.loads(pickle.dumps(without)).engine is None
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (again.engine is None) == (model.engine is None)
        assert again.network is not model.network
        if model.engine is not None:
            run = again.generate(TEXT, max_new_tokens=5)
            assert run.ids == model.generate(TEXT, max_new_tokens=5).ids
            assert run.engine == again.engine.name
        with torch.no_grad():
            for parameter in again.network.parameters():
                parameter.zero_()
        after = numbers(model.trace(TEXT))
        assert all(after[key].equal(value) for key, value in before.items())


def test_a_pickled_run_contains_only_its_own_tokens():
    model = transformer.load("stories")
    said = "<Model 'stories': decoder, 6 layers x 8 heads x 256, 5.4 M parameters, on cpu ("
    assert repr(model).startswith(said)
    run = model.generate("Once upon a time", max_new_tokens=20)
    assert len(run.ids) == 25
    written = pickle.dumps(run)
    assert len(written) < 1.1 * sum(array.nbytes for array in run.arrays().values())
    assert len(written) < 1_500_000
    for again in (pickle.loads(written), copy.deepcopy(run)):
        assert again.ids == run.ids
        found = numbers(again)
        assert all(found[key].equal(value) for key, value in numbers(run).items())


@pytest.mark.parametrize("device", ["gpu0", "cuda:99", "mps:0", "", 3, "cpu:7"])
def test_a_missing_device_gets_an_error_message(tiny_model, device):
    for ask in (lambda: transformer.load("stories", device=device), lambda: tiny_model.to(device)):
        with pytest.raises(ValueError, match=r"device must be one of \['auto', 'cpu'"):
            ask()


@pytest.mark.parametrize("engine", ["compiled", "network"])
def test_the_tensors_of_a_run_take_part_in_a_training(engine, tiny_model, tmp_path):
    tiny_model.save(tmp_path / "m")
    model = transformer.load(tmp_path / "m", engine=engine)
    run = model.generate(TEXT, max_new_tokens=3)
    run.to_npz(tmp_path / "run.npz")
    found = [run, model.trace(TEXT), model.trace([TEXT, "the"]), read_npz(tmp_path / "run.npz")]
    for one in found:
        (record, *_), stream = one.trace, one.trace.residuals["decoder"][1]
        probe = torch.nn.Linear(stream.shape[-1], 2)
        probe(stream).sum().backward()
        assert probe.weight.grad is not None
        for tensor in (stream, record.q, record.pattern, one.trace.embed["decoder"]):
            assert not tensor.is_inference()
            tensor += 1
    result = journey(model, run)
    assert not result.logits.is_inference()
    assert not result.stream.is_inference()


WRONG = [
    (lambda model: transformer.load(model.network), "load takes a model's name or its folder; got"),
    (lambda model: transformer.load(None), "load takes a model's name or its folder; got NoneType"),
    (lambda model: model.generate(3), "the text must be a string; got int"),
    (lambda model: model.translate(["a"]), "the text must be a string; got list"),
    (lambda model: model.trace(torch.ones(1, 2)), "text 0 .*: ids must be whole numbers, a list"),
    (lambda model: model.save(__file__), "a model is saved as a folder; .* is a file"),
    (lambda model: model.save(f"{__file__}/m"), "a model is saved as a folder; .* is a file"),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG)
def test_what_cannot_be_meant_is_answered_in_a_sentence(call, sentence, tiny_encoder_decoder):
    with pytest.raises(ValueError, match=sentence):
        call(tiny_encoder_decoder)
    assert Request("hi") == Request(text="hi")


def test_a_model_is_saved_in_a_type_that_represents_its_weights(tiny_model, tmp_path):
    model = copy.deepcopy(tiny_model)
    model.save(tmp_path / "exact")
    again = transformer.load(tmp_path / "exact").network.state_dict()
    for name, weight in model.network.state_dict().items():
        assert weight.equal(again[name])
    for kind in ("float16", "bfloat16"):
        model.save(tmp_path / kind, dtype=kind)
        transformer.load(tmp_path / kind).save(tmp_path / "again")
        stored = load_file(tmp_path / "again" / ONE_FILE)
        assert {tensor.dtype for tensor in stored.values()} == {getattr(torch, kind)}
    model.network.head.weight[3, 4] = 1e5
    with pytest.raises(ValueError, match=r"head\.weight has numbers up to 100000, too large for "):
        model.save(tmp_path / "large", dtype="float16")
    assert not (tmp_path / "large").exists()
    model.save(tmp_path / "large")
    assert transformer.load(tmp_path / "large").network.head.weight[3, 4] == 1e5
    model.network.head.weight[3, 4] = torch.nan
    with pytest.raises(ValueError, match=r"head\.weight has numbers that are not finite"):
        model.save(tmp_path / "none")


LONGEST = 200


def test_every_public_object_has_a_short_repr(tiny_model, tiny_encoder_decoder):
    run = tiny_model.generate("the fox", max_new_tokens=2)
    searched = tiny_encoder_decoder.generate("the fox said hello", beams=2, max_new_tokens=3)
    lens = transformer.with_lens(tiny_model, run).lens
    site = transformer.Site("decoder", 0, "self")
    step = run.steps[0]
    objects = [
        tiny_model, tiny_model.tokenizer, tiny_model.config, tiny_model.stream("the fox"), run,
        tiny_model.trace(["the fox", "a"]), run.trace, run.trace[site], run.request, step,
        step.chosen, step.candidates, run.candidate_labels, searched.search, lens, site,
        transformer.Sampling(), transformer.Break("no-scale"), transformer.EditMask("decoder"),
        transformer.Ablate("decoder", 0, [1]), transformer.Patch("decoder", 0, [1], "a"),
        transformer.Add("decoder", 0, [0.5] * 1000), transformer.Point("z", "decoder"),
    ]  # fmt: skip
    for one in objects:
        text = repr(one)
        assert "\n" not in text, text
        assert len(text) <= LONGEST, text
        assert " object at 0x" not in text, text
    assert repr(lens) == f"<Lens: 5 likeliest of 2 layers at {len(run.ids)} tokens>"
    assert repr(searched.search.texts[0]) in repr(searched.search)
    public = {value for value in vars(transformer).values() if inspect.isclass(value)}
    errors = {kind for kind in public if issubclass(kind, Exception)}
    assert public - errors <= {type(one) for one in objects}


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder_decoder"])
def test_the_new_texts_of_steps_are_whole_characters(name, request):
    """As in the documents' example: an emoji is several tokens, and was printed as four U+FFFD."""
    model = request.getfixturevalue(name)
    settings = dict(forced_tokens=model.tokenizer.encode(" 🦊é!"), max_new_tokens=14)
    stream = model.stream(TEXT, **settings)
    before, printed = stream.text, []
    for step in stream:
        printed.append(step.new_text)
        assert before + "".join(printed) == stream.text
    assert "".join(printed[: len(settings["forced_tokens"])]) == " 🦊é!"
    run = stream.run()
    assert [step.new_text for step in run.steps] == printed
    assert [step.new_text for step in transformer.from_json(run.to_json()).steps] == printed
    (row,) = model.generate([TEXT], **settings)
    assert [step.new_text for step in row.steps] == printed
    plain = model.generate([TEXT, "a fox"], max_new_tokens=5)[0]
    assert before + "".join(step.new_text for step in plain.steps) == plain.text


def test_a_batch_has_the_shapes_of_transformers_outputs(tiny_model):
    texts = ["the fox", "a fox said hello", "the"]
    batch = tiny_model(texts)
    assert [one.ids for one in batch[-2:]] == [batch[1].ids, batch[2].ids]
    assert batch[-1].ids == batch[np.int64(2)].ids == tiny_model(texts[2]).ids
    width = batch.ids.shape[1]
    for layers, shape in (
        (batch.attentions, (3, 2, width, width)),
        (batch.hidden_states, (3, width, 16)),
    ):
        assert {tuple(layer.shape) for layer in layers} == {shape}
    alone = tiny_model(texts[2])
    n = len(alone.ids)
    for layer, own in zip(batch.hidden_states, alone.hidden_states, strict=True):
        assert (layer[2, :n] - own[0]).abs().max() < 1e-4
    for layer, own in zip(batch.attentions, alone.attentions, strict=True):
        assert (layer[2, :, :n, :n] - own[0]).abs().max() < 1e-4
    for row in (3, -4, 1.0, "0", True):
        with pytest.raises(ValueError, match="row must be a whole number from 0 to 2; got"):
            batch[row]


def test_the_only_stack_need_not_be_named(tiny_encoder, tiny_encoder_decoder):
    for model, stack in ((tiny_encoder, "encoder"), (tiny_encoder_decoder, "decoder")):
        run = model.trace(TEXT)
        assert run.heads().to_json() == run.heads(stack).to_json()
        assert run.attention(1).to_json() == run.attention(f"{stack}.1.self", "mean").to_json()
        assert run.trace.weights().equal(run.trace.weights(stack))
        assert repr(head_metrics(run).heads) == repr(head_metrics(run, stack, "self").heads)


@pytest.mark.parametrize("number", [np.int64, torch.tensor], ids=["NumPy", "PyTorch"])
def test_numbers_of_arrays_and_tensors_are_numbers(number, tiny_model):
    run, one = tiny_model.trace(TEXT), number(1)
    assert run.attention((("decoder"), one), one).to_json() == run.attention(1, 1).to_json()
    assert run.trace[one].site == run.trace[1].site
    n = number(4)
    for function, given in (
        (logit_contribution, (n, n, one)), (patch_effect, ("a fox said", n)), (next_token, (n,)),
        (head_importance, (n,)), (journey, (n, n)), (nearest_tokens, (n,)),
        (layer_at_position, ("decoder", one, n)),
    ):  # fmt: skip
        found = function(tiny_model, run, *given)
        plain = function(tiny_model, run, *(x if isinstance(x, str) else int(x) for x in given))
        assert repr(found) == repr(plain)
    runs = [
        tiny_model.generate(TEXT, max_new_tokens=m, seed=m, temperature=m) for m in (2, number(2))
    ]
    assert runs[0].request == runs[1].request
    assert runs[1].to_json()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", torch.float16, "float64"])
def test_weights_are_stored_in_the_type_that_load_is_given(dtype):
    model = transformer.load("stories", dtype=dtype)
    wanted = getattr(torch, str(dtype).removeprefix("torch."))
    assert model.network.head.weight.dtype == wanted
    stored = transformer.load("stories").network.state_dict()
    for name, weight in model.network.state_dict().items():
        assert weight.equal(stored[name].to(weight.dtype))
    run = model.generate("Once upon a time", max_new_tokens=4)
    assert run.text == "Once upon a time, there was a"
    with pytest.raises(ValueError, match=r"dtype must be one of \['auto', 'float32', .*got 'int8'"):
        transformer.load("stories", dtype="int8")


def test_a_model_has_a_view_of_its_own(tiny_encoder_decoder):
    shown = tiny_encoder_decoder._repr_html_()
    assert shown.count("<tr>") == 1 + len(blocks(tiny_encoder_decoder.config))
    assert "decoder.cross" in shown
    assert "T × 16 → 2 × T × 8 → T × 16" in shown
    named = dataclasses.replace(tiny_encoder_decoder, name="<script>")
    assert "<script>" not in named._repr_html_()
