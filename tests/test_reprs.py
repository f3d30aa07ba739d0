"""Every public object describes itself in one short line."""

import inspect

import transformer

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
    ]  # fmt: skip
    for one in objects:
        text = repr(one)
        assert "\n" not in text, text
        assert len(text) <= LONGEST, text
        assert " object at 0x" not in text, text
    public = {value for value in vars(transformer).values() if inspect.isclass(value)}
    errors = {kind for kind in public if issubclass(kind, Exception)}
    assert public - errors <= {type(one) for one in objects}
