// The component of views without a script: their controls, pictures and tables are made from their
// declarations in Python, and the controls' values are fields of the page's state.

import { Control } from "../../web/controls.js";
import { Figure } from "../../web/figure.js";
import { say } from "../../web/messages.js";
import { mounted } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { useDeclared, usePicture } from "../../web/view.js";

const Picture = ({ part, picture, view, fields }) => {
  const { answer } = usePicture(part, picture, fields);
  const title = say(picture.title || view.title);
  return html`${answer?.sentence && html`<p>${answer.sentence}</p>`}
    <${Figure} part=${part} name=${picture.name} figure=${answer?.figure} wide=${title} label=${title} />`;
};

const Panel = ({ props }) => {
  const { view, fields, part } = useDeclared(props.view);
  const control = (declared) =>
    html`<${Control} field=${declared.name} ...${{ declared, fields }} />`;
  const picture = (one) => html`<${Picture} picture=${one} ...${{ part, view, fields }} />`;
  return html`<section class="panel" ...${part.attributes({ run: page.run?.run })}>
    ${!props.folded && html`<h3 class="panel-title">${say(view.title)}</h3>`}
    <p class="hint panel-help">${say(view.help)}</p>
    <div class="panel-controls">${Object.values(view.controls).map(control)}</div>
    <div class="panel-pictures">${view.pictures.map(picture)}</div>
  </section>`;
};
export const mount = mounted(Panel);
