// Every question that the network in the browser answers, by name: of a run (or a row of a batch), what is asked, all rows, and the
// run that it is compared with.

import { answers as attention } from "./attention.js";
import { answers as beams } from "./beams.js";
import { answers as compare } from "./compare.js";
import { answers as equations } from "./equations.js";
import { answers as forward } from "./feed_forward.js";
import { answers as metrics } from "./head_metrics.js";
import { answers as journey } from "./journey.js";
import { answers as masks } from "./masks.js";
import { answers as patching } from "./patching.js";
import { answers as positions } from "./positions.js";
import { answers as prediction } from "./prediction.js";
import { answers as rotary } from "./rotary.js";
import { answers as shift } from "./shift.js";
import { answers as whatif } from "./whatif.js";
import { answers as words } from "./words.js";

/** @type {import("./types").QuestionsByName} */
export const questions = {
  ...{ ...journey, ...attention, ...masks, ...positions },
  ...{ ...prediction, ...whatif, ...patching, ...words, ...forward },
  ...{ ...compare, ...metrics, ...equations, ...rotary, ...shift, ...beams },
};
