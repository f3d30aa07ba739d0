// Numbers as text.

import { numeral } from "./messages.js";

// A difference that should be next to nothing: "1.2e−7", or "0".
/** @type {(value: number) => string} */
export const tinyNumber = (value) =>
  value === 0 ? "0" : numeral(value.toExponential(1)).replace("-", "−");
