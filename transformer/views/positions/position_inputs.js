// Token + position = input: what the positions are added to.

import { ask } from "../../ui/static/ask.js";
import { tokenElement } from "../../ui/static/dom.js";
import { fontPx } from "../../ui/static/labels.js";
import { numeral, say, sayWith } from "../../ui/static/messages.js";
import { tinyNumber } from "../../ui/static/numbers.js";
import { drawFigure } from "../../ui/static/plots.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { chosenRow, page } from "../../web/store.js";
import { fitMargins, heightOf } from "./position_pictures.js";

const NARROW_PX = 640;

// Titles are the page's own; on a phone the three strips stand one below the other.
const stackOnPhones =
  (width) =>
  ({ layout, data }) => {
    for (const axis of [layout.xaxis2, layout.xaxis3]) axis.title.font = { size: fontPx() };
    layout.height -= layout.margin.t - 30;
    layout.margin.t = 30;
    if (page.projector)
      for (const heading of layout.annotations) heading.text = heading.text.split(",")[0];
    if (width >= NARROW_PX) return;
    const strip = layout.height - layout.margin.t - layout.margin.b;
    const step = strip + layout.margin.b + layout.margin.t;
    layout.height = 3 * step;
    layout.margin = { ...layout.margin, l: 90, r: 8 };
    const inner = 2 * step + strip;
    layout.annotations.forEach((heading, place) => {
      const top = 1 - (place * step) / inner;
      const suffix = place ? String(place + 1) : "";
      Object.assign(heading, { x: 0, y: top, text: layout.meta.headings[place] });
      layout[`xaxis${suffix}`].domain = [0, 1];
      layout[`xaxis${suffix}`].anchor = `y${suffix}`;
      layout[`yaxis${suffix}`] = {
        ...layout.yaxis,
        anchor: `x${suffix}`,
        domain: [Math.max(0, top - strip / inner), top],
      };
      Object.assign(data[place], { yaxis: `y${suffix}`, showscale: false });
    });
  };

// common(): what every question to the server holds. Returns refresh().
export const mountInputs = (find, server, common) => {
  const inputs = find(".position-inputs");
  const box = (name) => find(`[data-picture=${name}]`);
  const draw = async (current) => {
    await Promise.resolve(); // a new run also lets go of the token: one draw for both
    if (!current() || !page.run) return;
    const { stack } = common();
    const answer = await ask(server.inputs, { ...common(), place: chosenRow(stack) });
    if (!current()) return;
    const { token, position, sum } = answer.lengths;
    const added = say(
      "Mean lengths of the vectors: tokens {token}, positions {position}, their sums {sum}. " +
        "All three share one colour scale; 0.5 % of the numbers lie beyond its ends.",
      {
        token: numeral(token.toFixed(2)),
        position: numeral(position.toFixed(2)),
        sum: numeral(sum.toFixed(2)),
      },
    );
    find(".input-lengths").textContent = [
      added,
      answer.normed
        ? say(
            "This model normalises each sum before its first layer reads it; the sums are shown " +
              "as they are before that.",
          )
        : say(
            "The sum is what the first layer reads (largest difference from the recorded " +
              "input: {difference}).",
            { difference: tinyNumber(answer.difference) },
          ),
    ].join(" ");
    await drawFigure(box("strips"), answer.strips, {
      change: stackOnPhones(box("strips").clientWidth),
      numbers: sums,
    });
    if (!current()) return;
    find(".input-title").replaceChildren(
      ...sayWith("One of them: token {place} {token} (choose another in the text)", {
        place: answer.place,
        token: tokenElement(answer.label),
      }),
    );
    await drawFigure(box("token"), answer.token, {
      height: heightOf("token", box("token")),
      change: fitMargins,
    });
    Object.assign(inputs.dataset, { run: page.run.run, stack, place: answer.place });
  };
  const exact = (value) => numeral(value.toFixed(4));

  // In the table, each cell tells the sum's two parts.
  const sums = (row, column) => {
    const [token, position, sum] = box("strips")._fullData.map(({ z }) => z[row][column]);
    return `${exact(token)} + ${exact(position)} = ${exact(sum)}`;
  };
  return redrawWhen(inputs, ["run", "query"], draw);
};
