// The saved page of a run, or of the texts of a batch: the page's own parts, whose questions the file's numbers answer.

import { wholeOf } from "../../../browser/page/fetched.js";
import { pageOf } from "../../../browser/page/layout.js";
import { answers as attention } from "../../../browser/questions/attention.js";
import { answers as metrics } from "../../../browser/questions/head_metrics.js";
import { answers as masks } from "../../../browser/questions/masks.js";
import { answers as positions } from "../../../browser/questions/positions.js";
import { answers as shift } from "../../../browser/questions/shift.js";
import { recordedItem } from "../../../browser/recorded.js";
import { answerFrom } from "../../../web/ask.js";
import { Select, Switch } from "../../../web/controls.js";
import { views, wholeNumber } from "../../../web/declared.js";
import { bindField, fields, showFields, shownFields } from "../../../web/fields.js";
import { said } from "../../../web/later.js";
import { plainQuery, stateOf } from "../../../web/link_text.js";
import { capital, numeral, say, sayN, sayWith } from "../../../web/messages.js";
import { mounted, useDocument, usePart } from "../../../web/part.js";
import { takePlotlyFrom } from "../../../web/plots.js";
import { batch as together, effect, html, render, signal } from "../../../web/preact.js";
import { PredictedToken, before, predictedPosition, readPosition } from "../../../web/selection.js";
import { emit, page, setBatch, setQuery, setRun, shell } from "../../../web/store.js";
import { Token } from "../../../web/text.js";
import { Text } from "../../../web/tokens.js";
import { contentOf, filled } from "./pack.js";

/** @import { Choice, Question } from "../../../web/types" */
/** @import { Item } from "../../../browser/item.js" */
/** @import { Described, Event as LayoutEvent } from "../../../browser/page/layout.js" */
/** @import { SavedBatch, SavedNumbers, SavedStep, SavedText, StepCandidate } from "../types" */

const { site } =
  /** @type {typeof globalThis & { site: { source: (name: string) => Promise<Blob>, text: string } }} */ (
    globalThis
  );

const noBatch = /** @type {SavedBatch} */ (/** @type {unknown} */ (null));
/** @type {SavedNumbers} */
const numbers = { texts: [], batch: noBatch, frames: {} }; // as html.py writes them, once they are unpacked
// The text of a batch that is shown, by its row; a run alone has row 0.
const row = signal(0);

// ---- answers ----

// A question without its run and what it leaves to its defaults, whatever their order.
/** @type {(name: string, data: Question) => string} */
const keyOf = (name, data) =>
  JSON.stringify([
    name,
    ...Object.entries(data)
      .filter(([key, value]) => !["run", "batch"].includes(key) && (value ?? null) !== null)
      .sort(),
  ]);
/** @type {(text: SavedText) => Item} */
const itemOf = (text) => (text.item ??= recordedItem(text, numbers.frames));
/** @type {(text: SavedText | SavedBatch) => Map<string, unknown>} */
const storedOf = (text) =>
  (text.answersByKey ??= new Map(
    text.answers.map(([name, data, answer]) => [keyOf(name, data), answer]),
  ));

// Recorded weights to compare with would be worked out from the same numbers.
/** @type {import("../../../browser/questions/types").Answerer<"attention_math">} */
const attentionMath = async (item, data) => ({
  ...(await attention.attention_math(item, data)),
  weights: undefined,
});
const answers = {
  ...{ ...attention, ...metrics, ...masks, ...positions, ...shift },
  attention_math: attentionMath,
};
const computed =
  /** @type {Record<string, (item: Item, data: Question, rows: Item[]) => unknown>} */ (
    /** @type {object} */ (answers)
  );
/** @type {(name: string) => (data: Question) => unknown} */
const answerOf = (name) => (data) => {
  const isBatch = (data.run ?? data.batch) === numbers.batch.batch;
  const text = numbers.texts[isBatch ? Number(data.row ?? row.value) : Number(data.run)];
  const isOwn = views.some(
    (view) =>
      !Object.keys(view.controls).length && view.pictures.some((picture) => picture.name === name),
  );
  const stored = storedOf(name === "padded" ? numbers.batch : text).get(
    keyOf(name, isOwn ? {} : data),
  );
  if (stored) return filled(stored);
  if (name === "journey") return null; // the network's own numbers
  if (!computed[name])
    throw new Error(
      say(
        "This page has the numbers of a run and no network: saved with its network, it answers this, too.",
      ),
    );
  const item = itemOf(text);
  return computed[name](item, data, [item]);
};
const pictures = views.flatMap((view) => view.pictures.map(({ name }) => name));
answerFrom(
  Object.fromEntries(
    [...pictures, ...Object.keys(computed), "journey", "runs"].map((name) => [
      name,
      answerOf(name),
    ]),
  ),
);
takePlotlyFrom(async () => {
  const script = await wholeOf(await site.source("plotly.js"));
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
});

// ---- the head of the page, the text, and what each step could have chosen ----

/** @type {(number: string | number) => void} */
const showRow = (number) =>
  together(() => {
    row.value = wholeNumber("row", number, 0, numbers.texts.length - 1);
    setRun(numbers.texts[row.value].run);
  });

const language = signal(new URLSearchParams(location.hash.slice(1)).get("lang"));
/** @param {{ props: { languages: Choice<string>[] } }} props */
const Header = ({ props: { languages } }) => {
  const { run, summary } = numbers.texts[row.value];
  const { kind, text } = page.status;
  const choices = numbers.batch.texts.map((typed, number) => [number, typed]);
  const model = html`<span id="model-name">${run.model}</span>`;
  const choose = (/** @type {string} */ tag) => (language.value = tag);
  return html`<div class="saved-head">
    <h1>${sayWith("What the model “{model}” read and wrote", { model })}</h1>
    <label class="languages">${say("Language")} <${Select} id="language" options=${languages} value=${document.documentElement.lang} set=${choose} /></label>
    <p id="summary">${summary}</p>
    <p class="problem" role="alert" hidden=${kind !== "error"}>${text}</p>
    ${choices.length > 1 && html`<${Switch} name="row" title=${say("Sentence of the batch")} options=${choices} value=${row.value} set=${(/** @type {number} */ at) => (fields.row = at)} />`}
  </div>`;
};

const Tokens = () => {
  useDocument(["keydown"], ({ key }) => {
    if (key === "Escape") together(() => (emit("escape"), setQuery(null))); // as on the server's page
  });
  return html`<${Text} facts=${page.run} />
    <p class="hint">${say("Outlined: given. Shaded: generated; the stronger the shade, the likelier. Choose a token to mark what it reads and, if what follows it was generated, to see what else could have come.")}</p>`;
};

/** @param {number} probability @param {number} most @param {string} name */
const bar = (probability, most, name) => html`<td>
  <span class=${name} style=${{ width: `${(70 * probability) / most}%` }} />${numeral((100 * probability).toFixed(2))}%
</td>`;
/** @param {SavedStep} props */
const Candidates = ({ token, candidates }) => {
  const most = Math.max(...candidates.flatMap((c) => [c.probability, c.sampling_probability]));
  /** @param {StepCandidate} candidate */
  const line = ({ id, label, probability, sampling_probability: after }) => {
    const isChosen = id === token;
    const word = html`<${Token} label=${label} />`;
    return html`<tr class=${[isChosen && "chosen", after === 0 && "cut"].filter(Boolean).join(" ")}>
      <td>${isChosen ? ["▶ ", sayWith("{token} (chosen)", { token: word })] : word}</td>
      ${bar(probability, most, "bar")}
      ${after === 0 ? html`<td>✕ ${say("cut")}</td>` : bar(after, most, "bar after")}
    </tr>`;
  };
  const headings = [say("Candidate"), say("the network"), say("after temperature and filters")];
  return html`<table>
    <thead><tr>${headings.map((name) => html`<th>${name}</th>`)}</tr></thead>
    <tbody id="candidates">${candidates.map(line)}</tbody>
  </table>`;
};
const Steps = () => {
  const part = usePart();
  const { steps, run } = numbers.texts[row.value];
  const start = run.n_prompt;
  const read = page.query ? readPosition() : start - 1; // at first, the last token that was given
  const at = predictedPosition(read) - start;
  const step = steps[at];
  const go = (/** @type {string} */ value) => setQuery(before(start + Number(value)));
  const options = [[-1, "–"], ...steps.map((_, place) => [place, place + 1])];
  const note = () =>
    sayN(
      "This step read tokens {first} to {last}; {n} token could be drawn.",
      "This step read tokens {first} to {last}; {n} tokens could be drawn.",
      step.n_kept,
      { first: step.window[0], last: step.window[1] - 1 },
    );
  return html`<section class="steps" hidden=${!steps.length} ...${part.attributes({ run: run.run })}>
    ${step ? html`<${PredictedToken} of=${read} />` : html`<p class="asked">${say("No step of this run chose what follows this token.")}</p>`}
    <div class="step-head">
      <label>${capital(say("step"))} <${Select} id="step" options=${options} value=${step ? at : -1} set=${go} /></label>
      <span class="hint" id="step-note">${step && note()}</span>
    </div>
    ${step && html`<${Candidates} ...${step} />`}
  </section>`;
};

export const mount = { header: mounted(Header), tokens: mounted(Tokens), steps: mounted(Steps) };

// ---- the whole: as dark as the page that embeds it says, or the visitor's system; its tabs; its address ----

const followDarkness = () => {
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const follow = () => {
    page.dark = root.dataset.theme ? root.dataset.theme === "dark" : darkness.matches;
    for (const element of [root, document.body]) element.classList.toggle("dark", page.dark);
  };
  darkness.addEventListener("change", follow);
  follow();
};
const followWidth = () => {
  const narrow = window.matchMedia("(max-width: 1160px)");
  const follow = () => document.body.classList.toggle("stacked", narrow.matches);
  narrow.addEventListener("change", follow);
  follow();
};

/** @type {(name: string) => HTMLElement | undefined} */
const openTab = (name) => {
  const button = document.querySelector(`#right [data-tab-id="${CSS.escape(name)}"]`);
  if (!(button instanceof HTMLElement)) return undefined;
  if (button.ariaSelected !== "true") button.click();
  return button;
};
shell.openTab = openTab;
// A tab is shown: the first by itself, others because a reader opens them.
/** @type {(name: string) => void} */
const tabShown = (name) => {
  if (page.isLaidOut) fields.tab = name;
  else openTab(fields.tab);
  page.isLaidOut = true;
};
/** @type {(parts: Described[]) => LayoutEvent[]} */
const eventsOf = (parts) =>
  parts.flatMap(({ type, id, props, children }) => [
    ...(type === "tabitem"
      ? [
          {
            targets: [/** @type {[number, string]} */ ([id, "select"])],
            inputs: [],
            outputs: [],
            js: () => tabShown(props.id),
            then: [],
          },
        ]
      : []),
    ...eventsOf(children),
  ]);

// The address says what is chosen, as a link to the page does.
/** @type {(address: string) => Promise<string[]>} */
const shownIn = async (address) =>
  showFields((await stateOf(new URL(address).hash.slice(1))) ?? {});
const followAddress = () => {
  window.addEventListener("hashchange", () => void shownIn(location.href));
  effect(() => {
    const lang = language.value;
    const shown = plainQuery({ ...shownFields(), ...(lang && { lang }) });
    history.replaceState(null, "", location.href.split("#")[0] + (shown && `#${shown}`));
    if (lang && lang !== document.documentElement.lang) location.reload(); // and says all again
  });
};

const start = async () => {
  const { layout } = JSON.parse(site.text, (_, value) =>
    typeof value === "string" ? said(value) : value,
  );
  Object.assign(numbers, contentOf(await wholeOf(await site.source("run.pack")), said));
  setBatch(numbers.batch);
  showRow(0);
  bindField("row", () => row.value, showRow);
  followDarkness();
  followWidth();
  await shownIn(location.href);
  document.body.classList.remove("first");
  document.title = say("Transformer, seen from inside");
  render(
    pageOf(layout, eventsOf(layout)),
    /** @type {Element} */ (document.querySelector("gradio-app")),
  );
  effect(() => void openTab(fields.tab));
  followAddress();
};
start();
