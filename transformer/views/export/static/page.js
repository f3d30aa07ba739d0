// The saved page of a run, or of the texts of a batch: text, attention, prediction, masks, positions and more,
// drawn from the file's data.

import { recordedItem } from "../../../browser/recorded.js";
import { answers as attention } from "../../../browser/questions/attention.js";
import { answerFrom } from "../../../web/ask.js";
import { Select, Switch } from "../../../web/controls.js";
import { bindField, fields, showFields, shownFields } from "../../../web/fields.js";
import { Figure } from "../../../web/figure.js";
import { thinLabels } from "../../../web/labels.js";
import { everyField, wholeNumber } from "../../../web/declared.js";
import { PredictedToken, before, predictedPosition, readPosition } from "../../../web/selection.js";
import { plainQuery, stateOf } from "../../../web/link_text.js";
import { capital, numeral, say, sayN, sayWith } from "../../../web/messages.js";
import { useDocument, usePart } from "../../../web/part.js";
import { takePlotlyFrom } from "../../../web/plots.js";
import {
  batch as together,
  computed,
  effect,
  html,
  render,
  signal,
  useLayoutEffect,
  useMemo,
  useState,
} from "../../../web/preact.js";
import { emit, headShown, page, setQuery, setRun } from "../../../web/store.js";
import { Token } from "../../../web/text.js";
import { Text } from "../../../web/tokens.js";
import { Attention } from "../../attention/attention.js";
import { Worked } from "../../attention/attention_math.js";
import { said } from "../../../web/later.js";
import { filled, flatOf, gunzip, unpack } from "./pack.js";

// ---- a whole picture of a run with its words: drawn at once, or when it is opened ----

const TALLEST_PX = 640; // of a square picture

const isSquare = ({ xaxis, yaxis }) =>
  Boolean(yaxis?.scaleanchor && xaxis.ticktext && yaxis.ticktext);

// Layout of a figure, see drawPicture.
const sizeOf = ({ layout }) => {
  if (isSquare(layout)) return { fit: { side: { height: TALLEST_PX }, bar: true } };
  const change = ({ layout: { width, margin, xaxis } }) => {
    if (xaxis.ticktext && xaxis.tickangle) thinLabels(xaxis, width - margin.l - margin.r);
  };
  return { change };
};

// one: {title, view, data, layout}, packed. closed: a box that the reader opens.
const Picture = ({ one, closed = false }) => {
  const part = usePart();
  const [isOpen, setOpen] = useState(!closed);
  // Drawing changes the figure: each width has a copy.
  const figure = useMemo(
    () => isOpen && part.width > 0 && filled({ data: one.data, layout: one.layout }),
    [one, isOpen, part.width],
  );
  const { title, view } = one;
  const drawn = html`<${Figure} part=${part} name=${view} class="figure" figure=${figure || null} wide=${title}
      label=${title} ...${figure && sizeOf(figure)} />`;
  const facts = part.attributes({ view: view ?? "" });
  return closed
    ? html`<details open=${isOpen} onToggle=${({ target }) => setOpen(target.open)} ...${facts}>
        <summary>${title}</summary>${drawn}
      </details>`
    : html`<figure ...${facts}><figcaption>${title}</figcaption>${drawn}</figure>`;
};

// ---- what a step could have chosen ----

const bar = (probability, most, name) => html`<td>
  <span class=${name} style=${{ width: `${(70 * probability) / most}%` }} />${numeral((100 * probability).toFixed(2))}%
</td>`;

// A step, as html.py writes it.
const Candidates = ({ token, candidates }) => {
  const most = Math.max(...candidates.flatMap((c) => [c.probability, c.sampling_probability]));
  const row = ({ id, label, probability, sampling_probability: after }) => {
    const isChosen = id === token;
    const shown = html`<${Token} label=${label} />`;
    return html`<tr class=${[isChosen && "chosen", after === 0 && "cut"].filter(Boolean).join(" ")}>
      <td>${isChosen ? ["▶ ", sayWith("{token} (chosen)", { token: shown })] : shown}</td>
      ${bar(probability, most, "bar")}
      ${after === 0 ? html`<td>✕ ${say("cut")}</td>` : bar(after, most, "bar after")}
    </tr>`;
  };
  const heads = [say("Candidate"), say("the network"), say("after temperature and filters")];
  return html`<table>
    <thead><tr>${heads.map((name) => html`<th>${name}</th>`)}</tr></thead>
    <tbody id="candidates">${candidates.map(row)}</tbody>
  </table>`;
};

// ---- attention: what the view of the page asks a server, from the file ----

// Of the shown run, see html.py.
/** @type {(of: {stack: string, kind: string}) => any} */
const kindOf = ({ stack, kind }) =>
  page.run.kinds.find((one) => one.stack === stack && one.kind === kind);
// frames: figures without numbers.
const answerAbout = (frames) => {
  const item = computed(() => recordedItem(page.run, frames, flatOf));
  const asked = (name) => (data) => attention[name](item.value, data);
  answerFrom({
    ...Object.fromEntries(Object.keys(attention).map((name) => [name, asked(name)])),
    metrics: (of) => kindOf(of).metrics,
    // Recorded weights to compare with would be worked out from the same numbers.
    attention_math: (of) => ({ ...asked("attention_math")(of), weights: null }),
  });
};

const AttentionSection = () => html`<section id="attention" aria-labelledby="attention-title">
  <h2 id="attention-title">${say("Attention")}</h2><${Attention} />
</section>`;

// The chosen row's arithmetic, where the file has the head's queries and keys.
const RowSection = () => {
  const at = headShown();
  return (
    at &&
    kindOf(at).layers[at.layer].queries &&
    html`<details id="row"><summary>${say("One row, worked out")}</summary><${Worked} /></details>`
  );
};

// ---- the page ----

// prediction

const Prediction = ({ steps, start }) => {
  const read = page.query ? readPosition() : start - 1; // at first, the last token that was given
  const at = predictedPosition(read) - start;
  const step = steps[at];
  const go = (value) => setQuery(before(start + Number(value)));
  const seen = () =>
    sayN(
      "This step read tokens {first} to {last}; {n} token could be drawn.",
      "This step read tokens {first} to {last}; {n} tokens could be drawn.",
      step.n_kept,
      { first: step.window[0], last: step.window[1] - 1 },
    );
  return html`<section id="prediction" aria-labelledby="prediction-title" hidden=${!steps.length}>
    <h2 id="prediction-title">${say("Prediction")}</h2>
    ${step ? html`<${PredictedToken} of=${read} />` : html`<p class="asked">${say("No step of this run chose what follows this token.")}</p>`}
    <div class="controls">
      <label>${capital(say("step"))} <${Select} id="step" options=${[[-1, "–"], ...steps.map((_, place) => [place, place + 1])]}
        value=${step ? at : -1} set=${go} /></label>
      <span id="step-note">${step && seen()}</span>
    </div>
    ${step && html`<${Candidates} ...${step} />`}
  </section>`;
};

// the whole, as dark as the page that embeds it says, or the visitor's system
const followDarkness = () => {
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const follow = () => {
    page.dark = root.dataset.theme ? root.dataset.theme === "dark" : darkness.matches;
    root.classList.toggle("dark", page.dark);
  };
  darkness.addEventListener("change", follow);
  follow();
  return () => darkness.removeEventListener("change", follow);
};

// The address says what is chosen, as a link to the page does.
const shownIn = async (address) =>
  showFields((await stateOf(new URL(address).hash.slice(1))) ?? {});
const followAddress = () => {
  const open = () => void shownIn(location.href);
  window.addEventListener("hashchange", open);
  const end = effect(() => {
    const shown = plainQuery(shownFields());
    history.replaceState(null, "", location.href.split("#")[0] + (shown && `#${shown}`));
    if (fields.lang !== document.documentElement.lang) location.reload(); // and says all again
  });
  return () => {
    window.removeEventListener("hashchange", open);
    end();
  };
};

const Pictures = ({
  id,
  title,
  note,
  list,
  children,
}) => html`<section aria-labelledby=${`${id}-title`}>
  <h2 id=${`${id}-title`}>${title}</h2>${note && html`<p class="note">${note}</p>`}
  <div id=${id} class=${list ? undefined : "figures"}>${children}</div>
</section>`;

// The text of a batch that is shown, by its row; a run alone has row 0.
const row = signal(0);
const followRow = (texts) => {
  const show = (number) =>
    together(() => {
      row.value = wholeNumber("row", number, 0, texts.length - 1);
      setRun(texts[row.value].run);
    });
  show(0);
  if (texts.length > 1) bindField("row", () => row.value, show);
};

// model, texts: see html.py.
/** @param {Record<string, any>} props */
const Page = ({ model: name, texts }) => {
  useLayoutEffect(followDarkness, []);
  useLayoutEffect(followAddress, []);
  useDocument(["keydown"], ({ key }) => {
    if (key === "Escape") together(() => (emit("escape"), setQuery(null))); // as on the server's page
  });
  const { run, summary, steps, masks, positions, more } = texts[row.value];
  const model = html`<span id="model">${name}</span>`;
  const choices = texts.map(({ typed }, number) => [number, typed]);
  const pictures = (all, props = {}) =>
    all.map((one, place) => html`<${Picture} key=${place} ...${{ one, ...props }} />`);
  const languages = Object.entries(everyField.lang.options);
  return html`<header>
      <label class="languages">${say("Language")} <${Select} id="language" options=${languages} value=${fields.lang} set=${(one) => (fields.lang = one)} /></label>
      <h1>${sayWith("What the model “{model}” read and wrote", { model })}</h1>
      <p id="summary">${summary}</p>
      ${texts.length > 1 && html`<${Switch} name="row" title=${say("Sentence of the batch")} options=${choices} value=${row.value} set=${(at) => (fields.row = at)} />`}
    </header>
    <main key=${row.value}>
    <section id="tokens">
      <${Text} facts=${run} />
      <p class="note">${say("Outlined: given. Shaded: generated, the stronger the shade the likelier. Choose a token to mark what it reads and, if what follows it was generated, to see what else could have come.")}</p>
    </section>
    <${AttentionSection} />
    <${RowSection} />
    <${Prediction} steps=${steps} start=${run.n_prompt} />
    <${Pictures} id="masks" title=${say("Masks")}>${pictures(masks)}<//>
    <${Pictures} id="positions" title=${say("Positions")}>${pictures(positions)}<//>
    <${Pictures} id="more" title=${say("More of the inside")} list>
      ${pictures(more, { closed: true })}<//>
    </main>`;
};

// ---- the start ----

/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);

const start = async () => {
  const [packed, plotly] = ["data", "plotly"].map((id) => byId(id).textContent);
  const parts = await Promise.all([unpack(packed, said), gunzip(plotly)]).catch(() => null);
  if (!parts) return (byId("damaged").hidden = false);
  const [data, library] = parts;
  takePlotlyFrom(() => URL.createObjectURL(new Blob([library], { type: "text/javascript" })));
  answerAbout(data.frames);
  followRow(data.texts);
  await shownIn(location.href);
  document.documentElement.lang = fields.lang;
  document.title = say("Transformer, seen from inside");
  return render(html`<${Page} ...${data} />`, byId("content"));
};
start();
