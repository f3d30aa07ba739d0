// A drawing of the network, and a list of its blocks as buttons that open their views.

import { hasMoved } from "../../web/pointer.js";
import { inPx } from "../../web/cells.js";
import { fields } from "../../web/fields.js";
import { declared } from "../../web/declared.js";
import { shell, page, setHead } from "../../web/store.js";
import { hasServer } from "../../web/ask.js";
import { capital, say, sayList, sayN, sayWith, wholeText } from "../../web/messages.js";
import { stackOf } from "../../web/sites.js";
import { Figure } from "../../web/figure.js";
import { mounted, useAnswer, useEvent, usePart, openSection } from "../../web/part.js";
import { html, useState } from "../../web/preact.js";

const SPARE_PX = 290; // width that the list needs next to the drawing
const TOP_PX = 4; // above the drawing
const INSIDE = ["self", "cross", "feed_forward", "norm"]; // kinds of the blocks of a layer

const fitted = ({ data, layout }) => {
  // The text next to the drawing replaces hover labels, which would hide blocks.
  for (const trace of data) Object.assign(trace, { hoverinfo: "none", hovertemplate: null });
  layout.margin = { ...layout.margin, t: TOP_PX };
  layout.width = layout.meta.width + layout.margin.l + layout.margin.r;
  layout.height = layout.meta.height + TOP_PX + layout.margin.b;
};

// ---- words ----

const computedBy = (name) => {
  const model = html`<bdi translate=${false}>${name}</bdi>`;
  if (!page.inBrowser.includes(name))
    return hasServer() && sayWith("The server computes {model}.", { model });
  return hasServer()
    ? sayWith(
        "This browser computes {model}; the server is asked only what the browser cannot answer.",
        { model },
      )
    : sayWith("This browser computes {model}.", { model });
};
const tokensInWords = ({ labels, trace_start: start, source_labels: source }) => {
  const count = labels.length - start;
  return source.length
    ? say(
        "S and T: tokens of the source and of the translation ({n_source} and {n_target} in " +
          "this run).",
        { n_source: source.length, n_target: count },
      )
    : say("T: tokens of the text ({count} in this run).", { count });
};
const parameters = ({ each, times, shared_with: owner }, blocks) => {
  if (!each && owner) {
    const { title } = blocks.find(({ name }) => name === owner);
    return say("0 of its own, shared with “{title}”", { title });
  }
  return times > 1
    ? say("{each} × {times} parameters", { each: wholeText(each), times })
    : say("{each} parameters", { each: wholeText(each) });
};
const Explanation = ({ block, blocks, leads }) => {
  if (!block) return say("Point at a block to read what it does; press it to open its view.");
  const tab = leads[block.kind]?.title;
  return html`<b>${block.title}</b>${` ${say("{sentence}.", { sentence: sayList([block.shape, parameters(block, blocks)]) })} ${block.does}`}${
    tab && ` ${say("Press to open {tab}.", { tab })}`
  }`;
};

// ---- the list ----

// The blocks in order, as {title, blocks}: a group for each stack, and one for its layers.
const groupsOf = (blocks) => {
  /** @type {any[]} */
  const groups = [];
  for (const block of blocks) {
    const { stack, times, kind } = block;
    const where =
      times > 1 || INSIDE.includes(kind)
        ? sayN("in {n} layer", "in each of {n} layers", times)
        : "";
    const last = groups[groups.length - 1];
    if (stack === last?.stack && where === last.where) last.blocks.push(block);
    else {
      const names = stack === last?.stack ? [where || say("after the layers")] : [stackOf(stack)];
      if (stack !== last?.stack && where) names.push(where);
      groups.push({ stack, where, title: capital(sayList(names)), blocks: [block] });
    }
  }
  return groups;
};
const List = ({ blocks, leads, here, show, open }) => {
  const one = (block) => {
    const tab = leads[block.kind]?.title;
    const look = block === here ? "part is-here" : "part";
    return html`<li><button type="button" class=${look} data-block=${block.name}
      onClick=${() => open(block)} onFocus=${() => show(block)} onPointerEnter=${(event) => hasMoved(event) && show(block)}>
      <b>${block.title}</b><span class="facts">${`${block.shape} · ${parameters(block, blocks)}`}</span>
      <span class="goes">${tab && `${tab} ›`}</span>
    </button></li>`;
  };
  const group = ({ title, blocks: some }) => [
    html`<h4>${title}</h4>`,
    html`<ul class="parts">${some.map(one)}</ul>`,
  ];
  return html`<div class="architecture-list" onPointerLeave=${() => show(null)}>
    ${groupsOf(blocks).map(group)}
  </div>`;
};

// Open the view of a block, or its formula.
const follow = ({ stack, kind }, leads) => {
  const { tab: name, equation } = leads[kind] ?? {};
  if (equation) {
    if (page.head?.stack !== stack) setHead({ stack, kind: "self", layer: 0, head: 0 });
    fields.equation = equation;
    openSection("equations");
  }
  if (!(name in declared.page.tab.options)) return;
  if (name === "attention" && (page.head?.stack !== stack || page.head?.kind !== kind)) {
    setHead({ stack, kind, layer: 0, head: 0 });
  }
  const tab = shell.openTab(name);
  tab?.focus();
  tab?.scrollIntoView({ block: "nearest" });
};

// ---- the part ----

const Architecture = () => {
  const part = usePart();
  const { run } = page;
  const { answer, asked } = useAnswer(part, "architecture", run && { run: run.run });
  const layout = answer?.figure.layout;
  const [name, setName] = useState(/** @type {string | null} */ (null)); // of the described block
  useEvent("run", () => setName(null));
  const blocks = layout?.meta.blocks ?? [];
  const blockOf = (wanted) => blocks.find((block) => block.name === wanted);
  const here = blockOf(name);
  const show = (block) => setName(block?.name ?? null);
  const open = (block) => {
    show(block);
    follow(block, answer.leads);
  };
  const at = here && {
    left: layout.margin.l + here.x,
    top: TOP_PX + layout.meta.height - here.y - here.height,
    width: here.width,
    height: here.height,
  };
  const on = {
    plotly_hover: ({ points }) => setName(points[0].customdata),
    plotly_unhover: () => setName(null),
    plotly_click: ({ points }) => open(blockOf(points[0].customdata)),
  };
  const drawing = say("Drawing of the network: {blocks}", {
    blocks: sayList(blocks.map(({ title }) => title)),
  });
  const inColumns = layout && layout.width + SPARE_PX <= part.width;
  return html`<div class=${inColumns ? "architecture in-columns" : "architecture"}
    ...${part.attributes({ run: asked?.run, blocks: layout && blocks.length })}>
    <div class="architecture-body">
      <div class="architecture-drawing" tabindex="0" role="region" aria-label=${drawing}>
        <${Figure} part=${part} name="architecture" figure=${answer?.figure} label=${drawing}
          change=${fitted} on=${on} table=${false} />
        <div class="here" hidden=${!here} style=${inPx(at ?? {})} />
        <p class="computed-by">${run && computedBy(run.model)}</p>
      </div>
      <div>
        <h3 class="architecture-title">${
          layout &&
          say("{title}, {n_parameters} parameters", {
            title: layout.title.text,
            n_parameters: wholeText(layout.meta.n_parameters),
          })
        }</h3>
        <p class="architecture-letters">${run && tokensInWords(run)}</p>
        <p class="architecture-says" role="status"><${Explanation} block=${here} ...${{ blocks, leads: answer?.leads }} /></p>
        <${List} leads=${answer?.leads} ...${{ blocks, here, show, open }} />
      </div>
    </div>
  </div>`;
};
export const mount = mounted(Architecture);
