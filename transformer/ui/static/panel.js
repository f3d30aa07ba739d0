// A view that has no script of its own: its controls, pictures and tables are made from what it
// declares in Python, and its controls' values are fields of the page's state.

import { Control } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useMemo } from "../../web/preact.js";
import { chosenRow, page } from "../../web/store.js";
import { declaredFields } from "../../web/fields.js";
import { say } from "../../web/messages.js";
import { views } from "../../web/declared.js";
import { siteName } from "../../web/sites.js";

// What the page's chosen head and token say of a picture's parameters.
const selection = () => {
  const { run, head, query } = page;
  const position = query && query.stack === run.stack ? query.index : null;
  const step = position === null ? 0 : position - run.n_prompt;
  const last = run.probabilities.length - 1;
  return {
    site: head && siteName(head),
    stack: head?.stack,
    kind: head?.kind,
    layer: head?.layer,
    head: head?.head,
    query: head ? chosenRow(head.stack) : null,
    position,
    step: Math.max(0, Math.min(step, last)),
  };
};

// What a picture is asked with: the controls' values, and what is chosen on the page.
const asked = ({ takes, parameters }, view, fields) => {
  if (!page.run) return null;
  const chosen = selection();
  const values = {};
  for (const { name, use } of parameters) {
    const field = Object.keys(view.controls).find((one) => view.controls[one].name === name);
    if (field !== undefined) values[name] = fields[field];
    else if (use === "selection" && chosen[name] !== undefined) values[name] = chosen[name];
  }
  const subject = takes === "model" ? { model: page.run.model } : { run: page.run.run };
  return { ...subject, ...values };
};

const Picture = ({ part, picture, view, fields }) => {
  const { answer } = useAnswer(part, picture.name, asked(picture, view, fields));
  const title = say(picture.title || view.title);
  return html`<${Figure} part=${part} name=${picture.name} figure=${answer?.figure}
    wide=${title} label=${title} />`;
};

const Panel = ({ props }) => {
  const view = views.find(({ name }) => name === props.view);
  const fields = useMemo(() => declaredFields(view.name), []);
  const part = usePart();
  const control = ([field, declared]) => html`<${Control} ...${{ field, declared, fields }} />`;
  const picture = (one) => html`<${Picture} picture=${one} ...${{ part, view, fields }} />`;
  return html`<section class="panel" ...${part.attributes({ run: page.run?.run })}>
    ${!props.folded && html`<h3 class="panel-title">${say(view.title)}</h3>`}
    <p class="hint panel-help">${say(view.help)}</p>
    <div class="panel-controls">${Object.entries(view.controls).map(control)}</div>
    <div class="panel-pictures">${view.pictures.map(picture)}</div>
  </section>`;
};
export const mount = mounted(Panel);
