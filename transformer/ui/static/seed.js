// The seed that the shown text was drawn with, and a new one in one click.

import { mounted } from "../../web/part.js";
import { html, useMemo, useRef } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { say } from "./messages.js";

const MOST = 10_000; // seeds that are short to read

// What makes two runs the same text.
const essence = ({ model, text, how, interventions, ids }) =>
  JSON.stringify([model, text, how, interventions, ids]);

const inWords = (seed, again) => {
  if (!again) return seed === null ? "" : say("Seed {seed}", { seed });
  return seed === null
    ? say("Nothing is drawn at random: the same text again.")
    : say("Seed {seed} again: the same text.", { seed });
};

const Seed = ({ submit }) => {
  const before = useRef("");
  const { run } = page;
  const again = useMemo(() => {
    const now = run ? essence(run) : "";
    const same = now !== "" && now === before.current;
    before.current = now;
    return same;
  }, [run?.run]);
  const seed = run?.seed ?? null;
  const draw = () => {
    const other = Math.floor(Math.random() * (MOST - 1));
    submit(other < (seed ?? MOST) ? other : other + 1);
  };
  return html`<div class="seed" hidden=${seed === null && !again}>
    <span class="seed-says" role="status">${inWords(seed, again)}</span>
    <button type="button" class="new-seed" hidden=${seed === null} onClick=${draw}>${say("New seed")}</button>
  </div>`;
};
export const mount = mounted(Seed);
