// Draws for tests, the same in each run: a seed gives them all.
/** @type {(seed: number) => { whole: (least: number, most: number) => number, one: <T>(of: T[]) => T, some: <T>(of: T[]) => T[], is: (share?: number) => boolean, between: (least: number, most: number) => number }} */
export const chance = (seed) => {
  let state = seed >>> 0;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return ((state >>> 8) ^ (state & 0xff)) / 2 ** 24;
  };
  const whole = (/** @type {number} */ least, /** @type {number} */ most) =>
    least + Math.floor(next() * (most - least + 1));
  return {
    whole,
    one: (of) => of[whole(0, of.length - 1)],
    some: (of) => of.filter(() => next() < 0.5),
    is: (share = 0.5) => next() < share,
    between: (least, most) => least + next() * (most - least),
  };
};
