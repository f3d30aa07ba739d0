// The server is asked for one state of the page at a time, see ui/open_link.py: of what is asked for
// meanwhile (Back, pressed twice) only the last counts.

/** @typedef {{ query: string, kept: object, run: string | null, reads?: boolean }} Wanted */
/** @type {((wanted: Wanted) => void) | null} */
let submit = null;
/** @type {Wanted | null} */
let next = null;
let [isAsked, heard] = [false, 0];

/** @type {(wanted: Wanted) => void} */
export const request = (wanted) => {
  if (isAsked || !submit) return void (next = wanted);
  [isAsked, next] = [true, null];
  return submit(wanted);
};
export const goOn = () => {
  isAsked = false;
  if (next) request(next);
};
// Whether nothing else waits behind the question that is on its way.
export const isLast = () => isAsked && !next;

// How the server is asked, once that part is on the page.
/** @type {(made: (wanted: Wanted) => void) => void} */
export const setSubmit = (made) => {
  submit = made;
  goOn();
};
// Whether this is the answer that was waited for. The framework gives an answer more than once: it is told
// apart by its time.
/** @type {(answer: any) => boolean} */
export const isNew = (answer) => {
  if (!answer?.view || answer.at === heard) return false;
  heard = answer.at;
  goOn();
  return true;
};
