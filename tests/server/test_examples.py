"""The examples and cards that a page opens with: cut to fit, drawn at once, and true."""

import base64
import dataclasses
import io
import re

import numpy as np
import pytest
from kit.client import opened
from kit.models import tiny
from kit.serving import tiny_model
from PIL import Image

import transformer
from transformer import with_lens
from transformer.server.fields import read_tour
from transformer.server.kept.page_models import (
    EXAMPLES,
    example_of,
    headline,
    is_offered,
    model_card,
    settings_table,
)
from transformer.server.kept.page_runs import example_facts, first_head, outcome
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import shown_by
from transformer.server.page import presses
from transformer.server.page.first_answers import first_answers
from transformer.server.page.layout import description
from transformer.server.page.pages import ROOM_TEXT, first_look
from transformer.server.page.short_links import preview
from transformer.views.attention.grid import palette


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_a_model_shorter_than_its_example_is_served_and_can_be_used(tokenizer, family):
    model = tiny("short", family, tokenizer, max_len=5)
    service = Service([model])
    description(service)
    example, whole = example_of(model), EXAMPLES[family]
    offered = [example.text, *example.suggestions, *example.batch]
    for text, longer in zip(offered, [whole.text, *whole.suggestions, *whole.batch], strict=True):
        assert text
        assert longer.startswith(text)
        read = model.prepare(text)
        assert len(read.source or read.ids) <= 5
        assert is_offered(text, [model]) or text in example.batch
    run, batch = example_facts(service, "short")
    assert run["text"] == example.text
    assert batch["texts"] == list(example.batch)
    *_, last = presses.generate(service, "visitor", "short", "a", {"max_new_tokens": 3})
    assert (last["status"]["kind"], last["tokens"]["state"]) == ("done", "done")
    assert opened(service, "short")["first"]["text"] == example.text


@pytest.mark.parametrize("family", ["decoder", "encoder", "encoder-decoder"])
def test_the_text_of_a_model_that_predicts_no_token_is_read(tokenizer, family):
    heads = ({"head": "none"}, {"head": "text-labels-last", "labels": ("no", "yes")})
    for head in heads[family == "encoder-decoder" :]:
        service = Service([tiny("judge", family, tokenizer, max_len=40, **head)])
        example = example_of(service.model("judge"))
        assert "[MASK]" not in example.text
        run, batch = example_facts(service, "judge")
        assert (run["text"], batch["texts"]) == (example.text, list(example.batch))
        *_, last = presses.generate(service, "visitor", "judge", "a fox", {"max_new_tokens": 3})
        assert last["status"]["kind"] == "done"
        assert last["tokens"]["request"] == {"model": "judge", "text": "a fox"}
        assert opened(service, "judge")["run"]["head"] == head["head"]


def test_an_example_is_cut_after_a_word_if_one_fits(tokenizer):
    text = EXAMPLES["encoder-decoder"].text
    words = [" ".join(text.split(" ")[:count]) for count in range(1, 9)]
    for max_len in range(4, 24):
        model = tiny("short", "encoder-decoder", tokenizer, max_len=max_len)
        fitting = [part for part in words if len(tokenizer.encode(part)) < max_len]  # and the end
        if fitting:
            assert example_of(model).text == fitting[-1]
    long = tiny("long", "encoder-decoder", tokenizer, max_len=64)
    assert example_of(long) == EXAMPLES["encoder-decoder"]


def picture(url: str) -> np.ndarray:
    """Palette places of an image."""
    kind, body = url.removeprefix("data:").split(";base64,")
    image = Image.open(io.BytesIO(base64.b64decode(body)))
    assert (kind, image.mode) == ("image/png", "P")
    assert bytes(image.getpalette() or b"") == palette().tobytes()
    return np.asarray(image)


def test_the_first_picture_is_of_the_stored_runs_weights():
    service = Service([tiny_model()])
    run = service.store.run(service.examples["tiny"][0])
    site, _ = first_head(example_facts(service, "tiny")[0])
    weights = run.trace.records[site].pattern[0].numpy()
    assert weights.shape[-1] <= 64  # a longer text would be shown reduced
    heads = picture(first_look(service)["heads"])
    height, width = weights.shape[-2:]
    gap = (heads.shape[1] - run.config.n_layers * width) // (run.config.n_layers - 1)
    allowed = np.tril(np.ones((height, width), dtype=bool))
    for head, expected in enumerate(weights):
        left, top = site.layer * (width + gap), head * (height + gap)
        small = heads[top : top + height, left : left + width]
        assert (small[~allowed] == 0).all()  # see-through
        shown = np.sqrt(expected[allowed]) * 255 - small[allowed]
        assert (shown >= -1).all()
        assert (shown < 33).all()  # eight colours


def test_room_is_left_for_what_a_decoder_may_write_after_the_example(tiny_encoder):
    decoder, encoder = (Service([model]) for model in (tiny_model(), tiny_encoder))
    assert first_look(decoder)["room"] == ROOM_TEXT
    assert first_look(encoder)["room"] == ""


def test_a_large_network_answers_nothing_at_the_start_but_its_pictures():
    service = Service([tiny_model()])
    facts, _ = example_facts(service, "tiny")
    for most, more in ((0.0, set()), (1e12, {"metrics", "journey", "heatmap"})):
        answers = first_answers(service, facts, most=most)
        names = {name for name, *_ in answers}
        assert "atlas" in names
        assert more <= names if more else names == {"atlas"}


def test_the_head_that_an_example_opens_on_is_answered_in_the_page(tokenizer):
    for seed in range(4):  # in some another head leads
        service = Service([tiny("short", "decoder", tokenizer, seed)])
        facts, _ = example_facts(service, "short")
        assert not facts["opening"]  # else it names the head
        site, head = first_head(facts)
        asked = {name: data for name, data, _ in first_answers(service, facts)}
        for name in ("heatmap", "without_head", "continuation"):
            assert (asked[name]["site"], asked[name]["head"]) == (str(site), head), name


def test_how_a_generation_went_is_said_in_sentences(tiny_model):
    run = tiny_model.generate("the", max_new_tokens=2)
    short = tiny_model.generate("the", max_new_tokens=1)
    for seconds, took in ((0.0604, "60 ms"), (0.9994, "999 ms"), (1.0, "1.0 s"), (2.04, "2.0 s")):
        assert outcome(run, seconds) == f"2 tokens in {took}."
        assert outcome(short, seconds) == f"1 token in {took}."
    for stopped, says in (("end", "The model ended its text."), ("cancelled", "You stopped it.")):
        ended = dataclasses.replace(run, stopped=stopped, read_as="The")
        assert outcome(ended, 1.0) == f"2 tokens in 1.0 s. {says} Read as: The"
    sum_sign = tiny_model.generate("the \u2211", max_new_tokens=1)
    says = "No token has this character: it is read byte by byte, ‹E2› …"
    assert outcome(sum_sign, 0.5) == f"1 token in 500 ms. {says}"


def test_a_headline_counts_parameters_and_a_card_loses_its_metadata(tiny_model):
    count = sum(parameter.numel() for parameter in tiny_model.network.parameters())
    size = f"CPU · {count:,} parameters · 2 layers × 2 heads"
    assert headline(tiny_model) == size
    learned = dataclasses.replace(tiny_model, metadata={"accuracy": 0.755})
    assert headline(learned) == f"{size} · 76% of unseen questions right"
    card = "---\nlicense: mit\n---\n\n# Tiny\n---\nmore\n"
    for text, rest in ((card, "# Tiny\n---\nmore\n"), ("# Tiny", "# Tiny")):
        assert model_card(dataclasses.replace(tiny_model, card=text)) == rest
    assert model_card(dataclasses.replace(tiny_model, card="")) == "tiny has no model card."
    rows = dict(re.findall(r"\| `(\w+)` \| (.*) \|", settings_table(tiny_model)))
    assert (rows["n_parameters"], rows["n_layers"], rows["target_max_len"]) == (
        f"{count:,}",
        "2",
        "–",
    )


def test_a_preview_is_a_centred_head_in_whole_pixels_as_large_as_fits(tiny_model):
    service = Service([tiny_model])
    for text in ("The fox", "The fox said hello to the bird"):
        state = {"model": "tiny", "text": text, "site": "decoder.1.self", "head": "1"}
        image = Image.open(io.BytesIO(preview(service, state)))
        assert image.size == (1200, 630)
        side = len(service.read("tiny", text).labels)
        pixels = np.asarray(image)
        scale = 630 // side
        top, left = (630 - scale * side) // 2, (1200 - scale * side) // 2
        head = pixels[top : top + scale * side, left : left + scale * side]
        cells = head[::scale, ::scale]
        assert (head == np.kron(cells, np.ones((scale, scale), dtype=np.uint8))).all()
        assert (np.diag(cells) > 0).all()
        assert not np.triu(cells, 1).any()
        assert pixels.any(axis=1).sum() == pixels.any(axis=0).sum() == scale * side


CARDS = {card["title"]: card for card in read_tour()["card"]}
# Output of the intact network, and of the network in the card's state.
WRITES = {
    "Without it, the name is lost": (
        '"Hello, Loki! I am so big',
        '"Hello, Little bird! I am a very hungry',
    ),
    "Take away the word order": ("L'homme a mordu le chien.", "Le chien a mordu l'homme."),
    "Make the cat a dog": ("chat noir dort sur le lit.", "chien noir dort sur le lit."),
}
LAST = 31  # the L at which the example ends


@pytest.fixture(scope="module")
def bundled() -> Service:
    models = [transformer.load(name) for name in ("stories", "translate-en-fr")]
    return Service(models, trainings=0)


@pytest.mark.slow
@pytest.mark.parametrize("title", WRITES)
def test_an_alteration_changes_the_text_as_its_card_says(bundled, title):
    state = CARDS[title]["state"]
    altered = shown_by(bundled, state).run.text
    intact = shown_by(bundled, state | {"interventions": []}).run.text
    before, after = WRITES[title]
    assert intact.endswith(before), intact
    assert altered.endswith(after), altered
    if title == "Take away the word order":  # both sentences are translated alike
        other = "The dog bit the man."
        assert other in CARDS[title]["look"]
        assert shown_by(bundled, state | {"text": other}).run.text.endswith(after)


@pytest.mark.slow
def test_the_first_card_names_the_token_that_the_example_predicts(bundled):
    model = bundled.model("stories")
    example, run = example_of(model), shown_by(bundled, {"model": "stories"}).run
    assert (run.stopped, len(run.labels), run.labels[LAST]) == ("read", LAST + 1, "␣L")
    assert (example.methods[0], CARDS["What comes next?"]["state"]["read"]) == ("greedy", 31)
    step = model.generate(example.text, **example.settings).steps[0]
    assert (model.tokenizer.label(step.token), f"{step.chosen.probability:.0%}") == ("o", "86%")
    assert "“o” gets 86 %" in CARDS["What comes next?"]["says"]


@pytest.mark.slow
def test_only_the_last_two_layers_say_what_the_last_one_says(bundled):
    run = shown_by(bundled, CARDS["At which layer does the answer appear?"]["state"]).run
    model = bundled.model("stories")
    lens = with_lens(model, run).lens
    said = [model.tokenizer.label(int(best)) for best in lens.ids[:, LAST - run.trace_start, 0]]
    assert said[3:] == ["ittle", "ittle", "o", "o"]
