// Numbers as text.

import { numeral } from "./messages.js";

// A difference that should be next to nothing: "1.2e−7", or "0".
/** @type {(value: number) => string} */
export const tinyNumber = (value) =>
  value === 0 ? "0" : numeral(value.toExponential(1)).replace("-", "−");

// A probability as a bar says it: "86 %", "1.7 %".
/** @type {(p: number) => string} */
export const percentText = (p) => {
  if (p > 0 && p < 0.001) return `<${numeral("0.1")} %`;
  return `${numeral((100 * p).toFixed(p < 0.0995 ? 1 : 0))} %`;
};
