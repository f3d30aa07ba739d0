// The network as a drawing, and its blocks as a list of buttons: each leads to its view.

import { ask } from "../../ui/static/ask.js";
import { el, finder } from "../../ui/static/dom.js";
import { openTab, tabButtons } from "../../ui/static/gradio.js";
import { capital, say, wholeText } from "../../ui/static/messages.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { stackOf } from "../../ui/static/site_words.js";
import { emit, page, setHead } from "../../web/store.js";

/** @param {import("../../web/store.js").Mounted} mounted */
export function mount({ element, server }) {
  const find = finder(element);
  const root = find(".architecture");
  const box = find("[data-picture=architecture]");
  const HINT = say("Point at a block to read what it does; press it to open its view.");
  const SPARE_PX = 290; // what the list needs beside the drawing
  /** @type {Record<string, any>} */
  const state = { blocks: [], leads: {}, margin: null, height: 0 };

  const draw = async (current) => {
    if (!page.run) return;
    const { run } = page.run;
    const answer = await ask(server.architecture, { run, dark: page.dark });
    if (!current()) return;
    const { layout } = JSON.parse(answer.figure);
    Object.assign(state, {
      blocks: layout.meta.blocks,
      leads: answer.leads,
      height: layout.meta.height,
    });
    words(layout);
    if (root.dataset.run !== run) list();
    const room = root.clientWidth;
    root.classList.toggle("beside", layout.width + SPARE_PX <= room);
    await picture(answer.figure);
    Object.assign(root.dataset, { run, blocks: state.blocks.length });
  };

  const picture = async (json) => {
    const change = ({ data, layout }) => {
      // What a block is stands in words of its own, where it hides nothing.
      for (const trace of data) Object.assign(trace, { hoverinfo: "none", hovertemplate: null });
      layout.margin = state.margin = { ...layout.margin, t: 4 };
      layout.width = layout.meta.width + layout.margin.l + layout.margin.r;
      layout.height = layout.meta.height + layout.margin.t + layout.margin.b;
    };
    const on = {
      plotly_hover: ({ points }) => show(blockOf(points[0].customdata)),
      plotly_unhover: () => show(null),
      plotly_click: ({ points }) => open(blockOf(points[0].customdata)),
    };
    await drawFigure(box, json, { change, on, table: false }); // the list beside it is its table
    box.setAttribute(
      "aria-label",
      say("Drawing of the network: {blocks}", {
        blocks: state.blocks.map((b) => b.title).join(", "),
      }),
    );
  };
  const blockOf = (name) => state.blocks.find((block) => block.name === name);

  // ---- words ----

  const words = ({ title, meta }) => {
    find(".architecture-title").textContent = say("{title}, {n_parameters} parameters", {
      title: title.text,
      n_parameters: wholeText(meta.n_parameters),
    });
    const { labels, trace_start: start, source_labels: source } = page.run;
    const count = labels.length - start;
    find(".architecture-letters").textContent = source.length
      ? say(
          "S and T: tokens of the source and of the translation ({n_source} and {n_target} in " +
            "this run).",
          { n_source: source.length, n_target: count },
        )
      : say("T: tokens of the text ({count} in this run).", { count });
  };
  const parameters = ({ each, times, shared_with: owner }) => {
    if (!each && owner)
      return say("0 of its own, shared with “{title}”", { title: blockOf(owner).title });
    return times > 1
      ? say("{each} × {times} parameters", { each: wholeText(each), times })
      : say("{each} parameters", { each: wholeText(each) });
  };

  // Tell what a block is, and mark it in drawing and list; null lets go.
  const show = (block) => {
    for (const button of element.querySelectorAll(".part")) {
      button.classList.toggle("is-here", button.dataset.block === block?.name);
    }
    const here = find(".here");
    here.hidden = !block;
    if (block && state.margin) {
      const at = {
        left: state.margin.l + block.x,
        top: state.margin.t + state.height - block.y - block.height,
        width: block.width,
        height: block.height,
      };
      for (const [key, value] of Object.entries(at)) here.style[key] = `${value}px`;
    }
    const says = find(".architecture-says");
    if (!block) {
      says.textContent = HINT;
      return;
    }
    const tab = state.leads[block.kind]?.title;
    says.replaceChildren(
      el("b", "", block.title),
      ` ${block.shape}, ${parameters(block)}. ${block.does}`,
      tab ? ` ${say("Press to open {tab}.", { tab })}` : "",
    );
  };

  // ---- the list ----

  const list = () => {
    const made = [];
    /** @type {any} */
    let group = null;
    /** @type {any} */
    let stack = null;
    for (const block of state.blocks) {
      const where =
        block.times > 1 || isInside(block)
          ? say("in each of {times} layers", { times: block.times })
          : "";
      if (block.stack !== stack || where !== group) {
        const name = block.stack !== stack ? [stackOf(block.stack)] : [];
        if (where) name.push(where);
        else if (!name.length) name.push(say("after the layers"));
        made.push(el("h4", "", capital(name.join(", "))), el("ul", "parts"));
      }
      [stack, group] = [block.stack, where];
      const item = el("li");
      item.append(buttonOf(block));
      made[made.length - 1].append(item);
    }
    find(".architecture-list").replaceChildren(...made);
    show(null);
  };
  const isInside = ({ kind }) => ["self", "cross", "feed_forward", "norm"].includes(kind);
  const buttonOf = (block) => {
    const button = el("button", "part");
    button.dataset.block = block.name;
    const tab = state.leads[block.kind]?.title;
    const facts = el("span", "facts", `${block.shape} · ${parameters(block)}`);
    button.append(el("b", "", block.title), facts, el("span", "goes", tab ? `${tab} ›` : ""));
    button.addEventListener("click", () => open(block));
    button.addEventListener("focus", () => show(block));
    button.addEventListener("pointerenter", () => show(block));
    return button;
  };
  find(".architecture-list").addEventListener("pointerleave", () => show(null));

  // ---- where a block leads ----

  const open = (block) => {
    show(block);
    const { tab: name, equation } = state.leads[block.kind] ?? {};
    const { stack, kind } = block;
    if (equation) {
      if (page.head?.stack !== stack) setHead({ stack, kind: "self", layer: 0, head: 0 });
      emit("equation", equation);
    }
    if (!tabButtons().has(name)) return;
    if (name === "attention" && (page.head?.stack !== stack || page.head?.kind !== kind)) {
      setHead({ stack, kind, layer: 0, head: 0 });
    }
    const tab = openTab(name);
    tab?.focus();
    tab?.scrollIntoView({ block: "nearest" });
  };

  redrawWhen(root, ["run"], draw);
}
