// What is altered in the network, and what that changes in the text, at the window's lower edge: each
// change can be taken back, and one click takes back all.

import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html, useLayoutEffect, useMemo } from "../../web/preact.js";
import { openSection } from "../../web/section.js";
import { isOwn, page } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { openTab } from "./gradio.js";
import { alter, interventions, setRequest } from "./interventions.js";
import { say } from "./messages.js";

const NARROW_PX = 700;
// Tokens that are shown of what both texts begin with, and from the first that differs.
const shared = () => (window.innerWidth < NARROW_PX ? 2 : 6);
const SHOWN = 24;

// What is altered, {says, others}: in words, and all that stays where it is taken back.
const changesOf = ({ interventions: all, forced_tokens: forced, n_prompt: start, labels }) => {
  const plain = interventions();
  const made = all.map(({ says }, place) => ({
    says,
    others: plain.filter((_, at) => at !== place),
  }));
  const place = start + forced.length - 1;
  const token = say("token {place} is “{token}”", { place, token: labels[place] });
  return forced.length ? [...made, { says: token, others: plain }] : made;
};
const Change = ({ says, others }) => html`<li><bdi>${says}</bdi>
  <button type="button" aria-label=${say("Take back: {change}", { change: says })}
    onClick=${() => alter(others)}>×</button>
</li>`;

// of: its data-text; both: what the server says of the intact text.
const Line = ({ of, word, labels, both: { same, n_prompt: from } }) => {
  const start = Math.max(from, same - shared());
  const tokens = labels
    .slice(start, same + SHOWN)
    .map((label, at) => html`<${Token} label=${label} class=${start + at >= same && "differs"} />`);
  return html`<p class="altered-text"><span class="which">${word}</span>${" "}
    <span data-text=${of}>${start > from && "… "}${tokens.length ? tokens : say("(nothing)")}</span>
  </p>`;
};

const inWords = ({ same, equal }, examined) =>
  [
    equal
      ? say("It changes no token of this text.")
      : say("Token {place} is the first that differs.", { place: same }),
    examined &&
      say(
        "Held-out questions answered right: {intact} of {asked} before, {altered} after.",
        examined,
      ),
  ]
    .filter(Boolean)
    .join(" ");

const showEffect = () => {
  openTab("what-if");
  openSection("effect");
};

const Altered = ({ props, submit, server }) => {
  const part = usePart();
  const { run, model, labels } = page.run ?? {};
  useMemo(
    () => setRequest((wanted, forced_tokens) => submit({ interventions: wanted, forced_tokens })),
    [],
  );
  // The tokens of a branch belong to one run; what is altered stays for the next text.
  useLayoutEffect(() => {
    props.value = { interventions: interventions(), forced_tokens: [] };
  }, [run]);
  const changes = run ? changesOf(page.run) : [];
  const texts = useAnswer(part, server.intact_text, changes.length && { run, forced: false });
  const both = changes.length > 0 && texts.asked?.run === run && texts.answer;
  // A network that has learned an exercise is asked all of it again.
  const asked = { model, interventions: interventions() };
  const exam = useAnswer(part, server.examined, both && isOwn(model) && asked);
  const right = both && JSON.stringify(exam.asked) === JSON.stringify(asked) && exam.answer;
  const facts = both && { run, same: both.same, equal: both.equal };
  const grades = right && { right: right.altered, "right-before": right.intact };
  return html`<section class="altered" aria-label=${say("What is altered")} hidden=${!changes.length}
    ...${part.shows({ ...facts, ...grades })}>
    <div class="altered-head">
      <ul aria-label=${say("What is altered")}>${changes.map((one) => html`<${Change} ...${one} />`)}</ul>
      <button type="button" class="more" hidden=${!interventions().length} onClick=${showEffect}>${say("More")}</button>
      <button type="button" class="intact" onClick=${() => alter([])}>${say("Reset")}</button>
    </div>
    <div class="altered-texts" role="status">
      <p class="altered-says">${both && inWords(both, right)}</p>
      ${
        both &&
        html`<${Line} of="before" word=${say("before")} labels=${both.labels} both=${both} />
        <${Line} of="after" word=${say("after")} labels=${labels} both=${both} />`
      }
    </div>
  </section>`;
};
export const mount = mounted(Altered);
