// Long work lets other events happen: a worker's newer questions are answered between.

const PAUSE_MS = 30; // after which other events get their turn

const turn = () =>
  /** @type {Promise<void>} */ (
    new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        done();
      };
      port2.postMessage(null);
    })
  );

/** A function that lets other events happen if the last time is so long ago. */
export const pauses = (milliseconds = PAUSE_MS) => {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < milliseconds) return;
    await turn();
    last = performance.now();
  };
};

/**
 * What work that yields between its parts returns.
 * @template T
 * @param {Generator<void, T>} work
 */
export const finished = (work) => {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
};
/**
 * The same, with a pause between the parts.
 * @template T
 * @param {Generator<void, T>} work
 * @param {() => Promise<void>} pause
 */
export const finishedSlowly = async (work, pause) => {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await pause();
  }
};

export const SHORT_MS = 8; // at most half a frame

const QUIET_MS = 150; // without a question, before work in the background goes on
const latest = { questionAt: -Infinity }; // ms
/** Work in the background waits: a question has come, and others may follow. */
export const holdBackground = () => {
  latest.questionAt = performance.now();
};

/** @type {Promise<void>[]} what is tried in the background, the newest last */
const trials = [];
/**
 * Work that the page does not wait for: `pause` is to be awaited between its parts. Other questions go first, and of several
 * such works the newest.
 * @template T
 * @param {(pause: () => Promise<void>) => Promise<T>} work
 * @returns {Promise<T>}
 */
export const inBackground = async (work) => {
  let end = () => {};
  const trial = /** @type {Promise<void>} */ (new Promise((done) => (end = done)));
  const letOthers = pauses(SHORT_MS);
  trials.push(trial);
  const pause = async () => {
    await letOthers();
    for (let left = 1; left > 0;) {
      left = latest.questionAt + QUIET_MS - performance.now();
      if (left > 0) await new Promise((done) => setTimeout(done, left));
    }
    while (trials.at(-1) !== trial) await trials.at(-1);
  };
  try {
    return await work(pause);
  } finally {
    trials.splice(trials.indexOf(trial), 1);
    end();
  }
};
