// The attention pictures that the server made, kept in the page, and what they are called.
(() => {
  "use strict";
  const viz = window.viz;
  const KEPT = 64; // figures, and numbers
  const MANY = ["mean", "rollout", "joint"]; // pictures of many heads put together

  viz.pictureNotes = {
    mean: "The average of the heads; no single head need look like it.",
    rollout: "Half mean of the heads, half residual, multiplied over the layers; values and feed-forward layers are left out, so it is not what a prediction was made from.",
    joint: "Mean of the heads multiplied over the layers as if there were no residual; values and feed-forward layers are left out too, so it is not what a prediction was made from.",
    lines: "Lines of all queries, faint, until a token is chosen: in the text, or here at the left.",
  };

  // The heading of the picture that `state` asks for, of a kind {stack, kind, n_layers}.
  viz.pictureTitle = (state, { stack, kind, n_layers: count }) => {
    const { layer, head, stage, depth, picture, over_heads: over } = state;
    const name = viz.headName(layer, head);
    const last = depth === "all" ? count - 1 : layer;
    const layers = last === 0 ? "layer 0" : `layers 0 to ${last}`;
    const whose = { head: `layer ${layer}, head ${head}`, layer: `layer ${layer}, mean of its heads`, all: "mean of all heads" };
    return {
      heatmap: `${name}: ${stack} ${kind}-attention, ${stage}`,
      lines: `${name}: ${stack} ${kind}-attention, lines`,
      alignment: `Most-read source token: ${whose[over]}`,
      mean: `Mean of the heads, ${depth === "all" ? "all layers" : `layer ${layer}`}: ${stack} ${kind}-attention`,
      rollout: `Attention rollout, ${layers}: ${stack} self-attention`,
      joint: `Joint attention, ${layers}: ${stack} self-attention`,
    }[picture];
  };

  // Returns get(state, kind), which gives {numbers, figure} (fetched once), and forget().
  // numbers: {scores, weights, allowed, labels: {query, key}}; scores are null for many heads.
  viz.pictureStore = (server) => {
    let figures = new Map();
    let numbersOf = new Map();
    const keep = (table, key, value) => {
      if (table.size >= KEPT) table.delete(table.keys().next().value);
      table.set(key, value);
    };

    // What to ask: the place whose numbers are shown, the look that its figure has, and of whom.
    const question = (state, { stack, kind }) => {
      const { picture, layer, head, depth, stage, scale, range } = state;
      const look = { scale, range_: range, dark: viz.dark };
      const run = viz.run.run;
      if (MANY.includes(picture)) {
        const place = { run, which: picture, stack, kind, layer: depth === "all" ? null : layer };
        return { ask: server.flow, place, look };
      }
      const place = { run, site: viz.siteName({ stack, layer, kind }), head };
      return { ask: server.heatmap, place, look: { ...look, stage } };
    };

    const get = async (state, kind) => {
      const { ask, place, look } = question(state, kind);
      const [name, key] = [JSON.stringify(place), JSON.stringify([place, look])];
      if (!numbersOf.has(name) || !figures.has(key)) {
        const wanted = ask === server.heatmap ? { numbers: !numbersOf.has(name), cells: false } : {};
        const answer = await viz.ask(ask, { ...place, ...look, ...wanted });
        keep(figures, key, answer.figure);
        const labels = { query: answer.query_labels, key: answer.key_labels };
        if (answer.scores) {
          keep(numbersOf, name, { ...viz.headNumbers(answer), floor: answer.floor, labels });
        } else if (answer.weights) {
          const [weights, allowed] = [viz.floats(answer.weights), viz.bytes(answer.allowed)];
          keep(numbersOf, name, { scores: null, weights, allowed, labels });
        }
      }
      return { numbers: numbersOf.get(name), figure: figures.get(key) };
    };
    const forget = () => {
      figures = new Map();
      numbersOf = new Map();
    };
    return { get, forget };
  };
})();
