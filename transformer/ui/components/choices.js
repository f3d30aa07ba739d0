// The switches above the attention picture, and which of them a picture has.
(() => {
  "use strict";
  const viz = window.viz;
  const SWITCHES = {
    pictures: "picture", stages: "stage", depths: "depth", scales: "scale", ranges: "range",
    thresholds: "threshold", over: "over_heads", by: "by",
  };

  // The switches of `element` set fields of `state`; changed() then draws. kind(): the kind of
  // attention that is shown. Returns draw(), which offers what fits the picture and the kind.
  viz.attentionSwitches = (element, state, kind, changed) => {
    const find = (selector) => element.querySelector(selector);
    const texts = ([group, field]) => [field, [...element.querySelectorAll(`.${group} input`)].map((one) => one.value)];
    viz.link.choices(state, Object.fromEntries(Object.entries(SWITCHES).map(texts)), changed);
    for (const [group, field] of Object.entries(SWITCHES)) {
      for (const input of element.querySelectorAll(`.${group} input`)) {
        input.name = `attention-${field}`;
        input.addEventListener("change", () => {
          state[field] = input.value;
          changed();
        });
      }
    }
    return () => {
      const { kind: sort } = kind();
      for (const label of element.querySelectorAll("[data-kind]")) {
        label.hidden = label.dataset.kind !== sort;
        if (label.hidden && label.firstElementChild.value === state.picture) state.picture = "heatmap";
      }
      for (const [group, field] of Object.entries(SWITCHES)) {
        for (const input of element.querySelectorAll(`.${group} input`)) input.checked = input.value === state[field];
      }
      for (const part of element.querySelectorAll("[data-for]")) {
        part.hidden = !part.dataset.for.split(" ").includes(state.picture);
      }
      const upto = state.picture === "mean" || state.layer === 0 ? "" : "0 to ";
      find(".depths span").textContent = `${upto}${state.layer}`;
      for (const input of element.querySelectorAll(".scales input, .ranges input")) {
        input.disabled = state.picture === "heatmap" && state.stage !== "weights";
      }
      const note = viz.pictureNotes[state.picture];
      find(".picture-note").textContent = note ?? "";
      find(".picture-note").hidden = !note;
    };
  };

  // One button for each kind of attention of the run, the chosen one checked.
  viz.kindButtons = (box, chosen, choose) => {
    box.hidden = viz.run.kinds.length < 2;
    box.replaceChildren(...viz.run.kinds.map(({ stack, kind }, index) => {
      const button = viz.el("button", "kind", `${stack} ${kind}`);
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(index === chosen));
      button.addEventListener("click", () => choose({ stack, kind }));
      return button;
    }));
  };
})();
