// A part of a tab behind its heading: the heading stands there with what it found, in one line, and the
// part comes once it is opened. One section of the page is open at a time: the field `more` of a link.

import { nextPaint } from "../ui/static/dom.js";
import { keptBy } from "../ui/static/fields.js";
import { html, useLayoutEffect, useRef } from "./preact.js";
import { reactive } from "./store.js";

// name: of the open section, "" for none. brought: how often one was opened by something else than a
// press on its heading; leads: whether the focus goes there too.
const open = reactive({ name: "", brought: 0, leads: false });
const OF_BEFORE = "1"; // in links of before: "More" was pressed

const bring = (name, leads) =>
  Object.assign(open, { name, leads, brought: name ? open.brought + 1 : 0 });
keptBy(
  "more",
  () => open.name,
  (text) => {
    const name = text === OF_BEFORE ? "" : text;
    if (name !== open.name) bring(name, false);
  },
);

// Open a section from elsewhere in the page and go there.
/** @type {(name: string) => void} */
export const openSection = (name) => bring(name, true);

/**
 * name: in links. title, finding: of the heading. children: what is drawn once it has been opened, and
 * stays, unseen, when it is closed.
 * @param {Record<string, any>} props
 */
export const Section = ({ name, title, finding, children }) => {
  const section = useRef(/** @type {any} */ (null));
  const wasOpen = useRef(false);
  const isOpen = open.name === name;
  wasOpen.current ||= isOpen;
  const press = (event) => {
    event.preventDefault();
    Object.assign(open, { name: isOpen ? "" : name, brought: 0 });
  };
  const goThere = async () => {
    const { brought, leads } = open;
    await nextPaint();
    section.current?.scrollIntoView({ block: brought ? "start" : "nearest" });
    if (brought && leads) section.current?.firstElementChild.focus({ preventScroll: true });
  };
  useLayoutEffect(() => void (isOpen && goThere()), [isOpen, isOpen && open.brought]);
  return html`<details class="section" data-section=${name} open=${isOpen} ref=${section}>
    <summary onClick=${press}>
      <h3>${title}</h3><span class="section-finding">${finding}</span>
    </summary>
    <div class="section-body" hidden=${!isOpen}>${wasOpen.current && children}</div>
  </details>`;
};
