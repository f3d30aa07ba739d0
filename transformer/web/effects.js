// How much each word of the text matters to the next one, while that is asked: the text is shaded by it.

import { signal } from "./preact.js";

/**
 * @typedef {object} Effects
 * @property {string} run
 * @property {string} stack
 * @property {number[]} shares from -1 to 1, by each token's place in the stack
 * @property {number[]} left places of the word that is left out
 * @property {(place: number) => void} choose what a press on a token does
 */
export const effects = signal(/** @type {Effects | null} */ (null));
