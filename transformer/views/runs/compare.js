// Two runs side by side: A is the shown one, B another of this visit.

import {
  asSentence,
  capital,
  colourEnds,
  numeral,
  percentText,
  say,
  sayList,
  sayN,
} from "../../web/messages.js";
import { useAnswer, usePart, mounted } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { page, setQuery, setHead } from "../../web/store.js";
import { Token } from "../../web/text.js";
import { Figure } from "../../web/figure.js";
import { before } from "../../web/selection.js";
import { kindOf, siteName, sitesOf } from "../../web/sites.js";
import { Select } from "../../web/controls.js";
import { alter, generates, compared, pastRun, pastRuns, runName, useGone } from "../../web/runs.js";

// The tokens of two runs, side by side.

/** @type {Record<string, (count: number) => string>} */
const COUNT_WORDS = {
  equal: (count) => say("{count} in both", { count }),
  replaced: (count) => sayN("{n} replaced", "{n} replaced", count),
  "only A": (count) => say("{count} only in A", { count }),
  "only B": (count) => say("{count} only in B", { count }),
};
/** @type {Record<string, string>} */
const LISTS = { source: say("source"), text: say("text") };
/** @type {Record<string, (counts: string) => string>} */
const HEADINGS = {
  source: (counts) => say("Source: {counts}.", { counts }),
  text: (counts) => say("Text: {counts}.", { counts }),
};

/** @type {Record<string, string>} */
const CLASS_OF_SIDE = { A: "side-a", B: "side-b" };
// One run's tokens of a text, with those that the other lacks highlighted. A click on a token of A chooses
// it.
/** @param {{ text: import("./types").ComparedText, side: string, label: string }} props */
const Side = ({ text: { name, a, b, pairs }, side, label }) => {
  const [labels, at] = side === "A" ? [a, 0] : [b, 1];
  const token = (/** @type {import("./types").TokenPair} */ pair) => {
    const look = `pair ${pair[2].replace(" ", "-").toLowerCase()}`;
    const words = html`<${Token} label=${labels[Number(pair[at])]} />`;
    const choose = () => setQuery({ stack: page.run.stack, index: Number(pair[0]) });
    return name === "text" && side === "A"
      ? html`<li><button type="button" class=${look} onClick=${choose}>${words}</button></li>`
      : html`<li><span class=${look}>${words}</span></li>`;
  };
  return html`<div class=${CLASS_OF_SIDE[side]}>
    <h5>${side}</h5>
    <ul class="pairs" aria-label=${sayList([label, side])}>${pairs.filter((pair) => pair[at] !== null).map(token)}</ul>
  </div>`;
};

/** @param {{ text: import("./types").ComparedText, many: boolean }} props */
const List = ({ text, many }) => {
  const counts = sayList(
    Object.entries(COUNT_WORDS)
      .filter(([how]) => text.counts[how])
      .map(([how, said]) => said(text.counts[how])),
  );
  const label = capital(LISTS[text.name]);
  return html`<div class="compare-text">
    <p class="hint">${many ? HEADINGS[text.name](counts) : asSentence(counts)}</p>
    <div class="two">${["A", "B"].map((side) => html`<${Side} ...${{ text, side, label }} />`)}</div>
  </div>`;
};

// pair: {run, other}, the ids of A and B.
/** @param {{ pair: import("./types").Pair }} props */
const Texts = ({ pair }) => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, "compare", pair);
  const texts = answer?.texts ?? [];
  const many = texts.length > 1;
  return html`<section class="compare-texts" ...${part.attributes(asked)}>
    <h4>${capital(say("tokens"))}</h4>
    <div class="compare-lists">${texts.map((/** @type {import("./types").ComparedText} */ text) => html`<${List} ...${{ text, many }} />`)}</div>
  </section>`;
};

// The probability of each token of two runs.

/** @type {(figure: import("../../web/types").Figure) => import("../../web/types").NumbersTable} */
const numbersOf = ({ data: [bars], layout }) => ({
  rows: layout.meta.labels.map(
    (/** @type {string} */ label, /** @type {number} */ place) =>
      `${layout.meta.pairs[place][0]} ${label}`,
  ),
  columns: [say("in A"), say("in B"), "B − A"],
  value: (row, column) => {
    const [a, b] = bars.customdata[row];
    return numeral([a, b, b - a][column].toFixed(4));
  },
  corner: say("token"),
});
/** @type {(pointed: import("../../web/types").Pointed, box: import("../../web/types").Drawn) => void} */
const chooseBefore = ({ points }, { layout: { meta } }) =>
  setQuery(before(meta.pairs[Math.round(points[0].x)][0]));

// Whether a run is of the page's model and has no token of its own, though it could.
const isOnlyRead = (/** @type {import("../../web/types").Run | undefined} */ facts) =>
  facts?.model === page.run?.model && generates() && !facts?.probabilities.length;

// pair: {run, other}, the ids of A and B.
/** @param {{ pair: import("./types").Pair }} props */
const Outcomes = ({ pair }) => {
  const part = usePart();
  const { answer, asked } = useAnswer(part, "outcomes", pair);
  const none =
    answer?.none &&
    (isOnlyRead(pastRun(pair.other)?.facts)
      ? say("B was only read: “{button}” shows what it would write.", { button: say("Write B on") })
      : asSentence(answer.none));
  return html`<section class="compare-outcomes" ...${part.attributes(asked)}>
    <h4>${say("How likely each generated token was: B − A")}</h4>
    <p class="compare-says">${none}</p>
    <div class="compare-drawn" hidden=${Boolean(none)}>
      <p>${say("Up: the token was likelier in B. Down: it was likelier in A. These are the network's probabilities, before temperature and filters. Hatched: two different tokens. Click a bar to choose the token before it.")}</p>
      <${Figure} part=${part} name="outcomes" figure=${answer?.figure} table=${numbersOf}
        wide=${say("How likely each generated token was: B − A")}
        on=${{ plotly_click: chooseBefore }} />
    </div>
  </section>`;
};

// The difference in attention of two runs, in heads chosen here.

const WIDEST_PX = 720; // of the difference of two heads

/** @type {(a: import("../../web/types").Run, b: import("../../web/types").Run) => boolean} */
const alike = (a, b) =>
  a.n_heads === b.n_heads && sitesOf(a).map(siteName).join() === sitesOf(b).map(siteName).join();
/** @type {(facts: import("../../web/types").Run) => import("../../web/types").Choice[]} */
const headsOf = ({ n_heads: count }) => [
  ...Array.from(
    { length: count },
    (_, head) => /** @type {import("../../web/types").Choice} */ ([head, String(head)]),
  ),
  ["mean", say("the mean of all heads")],
];
/** @type {(site: import("../../web/store.js").Site) => import("../../web/types").Choice} */
const inWords = (site) => [
  siteName(site),
  say("{attention}, layer {layer}", { attention: kindOf(site), layer: site.layer }),
];
/** @type {(facts: import("../../web/types").Run, head: import("./types").ComparedHead) => import("./types").ComparedHead} */
const nearest = (facts, { stack, layer, kind, head }) => {
  const sites = sitesOf(facts);
  const found =
    sites.find((site) => siteName(site) === siteName({ stack, layer, kind })) ??
    sites.find((site) => site.kind === kind) ??
    sites[0];
  return { ...found, head: head === "mean" || head < facts.n_heads ? head : 0 };
};
/** @type {(meta: { limit: number, kept: number[] }) => string} */
const says = ({ limit, kept: [a, b] }) =>
  say(
    "Orange: read more in B. Purple: read more in A. The colours go from {least} to {most}. Of " +
      "all weight in these rows, {share_a} in A and {share_b} in B is on tokens of both.",
    { ...colourEnds(limit), share_a: percentText(a, 1), share_b: percentText(b, 1) },
  );

// The compared heads, [A's, B's]: by default the page's chosen head, in B if it exists there. choose(heads)
// picks others.
/** @type {(a: import("../../web/types").Run, b: import("../../web/types").Run) => { heads: import("./types").ComparedHead[], choose: (heads: import("./types").ComparedHead[]) => void }} */
const useHeads = (a, b) => {
  const [heads, choose] = useState(/** @type {import("./types").ComparedHead[]} */ ([]));
  const { head } = page;
  useLayoutEffect(() => {
    if (!head) return;
    const first = nearest(a, head);
    choose([first, nearest(b, alike(a, b) ? first : (heads[1] ?? first))]);
  }, [a.run, b.run, head && siteName(head), head?.head]);
  // Clamp to the current runs: `heads` holds the previous pair's until the effect runs.
  return { heads: heads.map((one, place) => nearest([a, b][place], one)), choose };
};

// pair: {run, other}, the ids of A and B; a, b: all of them.
/** @param {import("./types").Compared} props */
const Difference = ({ pair, a, b }) => {
  const part = usePart();
  const { heads, choose } = useHeads(a, b);
  const [first, second] = heads;
  const wanted = first && {
    ...pair,
    site: siteName(first),
    head: first.head,
    other_site: siteName(second),
    other_head: second.head,
  };
  const { answer, asked } = useAnswer(part, "difference", wanted);
  const meta = answer?.figure?.layout.meta ?? {};
  /** @type {(place: number, changed: Partial<import("./types").ComparedHead>) => void} */
  const pick = (place, changed) => {
    const now = heads.map((head, at) => (at === place ? { ...head, ...changed } : head));
    choose(alike(a, b) ? [now[0], now[0]] : now);
    const [{ head: number, ...site }] = now;
    if (number !== "mean") setHead({ ...site, head: number });
  };
  /** @param {number} place @param {import("../../web/types").Run} facts @param {string[]} words @param {string[]} classes */
  const pickers = (place, facts, [ofSite, ofHead], classes) => {
    const sites = sitesOf(facts);
    const hidden = place === 1 && alike(a, b);
    const at = heads[place] ?? { ...sites[0], head: 0 };
    const pickSite = (/** @type {string} */ name) =>
      pick(place, sites.find((site) => siteName(site) === name) ?? {});
    const pickHead = (/** @type {string} */ head) =>
      pick(place, { head: head === "mean" ? head : Number(head) });
    return html`<label hidden=${hidden}>${ofSite} <${Select} class=${classes[0]}
        options=${sites.map(inWords)} value=${siteName(at)} set=${pickSite} /></label>
      <label hidden=${hidden}>${ofHead} <${Select} class=${classes[1]}
        options=${headsOf(facts)} value=${at.head} set=${pickHead} /></label>`;
  };
  const none = answer?.none;
  return html`<section class="compare-attention" ...${part.attributes(asked)}>
    <h4>${say("Attention: weights in B − weights in A, on the tokens of both")}</h4>
    <div class="whatif-head">
      ${pickers(0, a, [say("Attention"), say("head")], ["pick-site", "pick-of-heads"])}
      ${pickers(1, b, [say("in B"), say("head")], ["pick-other-site", "pick-other-heads"])}
    </div>
    <p class="difference-says">${none ? asSentence(none) : meta.kept && says(meta)}</p>
    <${Figure} part=${part} name="difference" figure=${answer?.figure} hidden=${Boolean(none)}
      fit=${{ side: { width: Math.min(WIDEST_PX, part.width), height: WIDEST_PX }, bar: true }} />
  </section>`;
};

const NONE = say("There is no second run yet: generate one, or branch above.");

/** @param {{ others: import("../../web/types").PastRun[], gone: string[], b: string, choose: (run: string) => void }} props */
const Choice = ({ others, gone, b, choose }) => {
  const option = (/** @type {import("../../web/types").PastRun} */ entry) => {
    const { run } = entry.facts;
    const lost = gone.includes(run);
    const name = lost
      ? say("{title}: {part}", {
          title: runName(entry),
          part: say("no longer kept by the server"),
        })
      : runName(entry);
    return html`<option key=${run} value=${run} disabled=${lost} selected=${run === b}>${name}</option>`;
  };
  const shown = page.run && pastRun(page.run.run);
  const other = pastRun(b)?.facts;
  const changes = other?.interventions.map(({ is }) => is) ?? [];
  const write = () => other && alter(changes, [], other.text);
  return html`<div class="whatif-head compare-head" hidden=${!others.length}>
    <label>A: <span class="compare-a"><bdi>${shown && runName(shown)}</bdi></span></label>
    <label>B: <select class="compare-b" onChange=${(/** @type {import("../../web/types").ChangeOf<HTMLSelectElement>} */ { target }) => choose(target.value)}>
      ${others.map(option)}
    </select></label>
    ${isOnlyRead(other) && html`<span class="whatif-buttons"><button type="button" class="main" onClick=${write}>${say("Write B on")}</button></span>`}
  </div>
  <p class="compare-none" hidden=${others.length > 0}>${NONE}</p>`;
};

// B unless another was chosen: the intact run of an altered text, else the newest other one that wrote something.
/** @type {(others: import("../../web/types").PastRun[]) => import("../../web/types").PastRun | undefined} */
const usual = (others) => {
  const { text, model } = page.run ?? {};
  const isIntact = (/** @type {import("../../web/types").PastRun} */ { facts }) =>
    facts.text === text && facts.model === model && !facts.interventions.length;
  const wrote = others.find(({ facts }) => facts.probabilities.length > 0);
  return (page.run?.interventions.length && others.find(isIntact)) || wrote || others[0];
};

const Compare = () => {
  const part = usePart();
  const run = page.run?.run;
  const runs = pastRuns.map(({ facts }) => facts.run);
  const gone = useGone(part, run ? runs : null);
  const others = pastRuns.filter(({ facts }) => facts.run !== run).reverse();
  const kept = others.filter(({ facts }) => !gone.includes(facts.run));
  const entry = kept.find(({ facts }) => facts.run === compared.run) ?? usual(kept);
  const other = entry?.facts.run ?? "";
  const two = entry && { pair: { run, other }, a: page.run, b: entry.facts };
  const body = two && [Texts, Outcomes, Difference].map((Part) => html`<${Part} ...${two} />`);
  return html`<section class="compare whatif" ...${part.attributes({})} data-run=${run}
    data-other=${other}>
    <p>${say("A is the run that is shown. B is any other run of this visit: another branch, setting, prompt, alteration or model. To compare with another model, choose it above, generate, and come back here.")}</p>
    <${Choice} b=${other} others=${others} gone=${gone}
      choose=${(/** @type {string} */ b) => (compared.run = b)} />
    <div class="compare-body" hidden=${!two}>${body}</div>
  </section>`;
};
const finding = () => {
  const runs = page.run ? pastRuns.length : 0;
  return runs > 1 ? say("{n} runs of this visit", { n: runs }) : null;
};
export const mount = mounted(Compare, finding);
