// What breaks: a switch for each idea of the architecture, its cost, and the visitor's text without it.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".breaks");
// found: the server's rows, without losses until somebody has measured them. texts: by switch, the
// tokens of this run's prompt going on without it. at: how many texts have been asked for.
const state = { found: null, model: null, texts: new Map(), at: null };

const isOff = (what) => viz.interventions().some((one) => one.type === "break" && one.what === what);
const flip = (what) => {
  const others = viz.interventions().filter((one) => one.type !== "break" || one.what !== what);
  viz.alter(isOff(what) ? others : [...others, { type: "break", what }]);
};

const cell = (tag, className, ...content) => {
  const made = viz.el(tag, className);
  made.append(...content);
  return made;
};
// The bar ends where the network says nothing any more: all tokens alike.
const cost = (loss) => {
  const { intact, even } = state.found;
  if (loss === null || intact === null) return cell("td", "cost", "–");
  const more = loss - intact;
  const share = Math.max(0, more / (even - intact));
  const made = cell("td", "cost number", `${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(3)}`, viz.el("i"));
  made.classList.toggle("beyond", share > 1);
  made.lastElementChild.style.width = `${100 * Math.min(1, share)}%`;
  return made;
};
const goesOn = (what) => {
  const tokens = state.texts.get(what);
  if (!tokens) return cell("td", "goes-on", "–");
  return cell("td", "goes-on", ...(tokens.length ? tokens.map(viz.token) : ["(nothing)"]));
};
const line = (what, first, why, loss, more) => {
  const row = viz.el("tr");
  row.dataset.what = what ?? "";
  row.append(
    cell("th", "", first), cell("td", "why", why),
    cell("td", "number", loss === null ? "–" : loss.toFixed(3)), more, goesOn(what),
  );
  row.firstElementChild.scope = "row";
  return row;
};
const lineOf = ({ what, says, why, loss }) => {
  const button = viz.el("button", "break-switch", says);
  button.setAttribute("aria-pressed", String(isOff(what)));
  button.addEventListener("click", () => flip(what));
  return line(what, button, why, loss, cost(loss));
};
const drawTable = () => {
  const { rows, intact } = state.found;
  const focused = document.activeElement?.closest?.(".breaks-table tr")?.dataset.what;
  find("tbody").replaceChildren(
    line(null, "nothing: intact", "The network as it was trained.", intact, cell("td", "cost", "–")),
    ...rows.map(lineOf),
  );
  if (focused) find(`tr[data-what="${focused}"] button`)?.focus({ preventScroll: true });
  const { about, n_texts: count, even } = state.found;
  find(".breaks-about").textContent = about === null
    ? "This model has no sample of text to measure a loss on."
    : `The loss is over a sample of ${count} texts. ${about} A bar that fills its column is a network that ` +
      `finds all tokens alike likely (${even.toFixed(2)} nats); one with a double end is worse than that.`;
  find(".measure").hidden = about === null || intact !== null;
  find(".texts").disabled = state.at !== null;
  Object.assign(root.dataset, { measured: intact !== null, texts: state.texts.size });
};
const say = (text) => (find(".breaks-says").textContent = text);

find(".measure").addEventListener("click", async () => {
  const { model } = viz.run;
  say("Measuring each in turn …");
  find(".measure").disabled = true;
  try {
    const found = await viz.ask(server.broken, { model, measure: true });
    if (viz.run.model === model) state.found = found;
    say("");
  } catch (error) {
    say("");
    viz.say(error.message);
  }
  find(".measure").disabled = false;
  drawTable();
});

// One text after the other; a new run ends it.
find(".texts").addEventListener("click", async () => {
  const { run } = viz.run;
  const switches = [null, ...state.found.rows.map(({ what }) => what)];
  try {
    for (const [place, what] of switches.entries()) {
      state.at = place;
      say(`Text ${place + 1} of ${switches.length} …`);
      const { labels } = await viz.ask(server.broken_text, { run, what });
      if (viz.run.run !== run) return;
      state.texts.set(what, labels);
      drawTable();
    }
    say("Each of them alone, at most 24 tokens.");
  } catch (error) {
    say("");
    viz.say(error.message);
  }
  state.at = null;
  drawTable();
});

const forget = () => {
  Object.assign(state, { texts: new Map(), at: null });
  say("");
};
const draw = async (current) => {
  if (!viz.run) return;
  root.dataset.generates = viz.generates();
  const { model, run } = viz.run;
  if (state.model !== model || state.found?.intact === null) {
    const found = await viz.ask(server.broken, { model });
    if (!current()) return;
    Object.assign(state, { found, model });
  }
  drawTable();
  root.dataset.run = run;
};
viz.on("run", forget);
viz.keepDrawn(root, ["run"], draw);
