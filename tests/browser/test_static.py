"""The page without a server: from a folder on a plain web server, and as one file from a disk."""

import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from kit import serving
from kit.browser import WAIT_MS
from playwright.sync_api import Browser, expect

from deploy import space
from transformer import Ablate, Run

# Its tab, and a part of it that is drawn there.
TABS = {
    "attention": ".attention", "masks": ".masks", "positions": ".positions",
    "prediction": ".prediction", "what-if": ".breaks", "model": ".architecture",
}  # fmt: skip


SECTIONS = (
    ("attention", "head_metrics", ".ranking"), ("model", "equations", ".equations"),
)  # fmt: skip
OFF = Ablate("decoder", 0, heads=[0])
PROJECT = """import('page').then(({ modules }) => {
    modules['web/store.js'].page.projector = true; })"""
# Waits until the browser has the first model's files, the last that it loads.
KEPT = """async () => { for (;;) { await new Promise(done => setTimeout(done, 100));
    const names = (await caches.keys()).filter(name => name.endsWith(" models"));
    for (const name of names) { const files = await (await caches.open(name)).keys();
        if (files.some(({ url }) => url.includes("frames"))) return; } } }"""

# Whether a part was painted when the page first asked for weights, or for who does.
ASKED = """const note = () => {
    globalThis.wasPainted ??= Boolean(document.querySelector("[data-first-ms]")); };
const { fetch, Worker } = globalThis;
globalThis.fetch = (address, ...more) => {
    if (String(address).includes("models/")) note();
    return fetch(address, ...more); };
globalThis.Worker = class extends Worker { constructor(...given) { super(...given); note(); } };"""

# Whether a frame showed the controls without the picture.
LOOKED = """const look = () => {
    const [button, picture] = ["#generate", ".journey .picture-of"].map(
        (name) => document.querySelector(name));
    globalThis.isInParts ||= Boolean(button && !picture);
    if (!picture) requestAnimationFrame(look); };
look();"""


@pytest.fixture(scope="module")
def altered() -> Run:
    """A run that differs from the model's example in text, settings and network."""
    settings = {"temperature": 0.9, "seed": 5, "max_new_tokens": 6}
    return serving.running().model.generate("the bird said", **settings, interventions=[OFF])


@pytest.fixture(scope="module")
def addresses(altered: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of the folder, the page as one file, and one that opens with a run."""
    folder, out = serving.folder(), tmp_path_factory.mktemp("static")
    folder.page.write_file(out / "file.html")
    opened = folder.page.text(altered, "decoder.1.self", 1)
    (out / "run.html").write_text(opened, encoding="utf-8")
    files = {name: (out / f"{name}.html").as_uri() for name in ("file", "run")}
    return {"folder": folder.url, **files}


@pytest.mark.parametrize("door", ["folder", "file"])
def test_a_page_without_a_server_writes_and_draws_each_tab(
    browser: Browser, addresses: dict[str, str], door: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(addresses[door])
    page.locator(".journey[data-rev]").wait_for()
    page.locator("#generate").click()
    page.locator("#status").get_by_text("tokens in").wait_for()
    page.evaluate("import('later').then(() => null)")
    page.evaluate("import('page').then((all) => all.modules['web/plots.js'].loadPlotly())")
    if door == "folder":
        page.evaluate(KEPT)
    context.set_offline(True)  # after the first load it goes on without a network
    page.locator(".all-tools").click()
    for tab, part in TABS.items():
        page.locator(f"[data-tab-id={tab}]").click()
        page.locator(f"{part}[data-rev]:not([aria-busy])").first.wait_for()
    for tab, section, part in SECTIONS:
        page.locator(f"[data-tab-id={tab}]").click()
        page.locator(f"[data-section={section}] > summary").click()
        page.locator(f"{part}[data-rev]:not([aria-busy])").wait_for()
    expect(page.locator(".ranking tr.chosen .sorted, .ranking tr.chosen th")).not_to_have_count(0)
    expect(page.locator(".equation-tensor").first).to_contain_text("×")
    page.locator("[data-tab-id=learn]").click()
    page.evaluate(PROJECT)
    expect(page.locator("#learn p")).to_have_css("font-size", "24px")
    expect(page.locator("#status .problem")).to_be_hidden()
    assert complaints == []
    context.close()


def test_a_file_that_ends_early_opens_and_says_what_it_lacks(
    browser: Browser, addresses: dict[str, str], tmp_path: Path
) -> None:
    whole = Path(url2pathname(urlsplit(addresses["file"]).path)).read_text(encoding="utf-8")
    weights = whole.index('.safetensors">')
    (tmp_path / "part.html").write_text(whole[: weights + 100], encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto((tmp_path / "part.html").as_uri())
    page.locator(".journey[data-rev]").wait_for()
    page.locator("#generate").click()
    expect(page.locator("#status .problem")).to_contain_text("could not be loaded")
    context.close()


def test_weights_are_asked_for_after_the_first_picture(browser: Browser) -> None:
    context = browser.new_context()
    context.route("**/models/**", lambda route: None)  # they never come
    page = context.new_page()
    page.add_init_script(ASKED + LOOKED)
    page.goto(serving.folder().url)
    page.locator(".journey[data-rev]").wait_for(timeout=WAIT_MS)
    assert not page.evaluate("globalThis.isInParts")  # the whole is drawn at once
    page.locator(".head-card li").first.wait_for(timeout=WAIT_MS)
    page.wait_for_function("() => 'wasPainted' in globalThis", timeout=WAIT_MS)
    assert page.evaluate("wasPainted")
    context.close()


def test_the_folder_opens_again_without_a_network(browser: Browser) -> None:
    directory = str(serving.folder().path)
    answering = partial(serving.Quiet, directory=directory)
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
    page.evaluate(KEPT)
    server.shutdown()
    server.server_close()
    page.reload()
    page.locator(".journey[data-rev]").wait_for()
    page.locator("#generate").click()
    page.locator("#status").get_by_text("tokens in").wait_for()
    page.goto(page.url.split("#")[0] + "?__lang=fr")
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    page.locator(".journey[data-rev]").wait_for()
    context.close()


def test_a_saved_run_opens_as_it_was_and_can_be_continued(
    browser: Browser, addresses: dict[str, str], altered: Run
) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{addresses['run']}#tab=attention")
    expect(page.locator("#tokens button.token")).to_have_text(list(altered.labels))
    expect(page.locator("#text textarea")).to_have_value(altered.request.text)
    expect(page.locator(".altered")).to_contain_text(str(OFF))
    large = page.locator(".attention[data-rev] .large")
    record = altered.trace["decoder.1.self"]
    expect(page.locator(".attention")).to_have_attribute("data-site", "decoder.1.self")
    page.wait_for_function("() => document.querySelector('.large')?.data?.[0].z")
    cells = large.evaluate("box => box.data[0].z.map(row => Array.from(row, one => one || 0))")
    np.testing.assert_allclose(np.square(cells), record.pattern[0, 1].numpy(), atol=2e-3)
    page.locator("#generate").click()
    page.locator("#status").get_by_text("tokens in").wait_for()
    again = page.locator("#tokens button.token")  # the same settings
    expect(again).to_have_text(list(altered.labels))
    assert complaints == []
    context.close()


def test_a_space_without_a_server_gets_the_folder_as_it_is(tmp_path: Path) -> None:
    path = serving.folder().path
    written = {one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file()}
    held = space.static_files(path)
    assert set(held) == written | {"LICENSE", "README.md"}
    inside = [name for name in written if "/" in name]
    assert all(name.startswith(space.REPLACED["static"]) for name in inside)
    readme = held["README.md"]
    assert isinstance(readme, bytes)
    _, front, rest = readme.decode().split("---\n")
    settings = dict(line.split(": ", 1) for line in front.splitlines() if ": " in line)
    assert (settings["sdk"], rest) == ("static", "")
    assert not {"app_file", "sdk_version", "python_version"} & set(settings)
    with pytest.raises(ValueError, match="make static"):
        space.static_files(tmp_path)
