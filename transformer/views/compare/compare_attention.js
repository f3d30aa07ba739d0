// How the attention of two runs differs, in heads that are chosen here.

import { ask } from "../../ui/static/ask.js";
import { fillSelect } from "../../ui/static/dom.js";
import { numeral, say } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { kindOf } from "../../ui/static/site_words.js";
import { siteName, sitesOf } from "../../ui/static/sites.js";
import { on, page, setHead } from "../../web/store.js";
import { hideTable } from "../../ui/static/tables.js";

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

// pair(): {run, other}, A and B; other(): all of B. whenPair(draw): draws only while there are two.
// Returns takeHead(head).
export const mountDifference = (find, server, { pair, other, whenPair }) => {
  // head, other: what of A and of B is drawn, {stack, layer, kind, head}.
  /** @type {Record<string, any>} */
  const state = { head: null, other: null };
  // The head that the page looks at becomes A's, and B's as far as it has such a one.
  const takeHead = (head) => {
    if (!head || !other()) return;
    state.head = nearest(page.run, head);
    state.other = nearest(
      other(),
      alike(page.run, other()) || !state.other ? state.head : state.other,
    );
    drawPickers();
  };
  const drawPickers = () => {
    const [b, same] = [other(), alike(page.run, other())];
    fillSelect(find(".pick-site"), sitesOf(page.run).map(inWords), siteName(state.head));
    fillSelect(find(".pick-of-heads"), headsOf(page.run), state.head.head);
    fillSelect(find(".pick-other-site"), sitesOf(b).map(inWords), siteName(state.other));
    fillSelect(find(".pick-other-heads"), headsOf(b), state.other.head);
    for (const label of find(".compare-attention").querySelectorAll(".of-b")) label.hidden = same;
  };
  const picked = (site, heads, facts) => ({
    ...sitesOf(facts)[find(site).selectedIndex],
    head: find(heads).value === "mean" ? "mean" : Number(find(heads).value),
  });
  const pick = () => {
    state.head = picked(".pick-site", ".pick-of-heads", page.run);
    state.other = alike(page.run, other())
      ? state.head
      : picked(".pick-other-site", ".pick-other-heads", other());
    drawPickers();
    if (state.head.head !== "mean") setHead(state.head);
    refresh();
  };
  for (const name of [".pick-site", ".pick-of-heads", ".pick-other-site", ".pick-other-heads"]) {
    find(name).addEventListener("change", pick);
  }
  const draw = whenPair(async (current) => {
    if (!state.head) takeHead(page.head);
    if (!state.head) return;
    const { head, other: second } = state;
    const wanted = {
      ...pair(),
      site: siteName(head),
      head: head.head,
      other_site: siteName(second),
      other_head: second.head,
    };
    const answer = await ask(server.difference, { ...wanted, dark: page.dark });
    if (!current()) return;
    const box = find("[data-picture=difference]");
    box.hidden = Boolean(answer.none);
    hideTable(box, box.hidden);
    Object.assign(find(".compare-attention").dataset, wanted);
    if (answer.none)
      return void (find(".difference-says").textContent = say(
        "There is nothing to draw: {reason}.",
        {
          reason: answer.none,
        },
      ));
    const side = { width: Math.min(WIDEST_PX, box.clientWidth), height: WIDEST_PX };
    const {
      layout: { meta },
    } = await drawFigure(box, answer.figure, { fit: { side, bar: true } });
    find(".difference-says").textContent = say(
      "Orange: read more in B. Blue: read more in A. The colours go from {least} to {most}. Of " +
        "all weight in these rows, {share_a} in A and {share_b} in B is on tokens of both.",
      {
        least: numeral((-meta.limit).toPrecision(3)),
        most: numeral(meta.limit.toPrecision(3)),
        share_a: share(meta.kept[0]),
        share_b: share(meta.kept[1]),
      },
    );
  });
  on("head", (head) => {
    if (
      !pair().other ||
      (state.head &&
        head &&
        siteName(head) === siteName(state.head) &&
        head.head === state.head.head)
    )
      return;
    takeHead(head);
    refresh();
  });
  const refresh = redrawWhen(find(".compare-attention"), ["pair"], draw);
  return takeHead;
};
