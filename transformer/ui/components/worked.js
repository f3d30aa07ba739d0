// One row of attention, worked out in float64 from q, K, V and the mask, and held against what the
// network recorded.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const root = find(".worked");
const picture = find("[data-picture=worked]");
const MOST_ROWS = 32; // lines of the table; the other keys are summed in one
const PAUSE_MS = 200; // the large heatmap goes first
const NARROW_PX = 640;
let shown = null; // {row, sums, chosen}: what the page shows now

// ---- the arithmetic ----

const decode = (answer) => ({
  ...answer,
  q: viz.floats(answer.q),
  keys: viz.floats(answer.keys),
  values: viz.floats(answer.values),
  allowed: viz.bytes(answer.allowed),
  scores: viz.floats(answer.scores),
  weights: viz.floats(answer.weights),
});

// Numbers in JavaScript are float64. Returns every step for each key, and the output (D).
const reckon = ({ q, keys, values, allowed }) => {
  const [size, count] = [q.length, allowed.length];
  const dots = Array.from({ length: count }, (_, key) => {
    let sum = 0;
    for (let d = 0; d < size; d += 1) sum += q[d] * keys[key * size + d];
    return sum;
  });
  const scores = dots.map((dot) => dot / Math.sqrt(size));
  const open = allowed.some(Boolean); // a row with nothing allowed is uniform, as in the network
  const masked = scores.map((score, key) => (allowed[key] ? score : open ? -Infinity : 0));
  const largest = masked.reduce((a, b) => Math.max(a, b));
  const exps = masked.map((score) => Math.exp(score - largest));
  const total = exps.reduce((a, b) => a + b, 0);
  const weights = exps.map((part) => part / total);
  const output = Array.from(q, (_, d) =>
    weights.reduce((sum, weight, key) => sum + weight * values[key * size + d], 0));
  return { dots, scores, largest, exps, total, weights, output };
};

const apart = (mine, theirs) => mine.reduce((most, value, place) => Math.max(most, Math.abs(value - theirs[place])), 0);

// ---- numbers as text ----

const text = (value, digits = 3) => value.toFixed(digits).replace("-", "−");
const factor = (value, digits = 3) => (value < 0 ? `(${text(value, digits)})` : text(value, digits));
const { tiny } = viz;
const small = (value) => (value > 0 && value < 0.0005 ? tiny(value) : text(value));

const agreement = ({ scores, weights, tolerance }, sums) => {
  const [byScore, byWeight] = [apart(sums.scores, scores), apart(sums.weights, weights)];
  const span = Math.max(1, ...sums.scores.map(Math.abs));
  const agrees = byScore < tolerance * span && byWeight < tolerance;
  const box = find(".agreement");
  box.classList.toggle("disagrees", !agrees);
  const verdict = `${byWeight < tolerance ? "" : "not "}below ${tolerance.toExponential(0).replace("-", "−")}`;
  box.textContent = (agrees ? "" : "This does not agree with the network. ")
    + `Largest difference to the network's own weights: ${tiny(byWeight)}, ${verdict}; `
    + `to its own scores: ${tiny(byScore)}.`;
  Object.assign(root.dataset, { agrees, weightDifference: byWeight, scoreDifference: byScore });
};

// ---- the table, a line a key ----

const line = (cells, className) => {
  const made = viz.el("tr", className);
  made.append(...cells);
  return made;
};
const header = (content, scope) => {
  const made = viz.el(content ? "th" : "td"); // nothing to say: an empty corner
  if (content) made.scope = scope;
  made.append(...[content].flat());
  return made;
};
// widest: the weight of the longest bar.
const bar = (weight, widest) => {
  const [cell, fill] = [viz.el("td", "weight-bar"), viz.el("span")];
  fill.style.width = `${((100 * weight) / widest).toFixed(1)}%`;
  cell.append(fill);
  return cell;
};

const keyLine = (key, widest) => {
  const { row, sums } = shown;
  const button = viz.el("button");
  button.append(viz.token(row.key_labels[key]));
  button.setAttribute("aria-label", `Work out key ${key}: ${row.key_labels[key]}`);
  button.addEventListener("click", () => choose(key));
  const numbers = [
    text(sums.dots[key]), text(sums.scores[key]), row.allowed[key] ? "+ 0" : "−∞",
    small(sums.exps[key]), small(sums.weights[key]),
  ].map((value) => viz.el("td", "", value));
  const name = header([viz.el("small", "", `${key} `), button], "row");
  const made = line([name, ...numbers, bar(sums.weights[key], widest)], row.allowed[key] ? "" : "is-hidden");
  made.dataset.key = key;
  return made;
};

const restLine = (rest, weight, widest) => {
  const { row, sums } = shown;
  const sum = (values) => rest.reduce((total, key) => total + values[key], 0);
  const hidden = rest.filter((key) => !row.allowed[key]).length;
  const name = `the other ${rest.length} keys${hidden ? `, ${hidden} of them hidden` : ""}`;
  const cells = ["", "", "", small(sum(sums.exps)), small(weight)].map((value) => viz.el("td", "", value));
  return line([header(name, "row"), ...cells, bar(weight, widest)], "is-rest");
};

const drawTable = () => {
  const { row, sums } = shown;
  const all = sums.weights.map((_, key) => key);
  const best = [...all].sort((a, b) => sums.weights[b] - sums.weights[a] || a - b);
  const most = new Set(best.slice(0, MOST_ROWS));
  const rest = all.filter((key) => !most.has(key));
  const [table, head, body] = [viz.el("table"), viz.el("thead"), viz.el("tbody")];
  const names = ["key", "q·k", `÷ √${row.q.length}`, "mask", "exp", "weight", ""];
  head.append(line(names.map((name) => header(name, "col"))));
  const left = rest.reduce((total, key) => total + sums.weights[key], 0);
  const widest = Math.max(sums.weights[best[0]], left);
  body.append(...all.filter((key) => most.has(key)).map((key) => keyLine(key, widest)));
  if (rest.length) body.append(restLine(rest, left, widest));
  const sum = ["", "", "", text(sums.total), text(sums.weights.reduce((a, b) => a + b, 0)), ""];
  body.append(line([header("sum", "row"), ...sum.map((value) => viz.el("td", "", value))], "is-sum"));
  table.append(head, body);
  find(".row-table").replaceChildren(table);
  choose(best[0]);
};

// ---- the formulas of one key, with its numbers ----

// The first products of two rows of numbers, and the last: "0.12·0.40 + … + 0.31·(−0.20)".
const products = (left, right, digits) => {
  const terms = Array.from(left, (value, place) => `${factor(value, digits)}·${factor(right[place], digits)}`);
  return (terms.length > 4 ? [...terms.slice(0, 3), "…", terms.at(-1)] : terms).join(" + ");
};
const step = (says, formula) => {
  const made = viz.el("li", "", says);
  made.append(viz.el("span", "reckoning", formula));
  return made;
};

const choose = (key) => {
  shown.chosen = key;
  const { row, sums } = shown;
  const size = row.q.length;
  for (const made of element.querySelectorAll(".row-table tr[data-key]")) {
    const here = Number(made.dataset.key) === key;
    made.classList.toggle("is-chosen", here);
    made.querySelector("button").setAttribute("aria-pressed", String(here));
  }
  find(".steps-title").replaceChildren(`With the numbers of key ${key}: `, viz.token(row.key_labels[key]));
  const ofKey = row.keys.subarray(key * size, (key + 1) * size);
  const [dot, score] = [text(sums.dots[key]), text(sums.scores[key])];
  const order = sums.weights.map((_, place) => place).sort((a, b) => sums.weights[b] - sums.weights[a]);
  const mix = order.filter((place) => sums.weights[place] > 0);
  const allowed = row.allowed[key];
  const hidden = "the mask hides this key: score −∞, e to the −∞ = 0";
  find(".row-steps").replaceChildren(
    step(`Agreement, the sum of ${size} products: q·k = `, `${products(row.q, ofKey, 2)} = ${dot}`),
    step("Divided by the root of the head's size: ", `${dot} / √${size} = ${score}`),
    step("Mask: ", allowed ? `${score} + 0 = ${score}, this key may be read` : hidden),
    step("Exponential, the largest score taken off first: ", allowed
      ? `e^(${score} − ${factor(sums.largest)}) = ${small(sums.exps[key])}` : "0"),
    step("Weight, its share of the sum: ", `${small(sums.exps[key])} / ${text(sums.total)} = ${small(sums.weights[key])}`),
    step(
      `Output, dimension 0: the values' dimension 0, weighed (${mix.length} keys, largest weight first): `,
      `${products(mix.map((place) => sums.weights[place]), mix.map((place) => row.values[place * size]), 3)} = ${text(sums.output[0])}`,
    ),
  );
  root.dataset.key = key;
};

// ---- drawing ----

// What the picture shows, as one table: q, each key with its score and weight, and the output.
const pictured = () => {
  const { row, sums } = shown;
  const size = row.q.length;
  const ofKey = (label, key) => ({
    name: `key ${key} ${label}`,
    first: [sums.scores[key].toFixed(4), `${sums.weights[key].toFixed(4)}${row.allowed[key] ? "" : ", hidden"}`],
    vector: row.keys.subarray(key * size, (key + 1) * size),
  });
  const lines = [
    { name: `q, query ${row.query} ${row.query_label}`, first: ["", ""], vector: row.q },
    ...row.key_labels.map(ofKey),
    { name: "output", first: ["", ""], vector: sums.output },
  ];
  const valueOf = ({ first, vector }, column) => first[column] ?? vector[column - first.length].toFixed(4);
  return {
    rows: lines.map(({ name }) => name),
    columns: ["score", "weight", ...Array.from(row.q, (_, dimension) => `dimension ${dimension}`)],
    value: (line, column) => valueOf(lines[line], column),
    corner: "vector",
  };
};

// Titles are the page's own; on a phone the scores are left to the table.
const fitted = ({ layout, data }) => {
  layout.height -= layout.margin.t - 8;
  layout.margin.t = 8;
  for (const name of ["xaxis3", "xaxis4", "xaxis5"]) layout[name].title.font = { size: 14 };
  if (picture.clientWidth >= NARROW_PX) return;
  layout.margin.l = 50; // and what the labels need
  for (const name of ["yaxis", "yaxis2", "yaxis5"]) viz.shortLabels(layout[name]);
  layout.xaxis.title.text = "dimension";
  data[2].visible = false;
  layout.xaxis3.visible = false;
  layout.annotations = layout.annotations.filter(({ text: says }) => !says.startsWith("q·k"));
  for (const heading of layout.annotations) heading.text = heading.text.replace("colours from ", "");
  layout.annotations.find(({ text: says }) => says === "softmax").x = 0.76;
  for (const name of ["xaxis", "xaxis2", "xaxis5"]) layout[name].domain = [0, 0.66];
  Object.assign(layout.xaxis4, { domain: [0.76, 1], nticks: 2, tickangle: 0 });
};

const draw = async (current) => {
  await new Promise((done) => setTimeout(done, PAUSE_MS));
  if (!current() || !viz.run || !viz.head) return;
  const { stack, kind, layer, head } = viz.head;
  const there = viz.run.kinds.find((one) => one.stack === stack && one.kind === kind);
  if (!there || layer >= there.n_layers || head >= viz.run.n_heads) return; // of the model before
  const site = viz.siteName(viz.head);
  const answer = await viz.ask(server.worked, {
    run: viz.run.run, site, head, query: viz.chosenRow(stack), dark: viz.dark,
  });
  if (!current()) return;
  const row = decode(answer);
  shown = { row, sums: reckon(row), chosen: 0 };
  find(".worked-title").replaceChildren(
    `One row, worked out: layer ${layer}, head ${head}, query ${row.query} `, viz.token(row.query_label),
  );
  agreement(row, shown.sums);
  drawTable();
  find(".worked-both").hidden = false;
  picture.setAttribute("aria-label", `q, the keys, scores, weights and output of query ${row.query}`);
  await viz.draw(picture, answer.figure, { change: fitted, table: pictured });
  Object.assign(root.dataset, { run: viz.run.run, site, head, query: row.query });
};
viz.keepDrawn(root, ["run", "head", "query"], draw);
