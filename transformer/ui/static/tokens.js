// The text of the run that is shown or being written. What is finished becomes the page's run.

import { mounted, useEvent } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { page, setRun } from "../../web/store.js";
import { Text } from "../../web/tokens.js";

const Tokens = ({ props, value }) => {
  const [facts, setFacts] = useState(/** @type {any} */ (null));
  const take = (given) => {
    if (!given?.labels) return;
    setFacts(given);
    // The framework gives a finished run twice: the page hears of it once.
    if (given.state === "done" && given.run !== page.run?.run) setRun(given);
  };
  useEvent("show", (shown) => take((props.value = shown)));
  useLayoutEffect(() => value.subscribe(take), []);
  return facts && html`<${Text} facts=${facts} />`;
};
export const mount = mounted(Tokens);
