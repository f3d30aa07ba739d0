// A page without a server: the layout of the server's page, and its questions, which the network in this browser answers.

import { answerFrom, whenIdle } from "../../web/ask.js";
import { html, render } from "../../web/preact.js";
import { declared } from "../../web/declared.js";
import { say } from "../../web/messages.js";
import { loadPlotly, takePlotlyFrom } from "../../web/plots.js";
import { on } from "../../web/store.js";
import { said } from "../../web/later.js";
import { wholeOf } from "./fetched.js";
import { scriptAddress } from "./opened.js";
import { unzipped } from "./packed.js";
import { arrayOr, storedAnswers } from "../../web/stored_answers.js";
import { answersOf } from "./answers.js";
import { Engine, loading } from "./engine.js";
import { events } from "./events.js";
import { pageOf } from "./layout.js";

/** @import { Question } from "../../web/types" */
/** @import { SiteContent, WrittenPage } from "../types.d.ts" */

const { spoken, site: door } = /** @type {typeof globalThis & WrittenPage} */ (globalThis);

// ---- what Python wrote: calls of sentences, arrays as of server/page/resources.py ----

/** @type {SiteContent} */
const site = JSON.parse(door.text, (_, value) => {
  if (typeof value === "string") return said(value);
  return arrayOr(value);
});

// ---- the answers ----

for (const [name, { page }] of Object.entries(site.models))
  page.controls.card.value = spoken.cards[name];
const engine = new Engine(door, site.models);
const first = declared.controls.model;
const answers = answersOf(engine, first, [...site.offered, ...site.batches]);

const stored = storedAnswers(site.answers); // about the run that the page opens with
/** @type {(name: string) => (data: Question) => unknown} */
const storedOr = (name) => (data) => stored.answer(name, data) ?? answers[name](data);

answerFrom({
  ...answers,
  ...Object.fromEntries(stored.names.map((name) => [name, storedOr(name)])),
  leave: () => null,
  kept: ({ runs }) => ({ kept: /** @type {string[]} */ (runs).map(() => true) }), // what the page shows it can read again
  lessons: () => ({ lessons: spoken.lessons }),
  lesson: ({ name }) => spoken.decks[String(name)],
});
takePlotlyFrom(async () =>
  scriptAddress(await unzipped(await wholeOf(await door.source("plotly.js.gz")))),
);

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
// Once a first part is painted and nothing else is to be done the weights come, then what else the page may ask for.
const laterScripts = "later"; // of the page's import map
const loadAll = async () => {
  const isLoaded = await engine.load(first).then(
    () => true,
    () => false,
  );
  await import(laterScripts);
  whenIdle(async () => {
    await loadPlotly().catch(() => {});
    if (isLoaded) await door.keep(Object.keys(site.models[first].files)).catch(() => {}); // a browser may deny it
  });
};
const painted = new Promise((done) => on("painted", done));
painted.then(() => whenIdle(() => void loadAll()));
const place = /** @type {Element} */ (document.querySelector("gradio-app"));
const pageScripts = "page"; // of the map
const show = async () => {
  const scripts = { page: await import(pageScripts) };
  render(html`<${Loading} />${pageOf(site.layout, events, scripts)}`, place);
};
show();
