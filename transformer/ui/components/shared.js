// What the page's components share: the current run, events between them, and small helpers.
// Text from visitors and models reaches the page through textContent only.
(() => {
  "use strict";
  const listeners = new Map();
  const viz = (window.viz = { run: null, batch: null, query: null, head: null, dark: false });

  viz.on = (name, listener) => {
    if (!listeners.has(name)) listeners.set(name, new Set());
    listeners.get(name).add(listener);
  };
  viz.emit = (name, detail) => {
    for (const listener of listeners.get(name) ?? []) listener(detail);
  };

  // A finished run, or a batch, that the pictures are to show.
  viz.setRun = (run) => {
    viz.run = run;
    viz.query = null;
    viz.emit("run", run);
    viz.emit("query", null);
  };
  viz.setBatch = (batch) => {
    viz.batch = batch;
    viz.emit("batch", batch);
  };
  // The chosen token, {stack, index}: its place in the whole text that a stack reads; null lets go.
  viz.setQuery = (query) => {
    if (viz.same(viz.query, query)) return;
    viz.query = query;
    viz.emit("query", query);
  };
  // The chosen head, {stack, kind, layer, head}; set by the grid and by whatever else names a head.
  viz.setHead = (head) => {
    const same = ["stack", "kind", "layer", "head"].every((part) => viz.head?.[part] === head?.[part]);
    if (same) return;
    viz.head = head;
    viz.emit("head", head);
  };
  viz.same = (a, b) => a?.stack === b?.stack && a?.index === b?.index;
  // The first token of a stack's attention, by its place in the whole text.
  viz.offset = (stack) => (stack === viz.run.stack ? viz.run.trace_start : 0);
  viz.say = (text) => viz.emit("problem", text);

  viz.el = (tag, className, text) => {
    const made = document.createElement(tag);
    if (tag === "button") made.type = "button";
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Fill a select with options [[value, text], ...].
  viz.options = (select, values, chosen) => select.replaceChildren(...values.map(([value, text]) => {
    const option = viz.el("option", "", text);
    return Object.assign(option, { value, selected: String(value) === String(chosen) });
  }));

  // A token with its marks for space, newline and tab set back, so that the word stands out.
  viz.token = (label) => {
    const made = viz.el("bdi");
    for (const part of String(label).split(/([␣⏎⇥]+)/u)) {
      if (part) made.append(/^[␣⏎⇥]/u.test(part) ? viz.el("span", "mark", part) : part);
    }
    return made;
  };

  viz.bytes = (base64) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // a large head: 7 ms less
    const text = atob(base64);
    const found = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) found[at] = text.charCodeAt(at);
    return found;
  };
  viz.floats = (base64) => new Float32Array(viz.bytes(base64).buffer);

  // Ask the server; a refusal becomes an Error with the server's own sentence. A question that is
  // on its way already is not asked again.
  const asked = new Map();
  viz.ask = (question, data) => {
    const key = `${nameOf(question)} ${JSON.stringify(data)}`;
    if (!asked.has(key)) asked.set(key, reply(question, data).finally(() => asked.delete(key)));
    return asked.get(key);
  };
  viz.gone =
    "The server no longer keeps this run: newer ones took its room, or nobody looked at it for an hour. "
    + "Press the button to make it again; or load the page anew, which makes the same run and view.";
  const names = new Map();
  const nameOf = (question) => {
    if (!names.has(question)) names.set(question, names.size);
    return names.get(question);
  };
  const reply = async (question, data) => {
    const answer = await question(data);
    if (answer === undefined || answer === null) {
      throw new Error("The server did not answer; is it still running?");
    }
    if (answer.error) throw new Error(answer.gone ? viz.gone : answer.error);
    return answer;
  };

  // Every place of attention in a run or a batch, and its name, "decoder.0.self" for one.
  viz.sitesOf = ({ kinds }) => kinds.flatMap(({ stack, kind, n_layers: count }) =>
    Array.from({ length: count }, (_, layer) => ({ stack, layer, kind })));
  viz.siteName = ({ stack, layer, kind }) => `${stack}.${layer}.${kind}`;

  // The chosen token as a row of a stack's trace; null without one there.
  viz.chosenRow = (stack) => {
    const place = viz.query?.stack === stack ? viz.query.index - viz.offset(stack) : -1;
    return place < 0 ? null : place;
  };
  // A difference that should be next to nothing: "1.2e−7", or "0".
  viz.tiny = (value) => (value === 0 ? "0" : value.toExponential(1).replace("-", "−"));

  viz.painted = () =>
    new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

  // Keep `root` drawn: again on each of `events`, on a change of theme or width, and only while it
  // can be seen; in a tab that was left, its pictures go. draw(current) may stop early once current()
  // is false. aria-busy while what stands there is not what it should be, until it is painted; then
  // sets data-rev, and once data-first-ms, the time since the visitor asked for the page.
  viz.keepDrawn = (root, events, draw) => {
    let stale = true;
    let seen = false;
    let ticket = 0;
    let width = 0;
    const go = async () => {
      if (!stale || !seen) return;
      stale = false;
      root.ariaBusy = "true";
      const mine = ++ticket;
      const current = () => mine === ticket;
      try {
        await draw(current);
        if (!current()) return;
        await viz.painted();
        root.dataset.rev = String(Number(root.dataset.rev ?? 0) + 1);
        root.dataset.firstMs ??= performance.now().toFixed(0);
      } catch (error) {
        if (current()) viz.say(error.message);
      } finally {
        if (current()) root.ariaBusy = null;
      }
    };
    const spoil = () => {
      stale = true;
      ticket += 1;
      root.ariaBusy = "true";
    };
    const refresh = () => {
      spoil();
      go();
    };
    new IntersectionObserver((entries) => {
      seen = entries[entries.length - 1].isIntersecting;
      if (!seen && root.getClientRects().length === 0 && root.querySelector(".js-plotly-plot")) {
        viz.purge(root); // its tab was left
        spoil();
      }
      go();
    }, { rootMargin: "600px" }).observe(root);
    new ResizeObserver(() => {
      if (root.clientWidth && Math.abs(root.clientWidth - width) > 4) {
        width = root.clientWidth;
        refresh();
      }
    }).observe(root);
    for (const name of [...events, "theme"]) viz.on(name, refresh);
    return refresh;
  };

  // Arrow keys move among the buttons of `root`, of which one is in the tab order.
  viz.arrowKeys = (root, step) => {
    root.addEventListener("keydown", (event) => {
      const buttons = [...root.querySelectorAll("button")];
      const here = buttons.indexOf(document.activeElement);
      const to = here < 0 ? null : step(event.key, here, buttons.length);
      if (to === null || to < 0 || to >= buttons.length) return;
      event.preventDefault();
      buttons[to].focus();
      buttons[to].click();
    });
  };
  viz.rove = (buttons, index) => {
    buttons.forEach((button, place) => (button.tabIndex = place === index ? 0 : -1));
  };

  const watchTheme = () => {
    const update = () => {
      const dark = document.body.classList.contains("dark");
      if (dark === viz.dark) return;
      viz.dark = dark;
      viz.emit("theme", dark);
    };
    new MutationObserver(update).observe(document.body, { attributeFilter: ["class"] });
    update();
  };
  if (document.body) watchTheme();
  else document.addEventListener("DOMContentLoaded", watchTheme);

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      viz.emit("escape");
      viz.setQuery(null);
    }
  });
})();
