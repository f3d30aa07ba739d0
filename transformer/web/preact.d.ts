// The types of preact.js, from the packages that vendor/ was taken from.
import type { ComponentChild } from "preact";
// The element that replaces a text; undefined if it is not translated.
export const standIn: (text: Node) => ChildNode | undefined;
export { render } from "preact";
export { useLayoutEffect, useMemo, useState } from "preact/hooks";
// Of null: an element, or what is there once a component is drawn.
export function useRef<Value>(start: null): { current: Value };
export function useRef<Value>(start: Value): { current: Value };
export {
  batch,
  computed,
  effect,
  signal,
  untracked,
  useSignalEffect,
} from "@preact/signals";
export const html: (strings: readonly string[], ...values: unknown[]) => ComponentChild;
