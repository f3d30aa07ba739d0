// Between the page and its server: the place in the queue, a refusal, a connection that was lost.
// Gradio asks for results through fetch; what passes is read along, and said in the page's status.
(() => {
  "use strict";
  const viz = window.viz;
  const storageOf = () => {
    try {
      return window.sessionStorage;
    } catch { // a browser may keep a page inside another one from it
      return null;
    }
  };
  const KEPT = "viz-kept"; // in sessionStorage, only from a lost connection until the page is back
  const LOST =
    "The connection to the server was lost. Your text stays; the page comes back with the server.";
  const BACK = "The server is back. Your text is kept: press the button again.";
  const fetched = window.fetch.bind(window);
  const storage = storageOf();
  let session = null;
  let lost = false;

  window.fetch = async (resource, options) => {
    const url = String(resource?.url ?? resource);
    if (url.includes("/queue/join")) return join(resource, options);
    const answer = await fetched(resource, options);
    if (url.includes("/queue/data")) follow(answer.clone().body, options?.signal);
    return answer;
  };

  const join = async (resource, options) => {
    try {
      session = JSON.parse(options.body).session_hash;
    } catch {
      // not a request of this page's own kind: it goes on as it is
    }
    try {
      const answer = await fetched(resource, options);
      if (!answer.ok) answer.clone().json().then(({ detail }) => viz.say(sentence(detail)), () => viz.say(LOST));
      return answer;
    } catch (error) {
      keep();
      throw error;
    }
  };
  const sentence = (detail) => (typeof detail === "string" ? detail : "The server refused the request.");

  // Read the server's messages along; an end without "close_stream" is a loss.
  const follow = async (body, signal) => {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let closed = false;
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) closed = hear(JSON.parse(part.replace(/^data:/, ""))) || closed;
      }
    } catch {
      // told below
    }
    if (!closed && !signal?.aborted) keep();
  };

  const hear = ({ msg, rank, success, output }) => {
    if (msg === "estimation" && rank > 0) {
      viz.emit("waiting", `${rank} ${rank === 1 ? "request" : "requests"} before yours …`);
    } else if (msg === "process_completed" && success === false) {
      viz.say(sentence(output?.error));
    }
    return msg === "close_stream" || msg === "unexpected_error";
  };

  // Gradio loads the page anew once the server answers. What is shown stands in the address; what was
  // typed or set, and not yet run, is handed over to the new page.
  const keep = () => {
    if (!lost) viz.say(LOST);
    lost = true;
  };
  const texts = () => [...document.querySelectorAll("#text textarea, #lines textarea")];
  const model = () => document.querySelector("#model input");
  const id = (control) => control.closest("#text, #lines").id;
  const typed = () => Object.fromEntries(texts().map((control) => [id(control), control.value]));
  // The settings, by their names in a link; none of those that the page has not drawn yet.
  const settings = () => {
    const method = document.querySelector("#method input:checked")?.value;
    const numbers = [...document.querySelectorAll("#settings [class*=setting-]")].map((box) =>
      [/setting-(\w+)/.exec(box.className)[1], box.querySelector("input")?.value]);
    return Object.fromEntries([["method", method], ...numbers].filter(([, value]) => value));
  };
  window.addEventListener("pagehide", () => {
    if (lost) {
      storage?.setItem(KEPT, JSON.stringify({ model: model()?.value, settings: settings(), ...typed() }));
    } else if (session) {
      navigator.sendBeacon(new URL("leave", document.baseURI), session);
    }
  });

  const until = async (found) => {
    while (!found()) await new Promise((done) => setTimeout(done, 50));
    return found();
  };
  const restore = async (kept) => {
    await viz.link.settled;
    await until(() => document.querySelector(".attention[data-rev]"));
    if (kept.model && model() && model().value !== kept.model) {
      model().focus();
      const option = () => document.querySelector(`[role=option][aria-label="${CSS.escape(kept.model)}"]`);
      (await until(option)).dispatchEvent(new MouseEvent("mousedown", { bubbles: true }));
      model().blur();
    }
    const write = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
    for (const control of texts()) {
      if (kept[id(control)] === undefined) continue;
      write.call(control, kept[id(control)]);
      control.dispatchEvent(new Event("input", { bubbles: true }));
    }
    viz.emit("waiting", BACK);
  };
  const kept = JSON.parse(storage?.getItem(KEPT) ?? "null");
  storage?.removeItem(KEPT);
  if (kept) {
    viz.link.reopen(kept.settings); // the share component asks the server for them
    restore(kept);
  }
})();
