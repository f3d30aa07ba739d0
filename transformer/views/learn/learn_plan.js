// What is to be trained: the controls that the view declares, and the recorded training of each task.

import { fieldsOf } from "../../ui/static/schema.js";
import { oneOf } from "../../ui/static/link_text.js";
import { ownFields } from "../../ui/static/fields.js";
import { controlOf, textOf, valueOf } from "../../ui/static/panel.js";

// Puts the controls into `box`. chosen(task) follows another choice of the task, and shown(task) a
// link that says what stands here. Returns plan(), what stands there, and show(plan).
export const planControls = (box, chosen, shown) => {
  const declared = Object.entries(fieldsOf("learn"));
  const starts = Object.fromEntries(declared.map(([field, one]) => [field, textOf(one.default)]));
  const state = { ...starts };
  const [task] = declared.map(([field]) => field);
  const controls = declared.map(([field, one]) => {
    const set = (text) => {
      state[field] = text;
      if (field === task) chosen(text);
    };
    return { field, name: one.name, ...controlOf(field, one, set) };
  });
  box.append(...controls.map(({ label }) => label));
  const draw = () => controls.forEach(({ field, show }) => show(state[field]));
  draw();

  const plan = () =>
    Object.fromEntries(declared.map(([field, one]) => [one.name, valueOf(one, state[field])]));
  const show = (values) => {
    for (const { field, name } of controls) state[field] = textOf(values[name]);
    draw();
  };
  ownFields(
    starts,
    () => state,
    (values) => {
      for (const [field, { type, options }] of declared) {
        if (type === "choice") oneOf(field, values[field], Object.keys(options));
      }
      const before = state[task];
      Object.assign(state, values);
      draw();
      if (state[task] !== before) shown(state[task]);
    },
  );
  return { plan, show };
};
