"""The tab Learn, the whole way: train, rest, look back, open the network, silence its best head."""

from __future__ import annotations

from playwright.sync_api import expect

PLAN = {
    "task": "copy", "preset": "vaswani-2017", "n_layers": 1, "n_heads": 2, "n_steps": 150,
    "feed_forward": "true",
}  # fmt: skip
STATE = "([name, value]) => document.querySelector('.learn')?.dataset[name] === value"
ON_ITS_WAY = """n => { const d = document.querySelector(".learn")?.dataset ?? {};
    return d.state === "running" && Number(d.step) > n; }"""


def test_a_network_learns_is_opened_and_fails_without_the_head_that_formed(visit, server):
    fields = "&".join(f"learn.{name}={value}" for name, value in PLAN.items())
    page = visit(f"{server.url}#tab=learn&{fields}&lesson=learning.5").page

    def wait_for(name: str, value: object) -> None:
        page.wait_for_function(STATE, arg=[name, str(value)])

    wait_for("shown", 0)  # nobody waits: a recorded training is there
    wait_for("id", "recorded-copy")
    assert page.locator(".learn-heads canvas").count() == 2 * 4
    assert page.locator(".learn-controls select").nth(1).input_value() == PLAN["preset"]
    assert page.is_checked("[name='learn.feed_forward']")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function(ON_ITS_WAY, arg=0)
    page.get_by_role("button", name="Pause", exact=True).click()
    wait_for("state", "paused")
    step = int(str(page.locator(".learn").get_attribute("data-step")))
    page.get_by_role("button", name="One step", exact=True).click()
    wait_for("step", step + 1)
    page.get_by_role("button", name="Go on", exact=True).click()
    wait_for("state", "ended")
    wait_for("at", PLAN["n_steps"])
    assert page.locator(".learn-heads canvas").count() == 3 * 2
    slider = page.locator(".learn-back")
    slider.press("Home")
    wait_for("at", 1)
    wait_for("right", "false")
    assert page.locator(".learn-said li").first.inner_text().startswith("After step 1 of 150")
    slider.press("End")
    wait_for("at", PLAN["n_steps"])
    page.get_by_role("button", name="Open it in Attention", exact=True).click()
    page.wait_for_function(
        """() => viz.run.model.startsWith("copy-150~") && !viz.isOpening()
            && document.querySelector(".attention")?.dataset.run === viz.run.run"""
    )
    expect(page.locator(".card-verdict")).to_contain_text("Right. The network says")  # the lesson's
    page.locator(".card-end").click()
    expect(page.locator(".attention")).to_have_attribute("data-site", "decoder.0.cross")
    assert page.locator("#model input").input_value() == "Copy, step 150 (yours)"
    page.locator("#attention .switch-off").click()
    page.wait_for_selector(".altered[data-right]")
    data = page.locator(".altered").evaluate("({ dataset }) => ({ ...dataset })")
    before, after = int(data["rightBefore"]), int(data["right"])
    assert before >= 70
    assert after <= before - 20
    assert f"answered right: {before} of 100 before, {after} after" in page.inner_text(".altered")
    page.locator(".intact").click()
    page.wait_for_function("!viz.run.interventions.length")
    # it is shown as what it is, and outlives a reload
    headline = page.locator("#headline")
    expect(headline).to_contain_text("of unseen questions right")
    assert " M parameters" not in headline.inner_text()
    model = page.evaluate("viz.run.model")
    page.reload()
    page.wait_for_function("name => viz.run?.model === name", arg=model)
    expect(page.locator(".problem:visible")).to_have_count(0)
    page.get_by_role("tab", name="Learn", exact=True).click()
    wait_for("state", "ended")
