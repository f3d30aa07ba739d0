"""A run in a notebook: it shows itself offline, isolated and small; its methods give figures."""

import json
import sys
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from kit import aio, prefork
from kit.browser import WAIT_MS
from kit.hf_folders import byte_level
from kit.hf_models import made
from kit.models import tiny
from kit.runs import HOSTILE, relabelled
from kit.windows import opened_alone
from playwright.sync_api import expect

from transformer import from_attention, from_transformers, with_lens
from transformer.views.attention.grid import head_grid
from transformer.views.attention.heatmap import attention_heatmap
from transformer.views.attention.lines import alignment
from transformer.views.drawing import style
from transformer.views.export import notebook
from transformer.views.prediction.beams import beam_tree
from transformer.views.prediction.lens import logit_lens

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "tour.ipynb"


def contrast(one, other):
    """WCAG's ratio of two colours, "#rrggbb"."""

    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05

    low, high = sorted([light(one), light(other)])
    return high / low


def test_methods_give_the_figures_of_their_names(tiny_encoder_decoder):
    run = tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=4)
    place = "decoder.1.cross", 1
    lens = with_lens(tiny_encoder_decoder, run)
    for mine, known in (
        (run.attention(*place, stage="scores"), attention_heatmap(run, *place, stage="scores")),
        (run.heads("decoder", "cross"), head_grid(run, "decoder", "cross")),
        (run.alignment(), alignment(run, "mean", "mean")),
        (lens.logit_lens(count=2), logit_lens(lens, count=2)),
        (run.draw("beams"), beam_tree(run)),
    ):
        assert isinstance(mine, go.Figure)
        assert mine.layout.paper_bgcolor == style.PAPER  # a notebook may be dark
        assert mine.to_json() == known.to_json()
    for colour in (style.LIGHT.text, style.LIGHT.muted):
        assert contrast(colour, style.PAPER) >= 4.5

    with pytest.raises(ValueError, match=r"view must be one of .*'lens', .*; got 'nothing'"):
        run.draw("nothing")


def test_a_batch_shows_the_tokens_of_each_text(tiny_encoder_decoder):
    batch = tiny_encoder_decoder.translate_batch(["the fox said", "<b>"], max_new_tokens=3)
    shown = batch._repr_html_()
    assert shown.count("<p>") == 1 + 2 * len(batch)
    assert shown.count("opacity:.3") == sum(
        int((~batch.is_token(stack)).sum()) for stack in ("encoder", "decoder")
    )
    assert "<b>" not in shown


def test_a_cell_counts_the_tokens_that_it_leaves_out(tiny_model, monkeypatch):
    run = tiny_model.generate("the fox", max_new_tokens=4)
    assert "tokens before" not in run._repr_html_()
    monkeypatch.setattr(notebook, "MAX_TOKENS", 3)
    assert f"<p>… {len(run.labels) - 3} tokens before … " in run._repr_html_()


COUNTED = """
import sys, transformer
run = transformer.from_attention([[[[1.0]]]], ["a"])
before = {*sys.modules}
run.attention("encoder.0.self", 0)
print(*sorted(name for name in {*sys.modules} - before if name.startswith("transformer.")))
"""


def test_the_first_picture_imports_only_what_it_draws_with():
    done = prefork.run([sys.executable, "-"], given=COUNTED)
    assert "transformer.views.attention.heatmap" in done.stdout
    assert len(done.stdout.split()) <= 12, done.stdout + done.stderr


@pytest.mark.browser
def test_a_cell_shows_tokens_and_in_a_frame_every_head(browser, tiny_encoder_decoder, tmp_path):
    run = relabelled(tiny_encoder_decoder.generate("the fox said", max_new_tokens=5), HOSTILE)
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{run._repr_html_()}", encoding="utf-8")
    with opened_alone(browser, path) as tab:
        tokens = tab.locator("p > span")
        labels = run.source_labels + run.labels
        expect(tokens).to_have_text([style.shorten(one, style.HOVER_CHARACTERS) for one in labels])
        assert tokens.evaluate_all("all => all.map(it => it.title)") == [""] * (
            len(run.source_labels) + run.n_prompt
        ) + [f"probability {step.chosen.probability:.4f}" for step in run.steps]
        expect(tab.locator("iframe")).to_have_attribute("sandbox", "allow-scripts")
        frame = tab.frame_locator("iframe")
        policy = frame.locator("meta[http-equiv]").get_attribute("content")
        assert str(policy).startswith("default-src 'none'")
        frame.locator("#kind").select_option(label="decoder cross")
        frame.get_by_role("button", name="layer 1, head 1").click()
        weights = run.trace["decoder.1.cross"].pattern[0, 1].numpy()
        for key, row, column in (("ArrowDown", 1, 0), ("ArrowRight", 1, 1), ("ArrowDown", 2, 1)):
            frame.locator("#large").press(key)
            said = frame.locator("#readout")
            expect(said).to_contain_text(f"query {row} {run.labels[row]} reads key {column} ")
            weight = float(said.inner_text().rsplit("weight ", 1)[1])
            assert weight == pytest.approx(float(weights[row, column]), abs=0.011)


def test_the_small_heads_are_a_row_for_each_head(browser, tokenizer, tmp_path):
    run = tiny("three", "encoder", tokenizer, n_layers=3).trace("the fox said")
    (tmp_path / "cell.html").write_text(f"<meta charset=utf-8>{run._repr_html_()}", "utf-8")
    with opened_alone(browser, tmp_path / "cell.html") as tab:
        heads = tab.frame_locator("iframe").locator("#grid button")
        expect(heads).to_have_count(6)
        boxes = [one.bounding_box() for one in heads.all()]
        assert len({round(box["y"]) for box in boxes[:3]}) == 1
        assert [boxes[3][side] - boxes[0][side] > 20 for side in "xy"] == [False, True]


def test_the_notebook_runs_from_its_own_folder():
    """In a separate process, which does not know where the package is."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = [one["source"] for one in notebook["cells"] if one["cell_type"] == "code"]
    script = "\n".join(map("".join, cells))
    checks = (
        "assert abs(run.trace.weights('decoder', 'self').sum(-1) - 1).max() < 1e-5\n"
        "assert (weights - record.pattern[0, head, query]).abs().max() < 1e-5\n"
        "assert same.text == run.text and (folder / 'mine.html').stat().st_size > 10_000\n"
        "assert effect.change.max() > 1 and removal.mean_freed_weight > 0.1\n"
    )
    done = prefork.run([sys.executable, "-"], given=f"{script}\n{checks}", cwd=NOTEBOOK.parent)
    assert done.returncode == 0, done.stderr


def test_a_page_with_its_network_is_saved_while_a_loop_runs(tokenizer, tmp_path):
    """As one does in every notebook."""
    model, path = tiny("tiny", "decoder", tokenizer), tmp_path / "run.html"

    async def cell() -> None:
        model.trace("the fox").to_html(path, model)

    aio.run(cell())
    page = path.read_text(encoding="utf-8")
    assert all(f'data-file="{name}"' in page for name in ("site.json.gz", "words/zh.json.gz"))


def test_a_batch_with_its_network_says_how_one_text_of_it_is_saved(tokenizer, tmp_path):
    model, path = tiny("tiny", "decoder", tokenizer), tmp_path / "batch.html"
    with pytest.raises(ValueError, match=r"batch of 2: .* batch\[0\]\.to_html\(path, model\)"):
        model.trace(["the fox", "the"]).to_html(path, model)
    assert not path.exists()


def test_the_heatmap_of_a_long_text_stays_small_and_right():
    """A cell of a notebook froze on one of 105 MB."""
    weights = np.tril(np.random.default_rng(0).random((1001, 1001), np.float32))
    weights /= weights.sum(axis=-1, keepdims=True)
    run = from_attention(weights[None, None], [f"token {n}" for n in range(1001)])
    figure = run.attention(0, 0)
    (cells,) = figure.data
    assert len(figure.to_json()) < 4_000_000
    assert cells.z.shape == (334, 334)  # of 3 x 3 cells
    assert cells.z[40, 7] == weights[120:123, 21:24].max()
    assert np.isnan(cells.z[40, 41])
    assert cells.z[41, 41] == weights[123:126, 123:126].max()
    assert (cells.x0 + 7 * cells.dx, cells.y0 + 40 * cells.dy) == (22, 121)  # token positions
    assert figure.layout.xaxis.range[1] == 1000.5
    scores = run.attention(0, 0, stage="masked").data[0].z
    assert scores[40, 7] == pytest.approx(np.log(weights[120:123, 21:24].max()))
    assert "largest of 3 × 3" in figure.layout.title.subtitle.text


@pytest.fixture
def chat():
    """Somebody else's app: a chat, with what transformers' network read beside it."""
    import gradio
    import transformers

    made_of, special = byte_level()
    encode = transformers.PreTrainedTokenizerFast(tokenizer_object=made_of, **special)
    theirs = made("gpt2", 1, vocab_size=len(encode))
    theirs.set_attn_implementation("eager")
    ids = encode("The black cat", return_tensors="pt")
    attentions = theirs(**ids, output_attentions=True).attentions
    model = from_transformers(theirs, encode)

    def answer(text, history):
        run = model.generate(text, max_new_tokens=3)
        return "", [*history, {"role": "assistant", "content": run.new_text}], run.embed(400)

    with gradio.Blocks(analytics_enabled=False) as demo:
        log, box, seen = gradio.Chatbot(), gradio.Textbox(label="Say"), gradio.HTML()
        gradio.HTML(from_attention(attentions, encode.tokenize("The black cat")).embed(height=500))
        gradio.HTML(model.trace(["One", "Two texts"]).embed(height=450, theme="dark"))
        box.submit(answer, [box, log], [box, log, seen])
    options = dict(quiet=True, prevent_thread_lock=True, ssr_mode=False, enable_monitoring=False)
    _, address, _ = demo.launch(server_name="127.0.0.1", **options)
    yield address, attentions, model
    demo.close()


CELLS = """() => [...document.querySelectorAll("*")].find(box => box._fullData)
    ?._fullData[0].customdata.map(row => row.map(([, weight]) => weight))"""


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")
def test_runs_are_seen_in_somebody_elses_gradio_app(browser, chat):
    address, attentions, model = chat
    context = browser.new_context(color_scheme="light", viewport={"width": 1200, "height": 1500})
    context.route(lambda url: not url.startswith(address), lambda route: route.abort())
    tab, complaints = context.new_page(), []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(address)
    frames = tab.locator("iframe")
    expect(frames).to_have_count(2, timeout=WAIT_MS)
    tab.get_by_label("Say").fill("The dog")
    tab.get_by_label("Say").press("Enter")
    expect(frames).to_have_count(3, timeout=WAIT_MS)
    run = model.generate("The dog", max_new_tokens=3)
    first = model.trace(["One", "Two texts"])[0]
    shown = (run.attentions[0], attentions[0], first.attentions[0])
    for at, weights in enumerate(shown):
        frames.nth(at).scroll_into_view_if_needed()
        page = frames.nth(at).element_handle().content_frame()
        page.locator(".attention").scroll_into_view_if_needed(timeout=WAIT_MS)
        page.wait_for_function(CELLS, timeout=WAIT_MS)
        drawn = np.array(page.evaluate(CELLS))
        assert np.abs(drawn - weights[0, 0].detach().numpy()).max() < 1e-4
        is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
        assert is_dark == (at == 2)
    assert complaints == []
    context.close()
