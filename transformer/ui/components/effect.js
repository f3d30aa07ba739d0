// Before and after: what comes next by the intact and the altered network, and their two texts.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".effect");
const box = find("[data-picture=foreseen]");

const narrow = ({ layout }) => {
  const { t, b } = layout.margin;
  layout.height -= t - 40 + b - 50;
  layout.margin = { ...layout.margin, t: 40, b: 50 };
  layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};
const percent = (probability) => `${(100 * probability).toFixed(probability < 0.1 ? 2 : 1)} %`;

const drawForeseen = async (current, run, place) => {
  const answer = await viz.ask(server.next_token, { run, place, dark: viz.dark });
  if (!current()) return;
  find(".effect-title").replaceChildren(`Token ${place}, “`, viz.token(answer.label), "”: what the two expect there");
  const [intact, altered] = [answer.intact[answer.here], answer.altered[answer.here]];
  find(".effect-says").textContent =
    `After the same tokens, the intact network gives it ${percent(intact)}, the altered one ` +
    `${percent(altered)}. Choose a token of the text to look at another place.`;
  await viz.draw(box, answer.figure, { change: narrow });
  Object.assign(root.dataset, { place, intact, altered });
};

const words = (of, labels, from, same) => {
  const box = find(`[data-of=${of}]`);
  const shown = labels.map((label, index) => {
    const token = viz.token(label);
    if (from + index >= same) token.className = "differs";
    return token;
  });
  box.replaceChildren(...(shown.length ? shown : ["(nothing)"]));
};
const drawTexts = async (current, run) => {
  const answer = await viz.ask(server.intact_text, { run });
  if (!current()) return null;
  const { labels, n_prompt: from, same, equal } = answer;
  const written = viz.run.labels.slice(from);
  words("intact", labels.slice(from), from, same);
  words("altered", written, from, same);
  find(".effect-parted").textContent = equal
    ? `Both write the same ${written.length} tokens.`
    : `They part at token ${same}, after ${Math.max(0, same - from)} that both write.`;
  Object.assign(root.dataset, { same, equal });
  return same;
};

const draw = async (current) => {
  if (!viz.run) return;
  const altered = viz.interventions().length > 0;
  root.dataset.generates = viz.generates();
  find(".effect-none").hidden = altered;
  find(".effect-body").hidden = !altered;
  const { run } = viz.run;
  if (altered) {
    const same = await drawTexts(current, run);
    if (!current()) return;
    // Unless a token is chosen: where the texts part.
    const last = viz.run.labels.length - 1;
    await drawForeseen(current, run, viz.chosenPlace() ?? Math.min(same, last));
    if (!current()) return;
  }
  Object.assign(root.dataset, { run });
};
viz.keepDrawn(root, ["run", "query"], draw);
