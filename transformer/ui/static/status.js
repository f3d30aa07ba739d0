// One line that says how it went: progress and results quietly, mistakes as an alert.

import { mounted, useEvent } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";

const Status = ({ value }) => {
  const [{ kind, text, rev }, setSaid] = useState({ kind: "done", text: "", rev: 0 });
  const show = (now) => setSaid((before) => ({ ...now, rev: before.rev + 1 }));
  useEvent("waiting", (said) => show({ kind: "busy", text: said }));
  useEvent("problem", (said) => show({ kind: "error", text: said }));
  useEvent("late problem", (said) =>
    setSaid(({ kind: before, text: told, rev: at }) => {
      const both = before === "error" ? `${told} ${said}` : said;
      return { kind: "error", text: both, rev: at + 1 };
    }),
  );
  useLayoutEffect(() => value.subscribe((said) => said?.text !== undefined && show(said)), []);
  const failed = kind === "error";
  // Each alert is an element of its own: where a part fails, ui/components.py writes into this one.
  return html`<div data-rev=${rev}>
    <div class="status" role="status" hidden=${failed}><span>${!failed && text}</span></div>
    <div class="problem" role="alert" hidden=${!failed} key=${rev}><span>${failed && text}</span></div>
  </div>`;
};
export const mount = mounted(Status);
