"""The page's address: a copy of it draws the same anywhere, Back and Forward follow it, and what it
holds is text."""

from urllib.parse import urldefrag, urlencode, urlparse

import pytest
from kit import serving
from kit.browser import Visit
from playwright.sync_api import expect

ALTERED = '{ type: "ablate", stack: "decoder", layer: 0, heads: [1] }'
SEEN = """() => {
    const [[{ z }]] = document.querySelector("#attention .large").calcdata;
    const picture = z.map((row) => [...row]);
    const numbers = [...document.querySelectorAll(".readout dd")].map((one) => one.textContent);
    const shown = document.querySelector(".attention");
    const checked = [...document.querySelectorAll("#attention input:checked")]
        .map((one) => `${one.name} ${one.value}`);
    const { rev, run, firstMs, clickMs, ...state } = shown?.dataset ?? {};
    return { picture, numbers, checked, state };
}"""


def alter(page: Visit, script: str) -> None:
    """Ask for another run and wait for its picture."""
    old = page.shown_run()
    with page.drawn(".attention"):
        page.page.evaluate(script)
        page.page.wait_for_function("old => viz.run.run !== old", arg=old)


def generated(page: Visit, *texts: str) -> None:
    """One after the other; each is a step of the history."""
    for text in texts:
        page.generate(text)
        page.wait_for_address(f"text={text.replace(' ', '+')}")


def shows(page: Visit, text: str) -> None:
    """Until the text has come of which the address is."""
    page.page.wait_for_function("text => viz.run.text === text && !viz.isOpening()", arg=text)
    expect(page.page.locator("#text textarea")).to_have_value(text)


def test_a_link_draws_the_same_in_another_browser_and_after_a_restart(page, visit):
    page.set_length(12)
    page.generate("The fox & the <b>bird</b>")
    alter(page, f"viz.alter([{ALTERED}])")
    alter(page, "viz.continueFrom([60, 61])")
    page.press(page.head(1, 2), draws=".attention")
    for group, value in (("scales", "log"), ("ranges", "own"), ("stages", "masked")):
        page.switch(group, value)
    page.page.mouse.click(*page.cell(7, 4))
    page.page.mouse.move(5, 5)
    address = page.wait_for_address(
        "model=tiny", "&forced_tokens=60,61", "&site=decoder.1.self", "&head=2", "&cell=7,4",
        "&stage=masked", "&scale=log", "&range=own",
    )  # fmt: skip
    seen, labels, facts = page.page.evaluate(SEEN), page.labels(), page.page.evaluate("viz.run")
    assert (seen["state"]["row"], seen["state"]["column"]) == ("7", "4")
    # a second server, to which the first has left nothing but the checkpoints
    other = visit(f"{serving.second().url}#{urldefrag(address).fragment}")
    other.wait_for_link()
    shown = ".attention[data-stage=masked][data-row='7'][data-column='4'][data-head='2']"
    other.page.wait_for_selector(shown)
    expect(other.tokens).to_have_text(labels)
    assert other.page.evaluate(SEEN) == seen
    again = other.page.evaluate("viz.run")
    for name in ("forced_tokens", "interventions", "probabilities", "request"):
        assert again[name] == facts[name]
    expect(other.page.locator(".altered")).to_be_visible()
    assert urldefrag(other.page.url).fragment == urldefrag(address).fragment


@pytest.mark.without_server
def test_every_tab_opens_as_it_was_left(page):
    page.tab("Masks")
    page.wait_drawn(".masks")
    page.show_masks("The fox.", "The dog ran.")
    page.press(page.page.locator("#without-padding"), draws=".masks")
    page.press(page.page.locator(".sentence").nth(1), draws=".masks")
    page.wait_drawn(".mask-scores")
    with page.drawn(".mask-scores"):
        page.page.locator(".mask-scores .pick-head").select_option("2")
    page.tab("Prediction")
    page.tokens.nth(9).click()
    address = page.wait_for_address(
        "lines=", "&bare=true", "&row=1", "&mask_head=2", "tab=prediction", "read=9"
    )
    title = page.page.locator(".step-title").inner_text()
    page.go("model=tiny-translator&tab=attention")
    page.go(urldefrag(address).fragment)
    page.wait_drawn(".prediction")
    expect(page.page.locator(".step-title")).to_have_text(title)
    assert page.page.url == address
    page.tab("Masks")
    page.page.wait_for_selector(".mask-scores[data-row='1'][data-head='2']")
    expect(page.page.locator("#lines textarea")).to_have_value("The fox.\nThe dog ran.")
    expect(page.page.locator("#without-padding")).to_have_attribute("aria-pressed", "true")


@pytest.mark.without_server
def test_links_and_history_are_followed_without_a_reload(page):
    page.page.evaluate("window.before = true")
    page.set_length(4)
    generated(page, "The fox", "The bird", "The cow")
    page.tab("Masks")
    page.wait_for_address("tab=masks")
    page.page.go_back()
    attention = page.page.get_by_role("tab", name="Attention")
    expect(attention).to_have_attribute("aria-selected", "true")
    page.page.go_back()
    shows(page, "The bird")
    page.page.go_forward()
    shows(page, "The cow")
    # Each is requested while the server still answers the one before.
    for leap, text in ((-1, "The bird"), (-1, "The fox"), (2, "The cow"), (-2, "The fox")):
        page.page.evaluate("leap => history.go(leap)", leap)
        page.wait_for_address(f"text={text.replace(' ', '+')}")
    shows(page, "The fox")
    page.page.evaluate("location.hash = 'model=tiny&text=The+fox&max_new_tokens=3&tab=prediction'")
    shows(page, "The fox")
    page.wait_drawn(".prediction")
    assert page.page.evaluate("window.before")
    # a picture that the next run does not have is not asked for
    page.go("model=tiny-translator&tab=attention&site=decoder.1.cross&picture=alignment")
    page.wait_drawn(".attention")
    page.go("model=tiny&text=The+fox&max_new_tokens=2&tab=attention")
    page.wait_drawn(".attention")
    expect(page.page.get_by_role("alert")).to_be_hidden()


def test_looking_runs_nothing_and_the_link_can_be_copied(visit, server):
    # the last: an outer page elsewhere shows one of this machine
    permissions = ["clipboard-read", "clipboard-write", "local-network-access"]
    own = {"permissions": permissions, "viewport": {"width": 1440, "height": 900}}
    page = visit(own=own, tab="Journey")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    assert urlparse(page.page.url)[4:] == ("", "")  # neither query nor fragment
    page.tab("Attention")
    page.wait_for_address("model=tiny&tab=attention")
    page.wait_drawn(".attention")
    entries = page.page.evaluate("history.length")
    page.press(page.head(1, 1), draws=".attention")
    page.wait_for_address("model=tiny&tab=attention&site=decoder.1.self&head=1")
    page.press(page.head(0, 0), draws=".attention")
    page.page.wait_for_function("location.hash === '#model=tiny&tab=attention'")
    assert page.page.evaluate("history.length") == entries
    assert not [url for url in asked if url.endswith(("runs", "state"))]
    page.page.evaluate(
        "() => { window.told = []; window.onmessage = ({ data }) => told.push(data); }"
    )
    page.press(page.head(1, 1), draws=".attention")
    page.wait_for_address("head=1")
    assert page.page.evaluate("told") == []
    # the outer page of a Space follows
    link = "#model=tiny&tab=attention&site=decoder.1.self&head=1"
    assert told_by_a_frame(page, server.url) == {"queryString": "", "hash": link}
    page.page.bring_to_front()
    page.page.locator("#model input").focus()
    page.menu()
    page.page.locator(".copy-link").focus()
    page.page.keyboard.press("Enter")
    expected = page.page.url.split("#")[0] + link
    says = page.page.locator(".share-says")
    expect(says).to_contain_text("Copied")
    assert page.page.evaluate("navigator.clipboard.readText()") == expected
    # as where the page is served to a network without encryption
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.page.keyboard.press("Enter")
    expect(says).to_contain_text("Copy the link from here")
    assert page.page.evaluate("getSelection().toString()") == expected


def told_by_a_frame(page: Visit, framed: str) -> dict[str, str]:
    """The message that a Space's outer page gets when a head is chosen in the frame."""
    outer, address = page.page.context.new_page(), "https://huggingface.co/spaces/a/b"
    body = f"""<script>messages = []; onmessage = ({{ data }}) => messages.push(data)</script>
        <iframe src='{framed}#tab=attention' width=1300 height=900></iframe>"""
    outer.route(address, lambda route: route.fulfill(content_type="text/html", body=body))
    outer.goto(address)
    inner = outer.frame_locator("iframe")
    inner.locator(".attention[data-rev]").wait_for()
    inner.get_by_role("button", name="Layer 1, head 1", exact=True).click()
    outer.frames[1].wait_for_function("location.hash.includes('head=1')")
    outer.frames[1].evaluate("viz.nextPaint()")
    messages: list[dict[str, str]] = outer.evaluate("messages.filter(one => one.hash)")
    outer.close()
    return messages[-1]


def test_a_link_that_is_hostile_or_cannot_be_read_is_text_and_sentences(page):
    attack = "<img src=x onerror=alert(1)>${alert(2)}{{value}}"
    names = (
        "model",
        "temperature",
        "forced_tokens",
        "constructor",
        "site",
        "tab",
        "picture",
        "cell",
    )
    more = (
        "method",
        "interventions",
        "head",
        "token",
        "stage",
        "scale",
        "sort",
        "row",
        "__proto__",
    )
    page.go(
        urlencode(dict.fromkeys((*names, *more), attack) | {"text": attack, "max_new_tokens": "3"})
    )
    said = page.wait_for_alert()
    for name in names:
        assert f"link's {name}" in said or f"link's '{name}'" in said or f"{name} must be" in said
    expect(page.page.locator("img[src=x]")).to_have_count(0)
    expect(page.page.locator("#text textarea")).to_have_value(attack)
    assert page.page.evaluate("({}).constructor === Object")
    page.go("z=AAAA")
    expect(page.page.get_by_role("alert")).to_contain_text("The link cannot be read")
    page.go(urlencode({"model": "tiny-translator", "text": "x" * 2001}))
    expect(page.page.get_by_role("alert")).to_contain_text("at most 2,000 characters")
    assert page.page.evaluate("viz.run.example && viz.run.model") == "tiny-translator"
    page.page.wait_for_timeout(500)  # longer than the address takes to follow
    assert "text=xxx" in page.page.url
    page.tab("Masks")
    expect(page.page.get_by_role("alert")).to_be_hidden()


def test_the_address_of_a_refused_model_has_the_open_tab(page):
    page.go("model=tiny&tab=masks")
    page.text_box().fill("x" * 1800)
    count = page.page.locator(".characters")
    expect(count).to_be_hidden()
    page.text_box().fill("🐶" * 1801)
    expect(count).to_have_text("1,801 of 2,000 characters")
    page.text_box().fill("x" * 2001)
    expect(count).to_have_attribute("data-over", "true")
    page.page.locator("#model input").click()
    page.page.get_by_role("option", name="tiny-translator", exact=True).click()
    expect(page.page.get_by_role("alert")).to_contain_text("at most 2,000 characters")
    page.wait_for_address("model=tiny-translator", "tab=masks")
