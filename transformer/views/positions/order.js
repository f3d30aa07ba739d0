// Order: what the visitor's text becomes when the network does not know its tokens' positions.

import { alter, experiment, interventions } from "../../web/runs.js";
import { say, sayWith } from "../../web/messages.js";
import { mounted, useAnswer, usePart } from "../../web/part.js";
import { html } from "../../web/preact.js";
import { page } from "../../web/store.js";
import { continued } from "../../web/text.js";

const Order = () => {
  const part = usePart();
  const { run, adds_positions: adds, is_rotary: isRotary, n_prompt: start } = page.run ?? {};
  const what = adds ? "no-positions" : isRotary ? "no-rotation" : null;
  const intact = useAnswer(part, "broken_text", what && { run });
  const without = useAnswer(part, "broken_text", what && { run, what });
  const isCurrent = [intact, without].every(({ asked }) => asked?.run === run);
  const text = (
    /** @type {{ answer: import("../whatif/types").BrokenText | null }} */ { answer },
  ) =>
    html`<strong><bdi translate=${false}>“${continued(answer?.labels ?? [], start - 1)}”</bdi></strong>`;
  const others = interventions().filter((change) => change.what !== what);
  const isOff = others.length < interventions().length;
  const flip = () => alter(isOff || !what ? others : [...others, { type: "break", what }]);
  return html`<section class="order" ...${part.attributes(isCurrent ? { run } : {})} hidden=${!what}>
    <p>${isCurrent && sayWith("With positions it writes {intact}, without them {without}.", { intact: text(intact), without: text(without) })}</p>
    <button type="button" class="switch-off" aria-pressed=${String(isOff)} onClick=${flip}>${
      isOff ? say("Give the positions back") : say("Take the positions away")
    }</button>
  </section>`;
};
export const mount = mounted(...experiment(Order));
