// What the controls that alter the network share: the token that is looked at, and which heads are
// silent. viz.alter, viz.branch and viz.interventions are those of altered.js.
(() => {
  "use strict";
  const viz = window.viz;
  const END = /^<\|endoftext\|>$/;

  // Whether the shown model writes text: nothing is altered in one that only reads.
  viz.generates = () => viz.run?.stack === "decoder";

  // The place of the chosen token in the run's text; null without one, or for a token of a source or
  // the first of all (which nothing foresaw).
  viz.chosenPlace = () => {
    const { query, run } = viz;
    return query?.stack === run.stack && query.index > 0 ? query.index : null;
  };
  // The same; else the place of the last token that is no end of the text.
  viz.lookedAt = () => {
    const { labels } = viz.run;
    const last = labels.length - 1;
    return viz.chosenPlace() ?? (last > 1 && END.test(labels[last]) ? last - 1 : last);
  };

  const kindOf = ({ kind }) => kind ?? "self"; // plain values leave out what is the default
  const isOf = (head) => (one) =>
    one.type === "silence" && one.stack === head.stack && kindOf(one) === head.kind && one.layer === head.layer;
  // head, head 3 of a layer for one: {stack, kind, layer, head}.
  viz.isSilent = (head) => viz.interventions().filter(isOf(head)).some(({ heads }) => heads.includes(head.head));

  // The present interventions with this head silenced, or speaking again if it is silent.
  viz.withSilence = (head) => {
    const all = viz.interventions();
    const same = isOf(head);
    if (viz.isSilent(head)) {
      return all
        .map((one) => (same(one) ? { ...one, heads: one.heads.filter((index) => index !== head.head) } : one))
        .filter((one) => one.type !== "silence" || one.heads.length > 0);
    }
    return [...all, viz.silence(head, [head.head])];
  };
  // The plain value of a Silence, at its shortest.
  viz.silence = ({ stack, kind, layer }, heads, by = "zero") => ({
    type: "silence", stack, layer, heads,
    ...(kind === "self" ? {} : { kind }),
    ...(by === "zero" ? {} : { by }),
  });

  // A button that silences the chosen head of the page, or lets it speak.
  viz.silenceButton = (button) => {
    const draw = () => {
      if (!viz.head || !viz.run) return;
      button.disabled = !viz.generates();
      button.textContent = viz.isSilent(viz.head) ? "Let this head speak" : "Silence this head";
    };
    button.addEventListener("click", () => viz.alter(viz.withSilence(viz.head)));
    viz.on("head", draw);
    viz.on("run", draw);
    draw();
  };

  // The same text with another alteration: the token that was looked at stays so.
  let before = null;
  viz.on("run", (run) => {
    const { chosen, text, model, interventions } = before ?? {};
    const now = JSON.stringify(run.interventions);
    const again = chosen && text === run.text && model === run.model && interventions !== now;
    before = { text: run.text, model: run.model, interventions: now, chosen: null };
    if (!again || chosen.index >= (chosen.stack === run.stack ? run.labels : run.source_labels).length) return;
    queueMicrotask(() => viz.query ?? viz.setQuery(chosen)); // once all have heard of the run
  });
  viz.on("query", (query) => {
    if (before) before.chosen = query;
  });
})();
