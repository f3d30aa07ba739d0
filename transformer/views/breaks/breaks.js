// What breaks: a switch for each idea of the architecture, its cost, and the visitor's text without it.

import { ask } from "../../ui/static/ask.js";
import { el, finder, tokenElement } from "../../ui/static/dom.js";
import { alter, generates, interventions } from "../../ui/static/interventions.js";
import { numeral, say } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page, showProblem } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".breaks");
  // found: the server's rows, without losses until somebody has measured them. texts: by switch, the
  // tokens of this prompt going on without it alone. of: model and prompt. at: how many texts have
  // been asked for.
  /** @type {Record<string, any>} */
  const state = { found: null, model: null, texts: new Map(), of: "", at: null };

  const isOff = (what) => interventions().some((one) => one.type === "break" && one.what === what);
  const flip = (what) => {
    const others = interventions().filter((one) => one.type !== "break" || one.what !== what);
    alter(isOff(what) ? others : [...others, { type: "break", what }]);
  };

  const cell = (tag, className, ...content) => {
    const made = el(tag, className);
    made.append(...content);
    return made;
  };
  // The bar ends where the network says nothing any more: all tokens alike.
  const cost = (loss) => {
    const { intact, even } = state.found;
    if (loss === null || intact === null) return cell("td", "cost", "–");
    const more = loss - intact;
    const share = Math.max(0, more / (even - intact));
    const made = cell(
      "td",
      "cost number",
      `${more < 0 ? "−" : "+"}${numeral(Math.abs(more).toFixed(3))}`,
      el("i"),
    );
    made.classList.toggle("beyond", share > 1);
    made.lastElementChild.style.width = `${100 * Math.min(1, share)}%`;
    return made;
  };
  const goesOn = (what) => {
    const tokens = state.texts.get(what);
    if (!tokens) return cell("td", "goes-on", "–");
    return cell(
      "td",
      "goes-on",
      ...(tokens.length ? tokens.map(tokenElement) : [say("(nothing)")]),
    );
  };
  const line = (what, first, why, loss, more) => {
    const row = el("tr");
    row.dataset.what = what ?? "";
    row.append(
      cell("th", "", first),
      cell("td", "why", why),
      cell("td", "number", loss === null ? "–" : numeral(loss.toFixed(3))),
      more,
      goesOn(what),
    );
    row.firstElementChild.scope = "row";
    return row;
  };
  const lineOf = ({ what, says, why, loss }) => {
    const button = el("button", "break-switch", says);
    button.setAttribute("aria-pressed", String(isOff(what)));
    button.addEventListener("click", () => flip(what));
    return line(what, button, why, loss, cost(loss));
  };
  const drawTable = () => {
    const { rows, intact } = state.found;
    /** @type {HTMLElement | null | undefined} */
    const within = document.activeElement?.closest(".breaks-table tr");
    const focused = within?.dataset.what;
    find("tbody").replaceChildren(
      line(
        null,
        say("nothing: intact"),
        say("The network as it was trained."),
        intact,
        cell("td", "cost", "–"),
      ),
      ...rows.map(lineOf),
    );
    if (focused) find(`tr[data-what="${focused}"] button`)?.focus({ preventScroll: true });
    const { about, n_texts: count, even } = state.found;
    find(".breaks-about").textContent =
      about === null
        ? say("This model has no sample of text to measure a loss on.")
        : say(
            "The loss is the mean over a sample of {count} texts. {about} A full bar " +
              "means that the network finds all tokens equally likely ({even} nats); a bar " +
              "with a double end is worse than that.",
            { count, about: say(about), even: numeral(even.toFixed(2)) },
          );
    find(".measure").hidden = about === null || intact !== null;
    find(".texts").disabled = state.at !== null;
    Object.assign(root.dataset, { measured: intact !== null, texts: state.texts.size });
  };
  const tell = (text) => (find(".breaks-says").textContent = text);

  find(".measure").addEventListener("click", async () => {
    const { model } = page.run;
    tell(say("Measuring each in turn …"));
    find(".measure").disabled = true;
    try {
      const found = await ask(server.broken, { model, measure: true });
      if (page.run.model === model) state.found = found;
      tell("");
    } catch (error) {
      tell("");
      showProblem(error.message);
    }
    find(".measure").disabled = false;
    drawTable();
  });

  // One text after the other; another prompt ends it.
  find(".texts").addEventListener("click", async () => {
    const { of } = state;
    const switches = [null, ...state.found.rows.map(({ what }) => what)];
    try {
      for (const [place, what] of switches.entries()) {
        state.at = place;
        tell(say("Text {place} of {count} …", { place: place + 1, count: switches.length }));
        const { labels } = await ask(server.broken_text, { run: page.run.run, what });
        if (state.of !== of) return;
        state.texts.set(what, labels);
        drawTable();
      }
      tell(say("Each one alone, at most 24 tokens."));
    } catch (error) {
      tell("");
      showProblem(error.message);
    }
    state.at = null;
    drawTable();
  });

  // The texts are the prompt's, whatever is altered in the shown run.
  const follow = () => {
    const of = JSON.stringify([page.run.model, page.run.text]);
    if (of === state.of) return;
    Object.assign(state, { texts: new Map(), of, at: null });
    tell("");
  };
  const draw = async (current) => {
    if (!page.run) return;
    root.dataset.generates = generates();
    const { model, run } = page.run;
    if (state.model !== model || state.found?.intact === null) {
      const found = await ask(server.broken, { model });
      if (!current()) return;
      Object.assign(state, { found, model });
    }
    drawTable();
    root.dataset.run = run;
  };
  if (page.run) follow();
  on("run", follow);
  redrawWhen(root, ["run"], draw);
}
