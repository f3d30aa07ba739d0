// A page without a server: the layout of the server's page, and its questions, which the network in this browser answers.

import { answerFrom } from "../../web/ask.js";
import { html, render } from "../../web/preact.js";
import { declared, oneOf } from "../../web/declared.js";
import { say } from "../../web/messages.js";
import { loadPlotly, takePlotlyFrom } from "../../web/plots.js";
import { said } from "../../web/later.js";
import { unzipped } from "./packed.js";
import { QUESTIONS } from "../questions/names.js";
import { Engine, loading } from "./engine.js";
import { events } from "./events.js";
import { pageOf } from "./layout.js";

/** @typedef {Record<string, any>} Data */

const { spoken, site: door } = /** @type {any} */ (globalThis);

// ---- what Python wrote: calls of sentences, arrays as of server/resources.py ----

/** @type {Record<string, any>} */
const TYPES = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
/** @type {(value: any) => any} */
const arrayOf = ({ dtype, base64 }) => {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  return new TYPES[dtype](bytes.buffer);
};
const site = JSON.parse(door.text, (_, value) => {
  if (typeof value === "string") return said(value);
  return value?.base64 && value.dtype ? arrayOf(value) : value;
});

// ---- the answers ----

const engine = new Engine(door, site.models);
const first = declared.controls.model;

// The model of a run or a batch is in its id.
/** @type {(data: Data) => string} */
const modelOf = ({ run, batch, model, runs = [] }) =>
  model ?? String(run ?? batch ?? runs[0] ?? "").split(" of ")[1] ?? first;

// A question without what it leaves to its defaults, whatever their order.
/** @type {(name: string, data: Data) => string} */
const keyOf = (name, data) =>
  JSON.stringify([
    name,
    ...Object.entries(data)
      .filter(([, value]) => value !== null && value !== undefined)
      .sort(),
  ]);
/** @type {Map<string, any>} answers about the run that the page opens with */
const stored = new Map(site.answers.map(([name, data, answer]) => [keyOf(name, data), answer]));

/** @type {(name: string) => (data: Data) => any} */
const asked = (name) => (data) =>
  stored.get(keyOf(name, data)) ?? engine.ask(modelOf(data), name, data);

// What of the boxes is the visitor's own.
/** @type {(typed: Record<string, string>) => Record<string, string>} */
const ownOf = (typed) =>
  Object.fromEntries(
    Object.entries(typed).filter(
      ([, text]) => text.trim() && !site.offered.includes(text) && !site.batches.includes(text),
    ),
  );
async function* examples(/** @type {Data} */ { model, typed }) {
  const names = Object.keys(site.models);
  const problems = [];
  try {
    if (model !== null) oneOf("model", model, names);
  } catch (error) {
    problems.push(error.message);
  }
  const name = names.includes(model) ? model : first;
  const { page } = site.models[name];
  const controls = { ...page.controls, card: { ...page.controls.card, value: spoken.cards[name] } };
  yield { example: { ...page, controls, problems, own: ownOf(typed) } };
}
/** @type {(name: string) => (data: Data, ends?: AbortSignal) => AsyncGenerator<any>} */
const pressed = (name) => (data, ends) => engine.lines(data.model, name, data, ends);

answerFrom({
  ...Object.fromEntries(QUESTIONS.map((name) => [name, asked(name)])),
  ...{ examples, runs: pressed("runs"), batches: pressed("batches") },
  stop: () => engine.stop(),
  leave: () => null,
  metrics: () => null, // no page says anything about heads then
  kept: ({ runs }) => engine.ask(modelOf({ runs }), "kept", { runs }),
  lessons: () => ({ lessons: spoken.lessons }),
  lesson: ({ name }) => spoken.decks[name],
});
takePlotlyFrom(async () => {
  const script = await unzipped(await door.read("plotly.js.gz"));
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
});

// ---- the page ----

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.body.classList.toggle("dark", dark.matches);
dark.addEventListener("change", follow);
follow();
document.title = say("Transformer, seen from inside");

const Loading = () => {
  const { got, all } = loading.value ?? { got: 0, all: 0 };
  return html`<progress class="loading" hidden=${!all} value=${got} max=${all || 1} aria-label=${say("The network is being loaded into this browser …")} />`;
};
const place = /** @type {Element} */ (document.querySelector("gradio-app"));
render(html`<${Loading} />${pageOf(site.layout, events)}`, place);
// Once the first picture stands, the weights come, and what else the page may ask for.
const laterScripts = "later"; // of the page's import map
const whenIdle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 200));
whenIdle(async () => {
  await engine.load(first).catch(() => {});
  await import(laterScripts);
  whenIdle(() => void loadPlotly().catch(() => {}));
});
