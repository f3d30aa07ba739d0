// Typed text made plain, as what a translator of plain English was trained with: transformer/plain_text.py.

export const PLAIN_ENGLISH = "plain English"; // what a checkpoint's metadata says of its "source_text"
/** @type {[RegExp, string][]} */
const PLAIN = [
  [/[‘’‚‛ʼ′]/g, "'"],
  [/[“”„‟″]/g, '"'],
  [/[‐‑‒–—―−]/g, "-"],
  [/…/g, "..."],
  [/[\u00ad\u200b\ufeff]/g, ""],
];
const MORE_SPACES = "\x1c\x1d\x1e\x1f\x85"; // for Python; the others are JavaScript's \s

/** NFC with plain quotes, dashes and spaces. @param {string} text */
export const plain = (text) => {
  const typed = PLAIN.reduce(
    (all, [signs, sign]) => all.replace(signs, sign),
    text.normalize("NFC"),
  );
  const spaced = Array.from(typed, (sign) => (MORE_SPACES.includes(sign) ? " " : sign)).join("");
  return spaced.split(/\s+/).filter((word) => word).join(" "); // prettier-ignore
};
