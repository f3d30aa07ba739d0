// A part of the page as a Preact component: how it is mounted, requests answers, knows whether it is visible, folds. See README.md.

import { bindField } from "./fields.js";
import { html, useLayoutEffect, useRef, render, signal, useMemo, useState } from "./preact.js";
import { emit, nextPaint, page, reactive, on, predicts, shell, showProblem } from "./store.js";
import { ask } from "./ask.js";
import { asSentence, say } from "./messages.js";
import { viewNamed } from "./declared.js";
import { letPressedGo } from "./pointer.js";
import { watchSight } from "./sight.js";

/** @import { ComponentChild, FunctionComponent } from "preact" */
/** @import { Answers, AnswerState, DocumentEvent, Mounted, PageEvents, UseAnswer } from "./types" */

// ---- what a visitor presses ----

let takeLastBack = () => {};
// As a listener: an error is shown as a problem, until the next such listener is called.
/** @type {<Values extends unknown[]>(work: (...values: Values) => unknown) => (...values: Values) => Promise<void>} */
export const trying =
  (work) =>
  async (...values) => {
    takeLastBack();
    try {
      await work(...values);
    } catch (error) {
      takeLastBack = showProblem(error.message);
    }
  };

// ---- a section: a part of a tab behind its heading, with its finding in one line ----

// name: of the section that was opened last, "" for none. brought: how often a section was opened, or all were closed,
// other than by a heading; leads: whether it takes the focus.
const opened = reactive({ name: "", brought: 0, leads: false });

/** @type {(name: string, leads: boolean) => void} */
const bring = (name, leads) => {
  letPressedGo();
  Object.assign(opened, { name, leads, brought: opened.brought + 1 });
};
bindField(
  "more",
  () => opened.name,
  (name) => {
    if (name !== opened.name) bring(name, false);
  },
);

// Open a section from elsewhere in the page and go there. tab: its tab, unless that is open.
/** @type {(name: string, tab?: string) => void} */
export const openSection = (name, tab = "") => {
  if (tab) shell.openTab(tab);
  bring(name, true);
};

const SETTLED_MS = 4000;
const LEAVES = ["wheel", "touchmove", "keydown", "pointerdown"];

// Scroll again while content above grows, unless the visitor does something; gives what ends it.
/** @type {(scroll: () => void) => () => void} */
export const whileSettling = (scroll) => {
  const timer = setInterval(scroll, 100);
  const end = () => {
    clearInterval(timer);
    LEAVES.forEach((event) => removeEventListener(event, end));
  };
  LEAVES.forEach((event) => addEventListener(event, end, { passive: true }));
  setTimeout(end, SETTLED_MS);
  return end;
};

/**
 * name: in links. title, finding: of the heading. children: drawn when it is first opened, and kept, hidden,
 * when it is closed.
 * @param {{ name: string, title: ComponentChild, finding?: ComponentChild, children?: ComponentChild }} props
 */
export const Section = ({ name, title, finding, children }) => {
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const wasOpen = useRef(false);
  // Its heading opens and closes it alone: another that were closed would move it. All follow what is brought.
  const [pressed, setPressed] = useState({ isOpen: false, brought: -1 });
  const isPressed = pressed.brought === opened.brought;
  const isOpen = isPressed ? pressed.isOpen : opened.name === name;
  wasOpen.current ||= isOpen;
  const press = (/** @type {Event} */ event) => {
    event.preventDefault();
    setPressed({ isOpen: !isOpen, brought: opened.brought });
    if (!isOpen) opened.name = name;
    else if (opened.name === name) opened.name = "";
  };
  const goThere = async () => {
    const { brought, leads } = opened;
    const isStill = () => opened.name === name && opened.brought === brought;
    const scroll = () => section.current?.scrollIntoView({ block: "start" });
    await nextPaint();
    scroll();
    if (leads) section.current?.querySelector("summary")?.focus({ preventScroll: true });
    whileSettling(() => isStill() && scroll());
  };
  const isBrought = isOpen && !isPressed;
  useLayoutEffect(() => void (isBrought && goThere()), [isBrought, opened.brought]);
  return html`<details class="section" data-section=${name} open=${isOpen} ref=${section}>
    <summary onClick=${press}>
      <h3>${title}</h3><span class="section-finding">${finding}</span>
    </summary>
    <div class="section-body" hidden=${!isOpen}>${wasOpen.current && children}</div>
  </details>`;
};

// ---- a part ----

// Mount a component in the template of `component` of server/page/components.py. props: Gradio's. submit(value)
// sends a value to Gradio by its event "input". A folded view is in a section;
// finding(): the text of its heading, if it has one; false: it is not shown.
/** @type {<Props>(Component: FunctionComponent<Props>, finding?: () => ComponentChild) => (mounted: Mounted) => void} */
export const mounted =
  (Component, finding) =>
  ({ element, props, trigger }) => {
    const submit = (/** @type {unknown} */ value) => {
      props.value = value;
      trigger("input", value);
    };
    const root = /** @type {Element} */ (element.firstElementChild);
    const drawn = html`<${Component} ...${{ props, submit }} />`;
    const whole = props.predicts ? html`<${Predicting} drawn=${drawn} />` : drawn;
    render(
      props.folded ? html`<${Folded} view=${props.folded} ...${{ whole, finding }} />` : whole,
      root,
    );
  };

// A view that needs a head that predicts tokens, or why it is not there.
/** @param {{ drawn: ComponentChild }} props */
const Predicting = ({ drawn }) =>
  page.run && !predicts()
    ? html`<p class="hint no-head">${asSentence(say("this network has no output layer that predicts tokens"))}</p>`
    : drawn;

/** @param {{ view: string, whole: ComponentChild, finding?: () => ComponentChild }} props */
const Folded = ({ view, whole, finding }) => {
  const { name = view, title = "" } = viewNamed(view) ?? {};
  const says = finding?.();
  if (says === false) return null;
  return html`<${Section} name=${name} title=${say(title)} finding=${says}>${whole}<//>`;
};

/** @typedef {import("./types").Part} Part */

// The part of this component's element: html`<div ...${part.attributes({ run })}>`. aria-busy while it is out
// of date; data-rev counts its paints, and data-first-ms is the time of the first since navigation.
/** @type {() => Part} */
export const usePart = () => {
  /** @type {{ current: HTMLElement }} */
  const element = useRef(null);
  const part = useMemo(() => newPart(element), []);
  useLayoutEffect(() => watchSight(element.current, part), []);
  const { seen } = part;
  useLayoutEffect(() => void (seen && part.commit())); // also without a request
  return part;
};

/** @type {(element: { current: HTMLElement }) => Part & { commit: () => Promise<void> }} */
const newPart = (element) => {
  const part = reactive({ seen: false, isHidden: false, width: 0 });
  const due = new Set();
  const painted = signal({ facts: {}, rev: 0, times: /** @type {Record<string, string>} */ ({}) });
  const busy = signal(false);
  let facts = {};
  let clickedAt = NaN;
  const isPainted = () =>
    !busy.value &&
    painted.value.rev > 0 &&
    JSON.stringify(facts) === JSON.stringify(painted.value.facts);
  const commit = async () => {
    if (due.size || !part.seen || isPainted()) return;
    await nextPaint();
    if (due.size || isPainted()) return;
    const { rev, times } = painted.value;
    const now = performance.now();
    /** @type {Record<string, string>} */
    const took = Number.isNaN(clickedAt) ? {} : { "click-ms": (now - clickedAt).toFixed(1) };
    clickedAt = NaN;
    busy.value = false;
    painted.value = {
      facts,
      rev: rev + 1,
      times: { "first-ms": now.toFixed(0), ...times, ...took },
    };
    if (rev === 0) emit("painted", element.current);
  };
  /** @type {Part["setPending"]} */
  const setPending = (what, isDue) => {
    if (isDue) due.add(what);
    else due.delete(what);
    if (isDue) busy.value = true;
    commit();
  };
  /** @type {Part["attributes"]} */
  const attributes = (now) => {
    facts = { ...now };
    const { rev, times, facts: then } = painted.value;
    const data = rev ? { ...then, rev, ...times } : {};
    const values = Object.entries(data).filter(([, value]) => value !== undefined);
    return {
      ref: element,
      "aria-busy": busy.value || undefined,
      ...Object.fromEntries(values.map(([name, value]) => [`data-${name}`, String(value)])),
    };
  };
  const startTimer = () => (clickedAt = performance.now());
  return Object.assign(part, { element, setPending, commit, attributes, startTimer });
};

// Follow an event of the page; see store.js.
/** @type {<Name extends keyof PageEvents>(name: Name, listener: (detail: PageEvents[Name]) => void) => void} */
export const useEvent = (name, listener) => {
  const latest = useRef(listener);
  latest.current = listener;
  const end = useMemo(() => on(name, (detail) => latest.current(detail)), []);
  useLayoutEffect(() => end, []);
};

// Listen for events of the whole document, of no name for none; first: in the capture phase.
/** @type {<Name extends keyof DocumentEventMap>(names: Name[], listener: (event: DocumentEvent<Name>) => void, first?: boolean) => void} */
export const useDocument = (names, listener, first = false) => {
  const latest = useRef(listener);
  latest.current = listener;
  useLayoutEffect(() => {
    const hear = (/** @type {Event} */ event) =>
      latest.current(/** @type {Parameters<typeof listener>[0]} */ (event));
    for (const name of names) document.addEventListener(name, hear, first);
    return () => names.forEach((name) => document.removeEventListener(name, hear, first));
  }, [names.join(" ")]);
};

/** @type {{ answer: unknown, asked: unknown, key: string, isRefused: boolean }} */
const NO_ANSWER = { answer: null, asked: null, key: "null", isRefused: false };
// The answer to a request of this part, {answer, asked, current}. answer: the previous one while the next is
// loading, null before the first; asked: its data. current: the answer to the data of this draw alone, null while
// that is loading: what is said of it under a name goes by this one. question: the endpoint's name, or a function that returns the answer.
// data: null requests nothing. It is requested only while the part is visible, and a refusal is shown in the
// page's status until something else is asked; it is requested again after the part was out of sight. take(answer, data): called in the same draw, with null after a refusal.
/** @type {(part: Part, question: keyof Answers | ((data: unknown) => Promise<unknown>), data: unknown, take?: (answer: unknown, data: unknown) => void) => AnswerState<unknown, unknown>} */
const usedAnswer = (part, question, data, take = () => {}) => {
  const [latest, setLatest] = useState(NO_ANSWER);
  const me = useRef(0);
  const takeBack = useRef(() => {}); // the last refusal
  const key = JSON.stringify(data || null);
  useLayoutEffect(() => {
    const mine = ++me.current;
    part.setPending(me, Boolean(data) && key !== latest.key);
    if (key !== latest.key) takeBack.current();
    if (!data || key === latest.key || !part.seen) return;
    const coming = typeof question === "string" ? ask(question, data) : question(data);
    coming.then(
      (answer) => {
        if (mine !== me.current) return;
        take(answer, data);
        setLatest({ answer, asked: data, key, isRefused: false });
      },
      ({ message }) => {
        if (mine !== me.current) return;
        takeBack.current = showProblem(message);
        take(null, data);
        setLatest((before) => ({ ...before, key, isRefused: true }));
      },
    );
  }, [key, latest.key, part.seen]);
  useLayoutEffect(() => {
    if (latest.isRefused && !part.seen) setLatest({ ...latest, key: "null", isRefused: false });
  }, [part.seen]);
  useLayoutEffect(() => () => part.setPending(me, false), []);
  const { answer, asked, isRefused } = latest;
  return { answer, asked, current: data && key === latest.key && !isRefused ? answer : null };
};
export const useAnswer = /** @type {UseAnswer} */ (usedAnswer);
