// What is to be trained: the controls that the view declares, and the recorded training of each task.

import { declaredFields } from "../../ui/static/fields.js";
import { fieldsOf } from "../../ui/static/schema.js";
import { Control } from "../../web/controls.js";
import { html, render } from "../../web/preact.js";

// Puts the controls into `box`. chosen(task) follows another choice of the task, and shown(task) a
// link that says what stands here. Returns plan(), what stands there, and show(plan).
export const planControls = (box, chosen, shown) => {
  const declared = Object.entries(fieldsOf("learn"));
  const [[task, { default: first }]] = declared;
  let before = first;
  const fields = declaredFields("learn", (now) => {
    if (now[task] !== before) shown((before = now[task]));
  });
  const follow = () => {
    if (fields[task] !== before) chosen(fields[task]);
    before = fields[task];
  };
  const Controls = () =>
    declared.map(
      ([field, one]) =>
        html`<${Control} key=${field} declared=${one} changed=${follow} ...${{ field, fields }} />`,
    );
  render(html`<${Controls} />`, box);

  const plan = () => Object.fromEntries(declared.map(([field, { name }]) => [name, fields[field]]));
  const show = (values) => {
    for (const [field, { name }] of declared) fields[field] = values[name];
    before = fields[task];
  };
  return { plan, show };
};
