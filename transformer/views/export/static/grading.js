// How an answer is graded by the numbers that lessons/stored.py keeps of a run: the rules of
// lessons/checks.py, where Python grades on the page.

import { numeral, say, wholeText } from "../../../ui/static/messages.js";

/**
 * @typedef {Record<string, any>} Check see lessons/stored.py
 * @typedef {Record<string, any>} Answer {site, head}, {stack, token}, {site, row, key}, {number} or {option}
 * @typedef {{right: boolean | null, says: string}} Verdict right: null where it cannot be graded
 */

const ROUNDING = 1e-9;

// Two decimals as Python writes them: what lies exactly between two goes to the even one.
/** @type {(value: number) => string} */
const twoDecimals = (value) => {
  const between = Number.isInteger(8 * value) && !Number.isInteger(4 * value);
  const down = Math.floor(100 * value);
  return (between ? (down % 2 ? down + 1 : down) / 100 : value).toFixed(2);
};

/** @type {(value: number) => string} */
export const numberText = (value) => {
  const near = Math.round(value) + 0;
  const whole = Math.abs(value - near) < 1e-4 && Math.abs(value) < 1e6;
  return whole ? wholeText(near) : numeral(twoDecimals(value));
};

// The numbers of all that can be clicked, each with its answer; the best of them is right.
/** @type {(check: Check) => {answer: Answer, value: number}[]} */
const clickable = (check) => {
  if (check.kind === "head")
    return Object.entries(check.values)
      .filter(([site]) => site.replace(/\.\d+\./, ".") === check.among)
      .flatMap(([site, values]) =>
        values.map((value, head) => ({ answer: { site, head }, value })),
      );
  if (check.kind === "token")
    return check.values
      .map((value, token) => ({ answer: { stack: check.stack, token }, value }))
      .slice(check.first);
  return check.values.flatMap((row, at) =>
    row.map((value, key) => ({ answer: { site: check.site, row: at, key }, value })),
  );
};

/** @type {(check: Check) => {answer: Answer, value: number}} */
const bestOf = (check) =>
  clickable(check).reduce((best, one) =>
    (check.least ? one.value < best.value : one.value > best.value) ? one : best,
  );

/** @type {(check: Check, answer: Answer) => number | string} its number, or why it has none */
const valueOf = (check, { site, head, token, row, key }) => {
  if (check.kind === "head")
    return (
      check.values[site]?.[head] ??
      say("heads of {site} have no {name}", { site, name: check.name })
    );
  if (check.kind === "cell")
    return site === check.site
      ? check.values[row][key]
      : say("this is about {site}; another place is shown", { site: check.site });
  return (
    check.values[token] ??
    say("{name} must be a whole number from {least} to {last}; got {got}", {
      name: check.name,
      least: check.values.findIndex((value) => value !== null),
      last: check.values.length - 1,
      got: token,
    })
  );
};

/** @type {(check: Check, answer: Answer) => Verdict} */
const gradeClick = (check, answer) => {
  if (check.kind === "token" && answer.stack !== check.stack)
    return { right: false, says: say("This token is of the other text.") };
  const value = valueOf(check, answer);
  if (typeof value === "string") return { right: null, says: value };
  const best = bestOf(check).value;
  const worst = bestOf({ ...check, least: !check.least }).value;
  const right = Math.abs(value - best) <= check.within * Math.abs(best - worst);
  if (check.yes) return { right, says: value ? check.yes : check.no };
  const { quantity } = check;
  const shown = { quantity, value: numberText(value) };
  if (!right)
    return {
      right,
      says: say("{quantity} is {value} here; elsewhere it is {best}.", {
        ...shown,
        best: numberText(best),
      }),
    };
  const most = check.least
    ? say("{quantity} is {value}: the least.", shown)
    : say("{quantity} is {value}: the most.", shown);
  return { right, says: most };
};

/** @type {(check: Check, answer: Answer) => Verdict} */
const gradeNumber = ({ value, tolerance, quantity }, { number }) =>
  Math.abs(number - value) > tolerance + ROUNDING
    ? { right: false, says: say("It is not {got}.", { got: numberText(number) }) }
    : { right: true, says: say("{quantity} is {value}.", { quantity, value: numberText(value) }) };

/** @type {(check: Check) => number} */
const bestOption = ({ values, bounds }) =>
  bounds.length
    ? bounds.filter((bound) => values[0] >= bound).length
    : values.indexOf(Math.max(...values));

/** @type {(check: Check, answer: Answer) => Verdict} */
const gradeOption = (check, { option }) => {
  const { values, bounds, quantity } = check;
  const right = option === bestOption(check);
  if (bounds.length && !right) return { right, says: say("That is not so on this run.") };
  const shown = { quantity, value: numberText(values[bounds.length ? 0 : option]) };
  const says = right
    ? say("{quantity} is {value}.", shown)
    : say("{quantity} is {value}; another has more.", shown);
  return { right, says };
};

/** @type {(check: Check, answer: Answer) => Verdict} */
export const grade = (check, answer) => {
  if (check.kind === "number") return gradeNumber(check, answer);
  return check.kind === "choose" ? gradeOption(check, answer) : gradeClick(check, answer);
};

// The answer that is shown after the last hint.
/** @type {(check: Check) => Answer} */
export const rightAnswer = (check) => {
  if (check.kind === "number") return { number: Math.round(check.value * 100) / 100 };
  return check.kind === "choose" ? { option: bestOption(check) } : bestOf(check).answer;
};
