// Which steps the visitor has solved: of this visit, and on request in this browser alone.

import { emit } from "../../web/store.js";

const KEY = "solved-lessons";
/** @type {Set<string>} */
let solved = new Set();
let kept = false;

const store = () => {
  try {
    return window.localStorage; // not to be had in some frames
  } catch {
    return null;
  }
};
const read = () => {
  try {
    const text = store()?.getItem(KEY);
    if (!text) return;
    const found = JSON.parse(text);
    if (!Array.isArray(found)) return;
    solved = new Set(found.filter((one) => typeof one === "string"));
    kept = true;
  } catch {
    kept = false;
  }
};
read();

const write = () => {
  try {
    if (kept) store()?.setItem(KEY, JSON.stringify([...solved]));
    else store()?.removeItem(KEY);
  } catch {
    kept = false; // the browser keeps nothing here
  }
};

/** @type {(lesson: string, step: number) => void} */
export const setSolved = (lesson, step) => {
  solved.add(`${lesson}.${step}`);
  write();
  emit("solved");
};
/** @type {(lesson: string) => number} */
export const solvedSteps = (lesson) =>
  [...solved].filter((one) => one.slice(0, one.lastIndexOf(".")) === lesson).length;
export const isKept = () => kept;
/** @type {(keep: boolean) => void} */
export const keepSolved = (keep) => {
  kept = keep;
  write();
};
