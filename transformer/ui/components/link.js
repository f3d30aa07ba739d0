// The page's address: all that is chosen on the page stands in it, so that a copy of it shows the
// same elsewhere. It stands behind the "#", which a browser sends to no server: what a visitor typed
// comes into nobody's log. Links of before have it behind the "?", and are read too.
// Each script registers what it owns; names are listed in ui/link.py.
(() => {
  "use strict";
  const viz = window.viz;
  const MOST = 6000; // characters; beyond, the state is compressed, and beyond that there is no link
  const LARGEST = 64000; // bytes that the server inflates
  const PAUSE_MS = 300;
  const WAIT_MS = 5000;
  const HUB = "https://huggingface.co"; // shows a Space inside a page of its own
  const parts = new Map();
  // What the opened link says of parts that are not on the page yet, and its batch until that is.
  let asked = {};
  let unseen = {};
  let model = null; // the one that the page starts with
  let shownOf = null; // the model of which both are
  let [timer, ticket] = [null, 0];
  let settled = null;

  const isOwn = (name) => !name.startsWith("__") && name !== "view"; // else the framework's
  const named = (text) => [...new URLSearchParams(text)];
  const holdsOwn = (text) => text.includes("=") && named(text).some(([name]) => isOwn(name));
  const foreign = () =>
    new URLSearchParams(named(window.location.search).filter(([name]) => !isOwn(name))).toString();
  const given = () =>
    [window.location.hash.slice(1), window.location.search.slice(1)].find(holdsOwn) ?? "";
  // given: what the page was opened with. kept: the settings that a page before it handed over.
  const link = (viz.link = { given: given(), kept: {} });
  link.opening = link.given !== "";
  link.settled = new Promise((done) => (settled = done));
  const settle = () => {
    link.opening = false;
    settled();
  };
  if (!link.opening) settle();
  // The page before lost its server: it is opened as a link is, its settings as they stood.
  link.reopen = (settings) => {
    link.kept = settings;
    if (link.opening) return;
    link.opening = true;
    link.settled = new Promise((done) => (settled = done));
  };

  // ---- parts ----

  // starts: {name: what it is at first}, all texts. read() gives what they are now, or nothing as yet.
  // restore(given) takes those that a link gives, and throws an Error with a sentence for what is not
  // to be had.
  link.part = (starts, read, restore) => {
    const part = { starts, read, restore };
    parts.set(Object.keys(starts).join(), part);
    const problem = link.opening ? null : give(part);
    if (problem) viz.say(problem);
  };
  const give = ({ starts, restore }) => {
    const names = Object.keys(starts).filter((name) => name in asked);
    if (!names.length) return null;
    const given = Object.fromEntries(names.map((name) => [name, asked[name]]));
    for (const name of names) delete asked[name];
    try {
      restore(given);
    } catch (error) {
      return error.message;
    }
    return null;
  };

  const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
  link.oneOf = (name, text, allowed) => {
    if (allowed.includes(text)) return text;
    throw new Error(`The link's ${name} must be one of ${allowed.join(", ")}; got ${shortened(text)}.`);
  };
  link.whole = (name, text, first, last) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (number >= first && number <= last) return number;
    throw new Error(`The link's ${name} must be a whole number from ${first} to ${last}; got ${shortened(text)}.`);
  };
  // Fields of a script's `state`, each one of some texts: allowed is {field: texts}.
  link.choices = (state, allowed, changed) => {
    const fields = Object.keys(allowed);
    const read = () => Object.fromEntries(fields.map((field) => [field, state[field]]));
    link.part(read(), read, (given) => {
      for (const [field, text] of Object.entries(given)) link.oneOf(field, text, allowed[field]);
      Object.assign(state, given);
      changed();
    });
  };

  // ---- what the whole page shares: the head, the chosen token, the open tab ----

  const { sitesOf, siteName } = viz;
  // A site of a run or a batch by its name. Throws for one that it does not have.
  link.site = (name, text, item) => {
    const sites = sitesOf(item);
    const found = sites.find((one) => siteName(one) === text);
    if (found) return found;
    const ends = [sites[0], sites[sites.length - 1]].map(siteName).join(" to ");
    throw new Error(`The link's ${name} must be a place of this network, ${ends}; got ${shortened(text)}.`);
  };
  link.part(
    { site: "", head: "0" },
    () => {
      if (!viz.run || !viz.head) return null;
      const site = siteName(viz.head);
      return { site: site === siteName(sitesOf(viz.run)[0]) ? "" : site, head: String(viz.head.head) };
    },
    ({ site, head = "0" }) => {
      const place = site === undefined ? sitesOf(viz.run)[0] : link.site("site", site, viz.run);
      viz.setHead({ ...place, head: link.whole("head", head, 0, viz.run.n_heads - 1) });
    },
  );
  link.part(
    { token: "" },
    () => {
      if (!viz.query) return null;
      const { stack, index } = viz.query;
      return { token: stack === viz.run.stack ? String(index) : `${stack}.${index}` };
    },
    ({ token }) => {
      const [stack, index] = token.includes(".") ? token.split(".") : [viz.run.stack, token];
      const own = stack === viz.run.stack;
      if (!own) link.oneOf("token's stack", stack, viz.run.source_labels.length ? ["encoder"] : []);
      const labels = own ? viz.run.labels : viz.run.source_labels;
      viz.setQuery({ stack, index: link.whole("token", index, 0, labels.length - 1) });
    },
  );
  // The tabs' buttons; on a narrow screen some are in a menu.
  viz.tabs = () => [...document.querySelectorAll("#right > .tabs > .tab-wrapper :is([role=tab], .overflow-dropdown button)")];
  const slug = (tab) => tab.textContent.trim().toLowerCase().replace(/[^a-z]+/g, "-").replace(/-$/, "");
  link.part(
    { tab: "attention" },
    () => {
      const open = viz.tabs().find((tab) => tab.getAttribute("aria-selected") === "true");
      return open && { tab: slug(open) };
    },
    ({ tab }) => {
      link.oneOf("tab", tab, viz.tabs().map(slug));
      viz.tabs().find((button) => slug(button) === tab).click();
    },
  );

  // ---- writing ----

  const state = () => {
    const views = {};
    for (const { starts, read } of parts.values()) {
      for (const [name, value] of Object.entries(read() ?? {})) {
        if (String(value) !== starts[name]) views[name] = String(value);
      }
    }
    const all = { ...viz.run?.link, ...(viz.batch?.link ?? unseen), ...views, ...asked };
    return Object.keys(all).length === 1 && all.model === model ? {} : all;
  };
  const plain = (all) => new URLSearchParams(all).toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  const packed = async (all) => {
    const written = new Blob([JSON.stringify(all)]);
    if (written.size > LARGEST) return null;
    const deflated = written.stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
    const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  };

  // Names and values of what is shown now, as in a query string; null if too long for a link.
  link.query = async () => {
    const all = state();
    const query = plain(all);
    if (query.length <= MOST) return query;
    const short = await packed(all);
    return short !== null && short.length < MOST ? `z=${short}` : null;
  };
  link.tooLong = () =>
    `What is shown takes more than the ${MOST.toLocaleString("en-US")} characters that a link may have, even `
    + "compressed: there is no link to it. A shorter text or fewer alterations fit.";

  const write = async () => {
    if (link.opening) return;
    const mine = ++ticket;
    const query = await link.query();
    if (mine !== ticket || query === null) return;
    const { pathname, search, hash } = window.location;
    const others = foreign();
    const address = `${others && `?${others}`}${query && `#${query}`}`;
    if (address === search + hash) return;
    history.replaceState(history.state, "", pathname + address);
    if (link.isInHub()) window.parent.postMessage({ queryString: "", hash: query && `#${query}` }, HUB);
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(write, PAUSE_MS);
  };
  link.isInHub = () => {
    if (window.parent === window) return false;
    const around = [...(window.location.ancestorOrigins ?? []), document.referrer];
    return around.some((address) => address === HUB || address.startsWith(`${HUB}/`));
  };

  // ---- opening ----

  // A link to this page that is typed or chosen in it changes only what no server sees.
  window.addEventListener("hashchange", () => holdsOwn(window.location.hash.slice(1)) && window.location.reload());

  // The server has done its part of the link: value is what it says (see ui/opening.py).
  link.opened = async ({ view, problems, run, batch, lines }) => {
    const shown = () => !run || (viz.run?.run === run && (!viz.batch || viz.batch.batch === batch));
    const until = performance.now() + WAIT_MS; // unless the visitor has gone on to something else
    while (!shown() && performance.now() < until) await new Promise((done) => setTimeout(done, 20));
    if (shown() && run) [asked, unseen, shownOf] = [{ ...view }, lines, viz.run.model];
    settle();
    const found = [...problems, ...[...parts.values()].map(give)].filter(Boolean);
    if (found.length) viz.say(found.join(" "));
    later();
  };

  viz.on("run", () => {
    model ??= viz.run.model;
    if (shownOf !== viz.run.model) [asked, unseen, shownOf] = [{}, {}, viz.run.model];
    later();
  });
  for (const name of ["batch", "head", "query"]) viz.on(name, later);
  viz.on("problem", () => link.opening && settle()); // the address stays until something is chosen
  for (const name of ["pointerup", "keyup", "change"]) document.addEventListener(name, later, true);

  // The framework sends the query string along with every question; a visitor's words, of a link of
  // before, need not go there.
  const fetched = window.fetch.bind(window);
  const join = /^([^?]*\/queue\/join)\?/;
  window.fetch = (resource, options) => {
    const [, address] = (typeof resource === "string" && join.exec(resource)) || [];
    return fetched(address ? `${address}?${foreign()}` : resource, options);
  };
})();
