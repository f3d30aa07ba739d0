// The text as tokens: given and generated, each generated one shaded by its probability; and, for a
// translator, the source that its encoder reads.

import { el, finder, onArrowKeys, setTabStop, tokenElement } from "./dom.js";
import { numeral, say } from "./messages.js";
import { emit, on, page, sameToken, setQuery, setRun } from "../../web/store.js";
import { connectPlay } from "./play.js";
import { textShade } from "./text_shade.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, props, watch }) {
  const find = finder(element);
  const list = find(".text-tokens");
  const sourceList = find(".source-tokens");
  const [says, note] = [find(".token-says"), find(".token-note")];
  /** @type {any} */
  let facts = null;

  const isSpecial = (label) => /^<\|[a-z]+\|>$/.test(label);
  const translates = () => facts.source_labels.length > 0;
  const ownStack = () => facts.stack ?? "decoder";
  const labelsOf = (stack) => (stack === ownStack() ? facts.labels : facts.source_labels);
  const listOf = (stack) => (stack === ownStack() ? list : sourceList);
  const tokens = (box) => [...box.querySelectorAll("button.token")];
  const probabilityOf = (index) => facts.probabilities[index - facts.n_prompt];

  const describe = ({ stack, index }) => {
    const told = { place: index, token: labelsOf(stack)[index] };
    if (stack !== ownStack()) return say("Source token {place}: {token}, given", told);
    if (index < facts.n_prompt) return say("Token {place}: {token}, given", told);
    return say("Token {place}: {token}, generated, probability {probability}", {
      ...told,
      probability: numeral(probabilityOf(index).toFixed(3)),
    });
  };

  const makeToken = (stack, index) => {
    const label = labelsOf(stack)[index];
    const button = el("button", "token");
    const generated = stack === ownStack() && index >= facts.n_prompt;
    button.classList.toggle("generated", generated);
    button.classList.toggle("special", isSpecial(label));
    button.style.setProperty("--p", generated ? probabilityOf(index).toFixed(3) : "0");
    button.setAttribute("aria-label", describe({ stack, index }));
    button.append(...tokenElement(label).childNodes);
    Object.assign(button.dataset, { stack, index });
    return button;
  };

  const fill = (stack, keep) => {
    const box = listOf(stack);
    while (box.children.length > keep) box.lastElementChild.remove();
    labelsOf(stack)
      .slice(keep)
      .forEach((label, place) => {
        const token = makeToken(stack, keep + place);
        if (!label.includes("⏎")) return box.append(token);
        const slot = el("span", "slot"); // one child a token, a line's end with it
        slot.append(token, el("span", "break"));
        box.append(slot);
      });
    setTabStop(tokens(box), 0);
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
    find(".source").hidden = !translates();
    find(".text-title").textContent = translates()
      ? say("Translation, token by token")
      : say("Text, token by token");
    fill(ownStack(), grows ? old.labels.length : 0);
    if (translates()) fill("encoder", 0);
    element.dataset.state = facts.state;
    element.dataset.run = facts.run ?? "";
    // The framework gives a finished run twice: the page hears of it once.
    if (facts.state === "done" && facts.run !== page.run?.run) setRun(facts);
    else mark();
    element.dataset.rev = String(Number(element.dataset.rev ?? 0) + 1);
  };

  const mark = () => {
    for (const button of element.querySelectorAll("[aria-pressed=true]")) {
      button.setAttribute("aria-pressed", "false");
    }
    const chosen = page.query;
    const box = chosen && listOf(chosen.stack);
    const button = box && tokens(box)[chosen.index];
    button?.setAttribute("aria-pressed", "true");
    if (button) setTabStop(tokens(box), chosen.index);
    note.textContent = button
      ? say("{token}. Esc lets go.", { token: describe(chosen) })
      : say("Point at a token, tap it, or use the arrow keys: the text then shows what it reads.");
    if (button) requestAnimationFrame(() => keepInSight(box, button)); // the page is laid out by then
    shade(chosen);
  };

  // A long text scrolls in its own box, and the page stays where it is.
  const keepInSight = (box, button) => {
    const [top, bottom] = [button.offsetTop - box.offsetTop, box.scrollTop + box.clientHeight];
    if (top >= box.scrollTop && top + button.offsetHeight <= bottom) return;
    box.scrollTop = top - box.clientHeight / 2;
  };

  const shade = textShade(
    element,
    (stack) => (facts.state === "done" ? tokens(listOf(stack)) : []),
    (sentence) => {
      says.replaceChildren(...sentence);
      says.hidden = sentence.length === 0;
    },
  );

  // What the pointer is over in the large picture: the query that reads and the key that is read.
  const light = (cell) => {
    for (const button of element.querySelectorAll(".is-query, .is-key")) {
      button.classList.remove("is-query", "is-key");
    }
    for (const [part, name] of [
      ["query", "is-query"],
      ["key", "is-key"],
    ]) {
      const at = cell?.[part];
      if (at) tokens(listOf(at.stack))[at.index]?.classList.add(name);
    }
  };

  const placeOf = (event) => {
    const button = event.target.closest("button.token");
    if (!button || facts.state !== "done") return null;
    return { stack: button.dataset.stack, index: Number(button.dataset.index) };
  };
  for (const box of [list, sourceList]) {
    box.addEventListener("click", (event) => {
      const place = placeOf(event);
      if (!place) return;
      // A second click lets go; the second half of a double click does not, nor does a key.
      const lets = sameToken(page.query, place) && event.detail === 1;
      if (!lets) emit("choose", place);
      setQuery(lets ? null : place);
    });
    box.addEventListener("pointerover", (event) => {
      const place = placeOf(event);
      if (!place) return;
      emit("point", place);
      shade(place);
    });
    box.addEventListener("pointerleave", () => {
      emit("point", null);
      shade(page.query);
    });
    onArrowKeys(box, (key, here, count) => {
      const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: count - 1 };
      return key in moves ? moves[key] : null;
    });
  }
  connectPlay(find, () => tokens(list));
  on("query", mark);
  on("reading", () => page.query && shade(page.query, true)); // another head or picture was chosen
  on("show", (shown) => {
    props.value = shown;
    draw();
  });
  on("light", light);
  draw();
  watch("value", draw);
}
