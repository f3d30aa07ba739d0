// The sinusoidal formula beside the model's own positions.

import { ask } from "../../ui/static/ask.js";
import { numeral, say } from "../../ui/static/messages.js";
import { tinyNumber } from "../../ui/static/numbers.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { page } from "../../web/store.js";
import { fitMargins, heightOf } from "./position_pictures.js";

// common(): what every question to the server holds. Returns refresh().
export const mountFormula = (find, server, common) => {
  const formula = find(".position-formula");
  const box = (name) => find(`[data-picture=${name}]`);
  const draw = async (current) => {
    if (!page.run || page.run.turns) return;
    for (const which of ["matrix", "similarity"]) {
      const answer = await ask(server.positions, { ...common(), which, formula: true });
      if (!current()) return;
      find(".compared").hidden = answer.figure === null;
      if (answer.figure === null) {
        find(".formula-says").textContent = say(
          "It needs an even number of dimensions, and this model has an odd one.",
        );
        return;
      }
      const own = answer.positions === "sinusoidal";
      find(".formula-use").textContent = own
        ? say("which this model uses")
        : say("not used by this model");
      find(".formula-says").textContent = own
        ? say("This model's matrix is the formula itself: largest difference {difference}.", {
            difference: tinyNumber(answer.difference),
          })
        : say(
            "This model learned its positions instead; compare both matrices (largest " +
              "difference {difference}).",
            { difference: numeral(answer.difference.toFixed(2)) },
          );
      const name = `formula-${which}`;
      await drawFigure(box(name), answer.figure, {
        height: heightOf(name, box(name)),
        change: fitMargins,
      });
      if (!current()) return;
      Object.assign(formula.dataset, { own, difference: answer.difference });
    }
  };
  return redrawWhen(formula, ["run"], draw);
};
