// How the attention of two runs differs, in heads that are chosen here.

import { colourEnds, numeral, say } from "../../web/messages.js";
import { kindOf, siteName, sitesOf } from "../../web/sites.js";
import { Select } from "../../web/controls.js";
import { Figure, useMeta } from "../../web/figure.js";
import { useAnswer, usePart } from "../../web/part.js";
import { html, useLayoutEffect, useState } from "../../web/preact.js";
import { page, setHead } from "../../web/store.js";

const WIDEST_PX = 720; // of the difference of two heads

const alike = (a, b) =>
  a.n_heads === b.n_heads && sitesOf(a).map(siteName).join() === sitesOf(b).map(siteName).join();
const headsOf = ({ n_heads: count }) => [
  ...Array.from({ length: count }, (_, head) => [head, String(head)]),
  ["mean", say("mean of all")],
];
const inWords = (site) => [
  siteName(site),
  say("{attention}, layer {layer}", { attention: kindOf(site), layer: site.layer }),
];
const nearest = (facts, { stack, layer, kind, head }) => {
  const sites = sitesOf(facts);
  const found =
    sites.find((site) => siteName(site) === siteName({ stack, layer, kind })) ??
    sites.find((site) => site.kind === kind) ??
    sites[0];
  return { ...found, head: head === "mean" || head < facts.n_heads ? head : 0 };
};
const share = (part) => `${numeral((100 * part).toFixed(1))} %`;
const says = ({ limit, kept: [a, b] }) =>
  say(
    "Orange: read more in B. Blue: read more in A. The colours go from {least} to {most}. Of " +
      "all weight in these rows, {share_a} in A and {share_b} in B is on tokens of both.",
    {
      ...colourEnds(limit),
      share_a: share(a),
      share_b: share(b),
    },
  );

// The heads of A and of B that are compared, [A's, B's]: the page's chosen one is A's, and B's as far
// as it has such a one. choose(heads) picks others.
const useHeads = (a, b) => {
  const [heads, choose] = useState(/** @type {any[]} */ ([]));
  const { head } = page;
  useLayoutEffect(() => {
    if (!head) return;
    const first = nearest(a, head);
    choose([first, nearest(b, alike(a, b) ? first : (heads[1] ?? first))]);
  }, [a.run, b.run, head && siteName(head), head?.head]);
  return { heads, choose };
};

// pair: {run, other}, the ids of A and B; a, b: all of them.
export const Difference = ({ pair, a, b }) => {
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
  const { answer, asked } = useAnswer(part, "difference", wanted && { ...wanted, dark: page.dark });
  const meta = useMeta(answer?.figure);
  const pick = (place, changed) => {
    const now = heads.map((head, at) => (at === place ? { ...head, ...changed } : head));
    choose(alike(a, b) ? [now[0], now[0]] : now);
    if (now[0].head !== "mean") setHead(now[0]);
  };
  const pickers = (place, facts, [ofSite, ofHead], classes) => {
    const sites = sitesOf(facts);
    const hidden = place === 1 && alike(a, b);
    const at = heads[place] ?? { ...sites[0], head: 0 };
    const pickSite = (name) =>
      pick(
        place,
        sites.find((site) => siteName(site) === name),
      );
    const pickHead = (head) => pick(place, { head: head === "mean" ? head : Number(head) });
    return html`<label hidden=${hidden}>${ofSite} <${Select} class=${classes[0]}
        options=${sites.map(inWords)} value=${siteName(at)} set=${pickSite} /></label>
      <label hidden=${hidden}>${ofHead} <${Select} class=${classes[1]}
        options=${headsOf(facts)} value=${at.head} set=${pickHead} /></label>`;
  };
  const none = answer?.none;
  return html`<section class="compare-attention" ...${part.shows(asked)}>
    <h4>${say("Attention: weights in B − weights in A, on the tokens of both")}</h4>
    <div class="whatif-head">
      ${pickers(0, a, [say("Attention"), say("head")], ["pick-site", "pick-of-heads"])}
      ${pickers(1, b, [say("in B"), say("head")], ["pick-other-site", "pick-other-heads"])}
    </div>
    <p class="difference-says">${
      none ? say("There is nothing to draw: {reason}.", { reason: none }) : meta.kept && says(meta)
    }</p>
    <${Figure} part=${part} name="difference" figure=${answer?.figure} hidden=${Boolean(none)}
      fit=${{ side: { width: Math.min(WIDEST_PX, part.width), height: WIDEST_PX }, bar: true }} />
  </section>`;
};
