// A formula beside our own lines that compute it and this run's tensors, for the chosen head and token.

import { declaredFields } from "../../web/fields.js";
import { Switch } from "../../web/controls.js";
import { fieldsOf } from "../../web/link_text.js";
import { headLookedAt, placeAsked } from "../../web/looked_at.js";
import { say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useMemo, useState } from "../../web/preact.js";
import { attentionOf, stackOf } from "../../web/sites.js";
import { page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { Columns, axesText } from "./columns.js";

// What the numbers are of: a head, a layer or a token.
const whatOf = ({ topic, site, head, query, query_label: label }) => {
  const [stack, layer, kind] = site.split(".");
  const values = { layer, head, query, token: html`<${Token} label=${label} />` };
  if (topic === "sampling") return null;
  if (["norm", "feed-forward"].includes(topic)) {
    return sayWith("Layer {layer}, {stack}; token {query} {token}.", {
      ...values,
      stack: stackOf(stack),
    });
  }
  if (topic === "positions" && !page.run.turns) {
    return sayWith("Token {query} {token}, {stack}.", { ...values, stack: stackOf(stack) });
  }
  return sayWith("Layer {layer}, head {head}, {attention}; token {query} {token}.", {
    ...values,
    attention: attentionOf({ stack, kind }),
  });
};

// A symbol, the code that computes it and its numbers light up together: the part that the pointer is
// over, else the one that was chosen.
const useLit = () => {
  const [chosen, choose] = useState(/** @type {string | null} */ (null));
  const [over, pass] = useState(/** @type {string | null} */ (null));
  /** @type {(event: any) => string | null} */
  const partOf = ({ target }) => target.closest("[data-part]")?.dataset.part ?? null;
  const chooseIt = (event) => partOf(event) && choose(partOf(event));
  const clear = () => [choose, pass].forEach((set) => set(null));
  const listeners = {
    onPointerOver: (event) => event.pointerType === "mouse" && pass(partOf(event)),
    onPointerLeave: () => pass(null),
    onFocusIn: chooseIt,
    onClick: chooseIt,
    onKeyDown: ({ key }) => key === "Escape" && clear(),
  };
  return { lit: over ?? chosen, clear, listeners };
};

const Equations = () => {
  const part = usePart();
  const fields = useMemo(() => declaredFields("equations"), []);
  const { lit, clear, listeners } = useLit();
  const of = headLookedAt();
  const wanted = of && { ...of, topic: fields.equation, place: placeAsked() };
  const { answer, asked } = useAnswer(part, "equation", wanted);
  const choose = (topic) => {
    fields.equation = topic;
    clear();
  };
  const tensors = useMemo(() => new Map(answer?.tensors.map((one) => [one.part, one])), [answer]);
  const nameOf = (one) => tensors.get(one)?.name ?? one;
  const found = tensors.get(lit);
  const topics = Object.entries(fieldsOf("equations").equation.options);
  const none = answer && !answer.formula.length;
  const { run, site, head } = asked ?? {};
  const facts = { run, site, head, query: answer?.query, topic: answer?.topic };
  return html`<section class="equations" data-lit=${lit ?? ""} ...${listeners} ...${part.shows(facts)}>
    <${Switch} name="equation" class="equation-topics" title=${say("Formula")} value=${fields.equation}
      options=${topics.map(([topic, title]) => [topic, say(title)])} set=${choose} />
    <p class="equation-of">${answer && whatOf(answer)}</p>
    <p class="equation-says">${answer?.says.join(" ")}</p>
    <p class="hint equation-hint" hidden=${none}>${say("Point at a symbol, a piece of code or a tensor: the same thing lights up in the other two. With the keyboard, arrow keys go from one to the next within a column.")}</p>
    <p class="hint equation-letters" hidden=${none}>${say("B texts, H heads, T tokens (Tq queries, Tk keys), D features of a head, C features of a token, d_ff of its feed-forward, V tokens of the vocabulary.")}</p>
    <p class="equation-lit" role="status">${
      found && [found.name, axesText(found.axes)].filter(Boolean).join(" · ")
    }</p>
    ${answer && html`<${Columns} key=${answer.topic} ...${{ answer, lit, nameOf }} />`}
  </section>`;
};
export const mount = mounted(Equations);
