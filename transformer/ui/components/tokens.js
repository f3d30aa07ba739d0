// The text as tokens: given and generated, each generated one shaded by its probability.
const viz = window.viz;
const list = element.querySelector(".tokens");
const note = element.querySelector(".token-note");
let facts = null;

const isSpecial = (label) => /^<\|[a-z]+\|>$/.test(label);
const probabilityOf = (index) => facts.probabilities[index - facts.n_prompt];

const describe = (index) => {
  const where = `Token ${index}: ${facts.labels[index]}`;
  if (index < facts.n_prompt) return `${where}, given`;
  return `${where}, generated, probability ${probabilityOf(index).toFixed(3)}`;
};

const dress = (button, index) => {
  const label = facts.labels[index];
  const generated = index >= facts.n_prompt;
  button.className = "token";
  button.classList.toggle("generated", generated);
  button.classList.toggle("special", isSpecial(label));
  button.style.setProperty("--p", generated ? probabilityOf(index).toFixed(3) : "0");
  button.setAttribute("aria-label", describe(index));
  button.replaceChildren(viz.token(label));
  button.dataset.index = String(index);
};

const draw = () => {
  const value = props.value;
  if (!value || !value.labels) return;
  const old = facts;
  facts = value;
  const grows =
    old?.state === "running" &&
    old.labels.length <= facts.labels.length &&
    old.labels.every((label, place) => label === facts.labels[place]);
  const keep = grows ? old.labels.length : 0;
  while (list.children.length > keep) list.lastElementChild.remove();
  for (let index = keep; index < facts.labels.length; index += 1) {
    const slot = viz.el("span", "slot");
    const button = viz.el("button", "token");
    button.type = "button";
    dress(button, index);
    slot.append(button);
    if (facts.labels[index].includes("⏎")) slot.append(viz.el("span", "break"));
    list.append(slot);
  }
  const buttons = tokens();
  viz.rove(buttons, 0);
  element.dataset.state = facts.state;
  element.dataset.run = facts.run ?? "";
  if (facts.state === "done") viz.setRun(facts);
  else mark();
  element.dataset.rev = String(Number(element.dataset.rev ?? 0) + 1);
};
const tokens = () => [...list.querySelectorAll("button.token")];

const mark = () => {
  for (const button of list.querySelectorAll("[aria-pressed=true]")) {
    button.setAttribute("aria-pressed", "false");
  }
  const button = viz.query === null ? null : tokens()[viz.query];
  button?.setAttribute("aria-pressed", "true");
  if (button) viz.rove(tokens(), viz.query);
  note.textContent =
    viz.query === null || !facts?.labels[viz.query]
      ? "Choose a token to see what it reads; arrow keys walk, Esc lets go."
      : describe(viz.query);
};

// What the pointer is over in the large picture: the query that reads and the key that is read.
const light = (cell) => {
  for (const button of list.querySelectorAll(".is-query, .is-key")) {
    button.classList.remove("is-query", "is-key");
  }
  if (!cell) return;
  const all = tokens();
  if (cell.query !== null) all[cell.query]?.classList.add("is-query");
  if (cell.key !== null) all[cell.key]?.classList.add("is-key");
};

list.addEventListener("click", (event) => {
  const button = event.target.closest("button.token");
  if (!button || facts.state !== "done") return;
  const index = Number(button.dataset.index);
  viz.setQuery(viz.query === index && event.detail > 0 ? null : index);
});
list.addEventListener("pointerover", (event) => {
  const button = event.target.closest("button.token");
  if (button && facts.state === "done") viz.emit("point", Number(button.dataset.index));
});
list.addEventListener("pointerleave", () => viz.emit("point", null));
viz.arrowKeys(list, (key, here, count) => {
  const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: count - 1 };
  return key in moves ? moves[key] : null;
});
viz.on("query", mark);
viz.on("light", light);
draw();
watch("value", draw);
