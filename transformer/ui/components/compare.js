// Two runs side by side: A is the shown one, B another of this visit.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".compare");
const BAR_PX = 22; // the least that a token's label needs
const WIDEST_PX = 720; // of the difference of two heads
// b: the run that is B, picked: by the visitor. head, other: what of A and of B is drawn, {stack, layer, kind, head}.
const state = { b: null, picked: false, gone: new Set(), head: null, other: null };
const other = () => viz.entry(state.b)?.facts ?? null;
const pair = () => ({ run: viz.run.run, other: state.b });

// ---- which two ----

const drawChoice = async (current) => {
  if (!viz.run) return;
  const runs = viz.history.map(({ facts }) => facts.run);
  const { kept } = await viz.ask(server.kept, { runs });
  if (!current()) return;
  state.gone = new Set(runs.filter((_, place) => !kept[place]));
  const others = viz.history.filter(({ facts }) => facts.run !== viz.run.run).reverse();
  const there = others.filter(({ facts }) => !state.gone.has(facts.run));
  state.picked &&= there.some(({ facts }) => facts.run === state.b);
  const same = there.find(({ facts }) => facts.model === viz.run.model);
  if (!state.picked) state.b = same?.facts.run ?? null; // the one before
  const shown = viz.entry(viz.run.run);
  find(".compare-a").replaceChildren(viz.el("bdi", "", shown ? viz.runName(shown) : ""));
  const none = viz.el("option", "", "choose a run");
  none.value = "";
  find(".compare-b").replaceChildren(...(state.b ? [] : [none]), ...others.map((entry) => {
    const gone = state.gone.has(entry.facts.run);
    const option = viz.el("option", "", viz.runName(entry) + (gone ? " – no longer kept" : ""));
    Object.assign(option, { value: entry.facts.run, disabled: gone, selected: entry.facts.run === state.b });
    return option;
  }));
  find(".compare-head").hidden = !others.length;
  find(".compare-body").hidden = !state.b;
  find(".compare-none").hidden = others.length > 0;
  Object.assign(root.dataset, { run: viz.run.run, other: state.b ?? "" });
  if (!state.b) return;
  takeHead(viz.head);
  viz.emit("pair");
};
const choose = (run) => {
  Object.assign(state, { b: run, picked: true });
  refresh();
};
find(".compare-b").addEventListener("change", (event) => choose(event.target.value));
viz.on("compare", (run) => {
  choose(run);
  root.scrollIntoView({ block: "start" });
});
const whenPair = (draw) => async (current) => (viz.run && state.b && state.b !== viz.run.run ? draw(current) : undefined);

// ---- tokens ----

const SAID = { equal: "in both", replaced: "replaced", "only A": "only in A", "only B": "only in B" };
const sideOf = (name, label) => {
  const made = viz.el("span", `side side-${name.toLowerCase()}`);
  made.append(viz.el("i", "", name), viz.token(label));
  return made;
};
const pairOf = ({ name, a, b }, [inA, inB, how]) => {
  const chooses = name === "text" && inA !== null;
  const made = viz.el(chooses ? "button" : "span", `pair ${how.replace(" ", "-").toLowerCase()}`);
  if (how === "equal") made.append(viz.token(a[inA]));
  else made.append(...(inA === null ? [] : [sideOf("A", a[inA])]), ...(inB === null ? [] : [sideOf("B", b[inB])]));
  if (chooses) {
    made.addEventListener("click", () => viz.setQuery({ stack: viz.run.stack, index: inA }));
  }
  const item = viz.el("li");
  item.append(made);
  return item;
};
const listOf = (text, many) => {
  const box = viz.el("div", "compare-text");
  const counts = Object.entries(SAID).filter(([how]) => text.counts[how]).map(([how, said]) => `${text.counts[how]} ${said}`);
  const list = viz.el("ul", "pairs");
  list.setAttribute("aria-label", many ? `Tokens of the ${text.name} of both` : "Tokens of both");
  list.append(...text.pairs.map((one) => pairOf(text, one)));
  box.append(viz.el("p", "hint", `${many ? `${text.name[0].toUpperCase()}${text.name.slice(1)}: ` : ""}${counts.join(", ")}.`), list);
  return box;
};
const drawTexts = whenPair(async (current) => {
  const wanted = pair();
  const { texts } = await viz.ask(server.compare, wanted);
  if (!current()) return;
  find(".compare-lists").replaceChildren(...texts.map((text) => listOf(text, texts.length > 1)));
  Object.assign(find(".compare-texts").dataset, wanted);
});

// ---- how likely each token was ----

const outcomes = find("[data-picture=outcomes]");
const numbersOf = ({ data: [bars], layout }) => ({
  rows: layout.meta.labels.map((label, place) => `${layout.meta.pairs[place][0]} ${label}`),
  columns: ["in A", "in B", "B − A"],
  value: (row, column) => [...bars.customdata[row], bars.customdata[row][1] - bars.customdata[row][0]][column].toFixed(4),
  corner: "token",
});
const drawOutcomes = whenPair(async (current) => {
  const wanted = pair();
  const answer = await viz.ask(server.outcomes, { ...wanted, dark: viz.dark });
  if (!current()) return;
  const box = find(".compare-outcomes");
  find(".compare-drawn").hidden = Boolean(answer.none);
  find(".compare-says").textContent = answer.none ? `There is nothing to draw: ${answer.none}.` : "";
  if (!answer.none) {
    const change = ({ layout }) => {
      layout.width = Math.max(find(".compare-drawn").clientWidth, 80 + BAR_PX * layout.meta.labels.length);
      layout.height -= layout.margin.t - 16;
      layout.margin = { ...layout.margin, t: 16 };
      layout.dragmode = false;
    };
    const on = {
      plotly_click: ({ points }) =>
        viz.setQuery({ stack: viz.run.stack, index: outcomes.layout.meta.pairs[Math.round(points[0].x)][0] }),
    };
    await viz.draw(outcomes, answer.figure, { change, on, table: numbersOf });
  }
  Object.assign(box.dataset, wanted);
});

// ---- what each weighed at the chosen token ----

// The chosen token if A generated it, else the first one that A generated.
const placeOfA = () => {
  const at = viz.query?.stack === viz.run.stack ? viz.query.index : -1;
  return at >= viz.run.n_prompt ? at : viz.run.n_prompt;
};
const slim = ({ layout }) => {
  layout.height -= layout.margin.t - 40;
  layout.margin = { ...layout.margin, t: 40 };
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
  if (layout.width < 480) layout.xaxis.nticks = 3;
};
const drawWeighed = whenPair(async (current) => {
  const wanted = { ...pair(), place: placeOfA() };
  const answer = await viz.ask(server.weighed, { ...wanted, dark: viz.dark });
  if (!current()) return;
  const [title, box] = [find(".weighed-title"), find("[data-picture=weighed]")];
  box.hidden = Boolean(answer.none);
  if (box.vizTable) box.vizTable.hidden = box.hidden;
  if (answer.none) title.textContent = `What each weighed at token ${wanted.place} of A: ${answer.none}.`;
  else {
    const [a, b] = answer.labels;
    const [inA, inB] = answer.places;
    title.replaceChildren(
      `What each weighed: token ${inA} of A, which became “`, viz.token(a), `”, and ${inB} of B, “`, viz.token(b), "”",
    );
    await viz.draw(box, answer.figure, { change: slim, table: bothOf });
  }
  Object.assign(find(".compare-weighed").dataset, wanted);
});
const bothOf = ({ data, layout: { meta } }) => ({
  rows: meta.labels,
  columns: ["A", "B"],
  value: (row, column) => data[column].customdata[row],
  corner: "next token",
});

// ---- attention ----

const { options, sitesOf, siteName } = viz;
const alike = (a, b) => a.n_heads === b.n_heads && sitesOf(a).map(siteName).join() === sitesOf(b).map(siteName).join();
const headsOf = ({ n_heads: count }) => [...Array.from({ length: count }, (_, head) => [head, String(head)]), ["mean", "mean of all"]];
const inWords = (site) => [siteName(site), `${site.stack} ${site.kind}, layer ${site.layer}`];
const nearest = (facts, { stack, layer, kind, head }) => {
  const sites = sitesOf(facts);
  const found = sites.find((site) => siteName(site) === siteName({ stack, layer, kind })) ??
    sites.find((site) => site.kind === kind) ?? sites[0];
  return { ...found, head: head === "mean" || head < facts.n_heads ? head : 0 };
};
// The head that the page looks at becomes A's, and B's as far as it has such a one.
const takeHead = (head) => {
  if (!head || !other()) return;
  state.head = nearest(viz.run, head);
  state.other = nearest(other(), alike(viz.run, other()) || !state.other ? state.head : state.other);
  drawPickers();
};
const drawPickers = () => {
  const [b, same] = [other(), alike(viz.run, other())];
  options(find(".pick-site"), sitesOf(viz.run).map(inWords), siteName(state.head));
  options(find(".pick-of-heads"), headsOf(viz.run), state.head.head);
  options(find(".pick-other-site"), sitesOf(b).map(inWords), siteName(state.other));
  options(find(".pick-other-heads"), headsOf(b), state.other.head);
  for (const label of element.querySelectorAll(".of-b")) label.hidden = same;
};
const picked = (site, heads, facts) => ({
  ...sitesOf(facts)[find(site).selectedIndex],
  head: find(heads).value === "mean" ? "mean" : Number(find(heads).value),
});
const pick = () => {
  state.head = picked(".pick-site", ".pick-of-heads", viz.run);
  state.other = alike(viz.run, other()) ? state.head : picked(".pick-other-site", ".pick-other-heads", other());
  drawPickers();
  if (state.head.head !== "mean") viz.setHead(state.head);
  refreshDifference();
};
for (const name of [".pick-site", ".pick-of-heads", ".pick-other-site", ".pick-other-heads"]) {
  find(name).addEventListener("change", pick);
}
const share = (part) => `${(100 * part).toFixed(1)} %`;
const drawDifference = whenPair(async (current) => {
  if (!state.head) takeHead(viz.head);
  if (!state.head) return;
  const { head, other: second } = state;
  const wanted = { ...pair(), site: siteName(head), head: head.head, other_site: siteName(second), other_head: second.head };
  const answer = await viz.ask(server.difference, { ...wanted, dark: viz.dark });
  if (!current()) return;
  const box = find("[data-picture=difference]");
  box.hidden = Boolean(answer.none);
  if (box.vizTable) box.vizTable.hidden = box.hidden;
  Object.assign(find(".compare-attention").dataset, wanted);
  if (answer.none) return void (find(".difference-says").textContent = `There is nothing to draw: ${answer.none}.`);
  const side = { width: Math.min(WIDEST_PX, box.clientWidth), height: WIDEST_PX };
  const { layout: { meta } } = await viz.draw(box, answer.figure, { fit: { side, bar: true } });
  find(".difference-says").textContent =
    `Orange: read more in B; blue: more in A. Colours from ${(-meta.limit).toPrecision(3)} to ${meta.limit.toPrecision(3)}. ` +
    `Of all weight of these rows, ${share(meta.kept[0])} in A and ${share(meta.kept[1])} in B is on tokens of both.`;
});
viz.on("head", (head) => {
  if (!state.b || (state.head && head && siteName(head) === siteName(state.head) && head.head === state.head.head)) return;
  takeHead(head);
  refreshDifference();
});

const refresh = viz.keepDrawn(root, ["run"], drawChoice);
viz.keepDrawn(find(".compare-texts"), ["pair"], drawTexts);
viz.keepDrawn(find(".compare-outcomes"), ["pair"], drawOutcomes);
viz.keepDrawn(find(".compare-weighed"), ["pair", "query"], drawWeighed);
const refreshDifference = viz.keepDrawn(find(".compare-attention"), ["pair"], drawDifference);
