// What each layer would have said: the logit lens.

import { ask } from "../../ui/static/ask.js";
import { el } from "../../ui/static/dom.js";
import { fontPx, labelRoom } from "../../ui/static/labels.js";
import { ownFields } from "../../ui/static/fields.js";
import { wholeNumber } from "../../ui/static/link_text.js";
import { numeral, say } from "../../ui/static/messages.js";
import { redrawWhen } from "../../ui/static/redraw.js";
import { on, page } from "../../web/store.js";
import { tokenColumns, withoutZoom } from "./token_columns.js";

const TYPE_PX = 14; // of the tokens in the cells, as Python lays them out
const cellText = (meta, z, row, column) =>
  `${meta.best[row][column]} ${numeral(z[row][column].toFixed(4))}`;
const gradient = (scale) =>
  `linear-gradient(to right, ${scale.map(([at, colour]) => `${colour} ${at * 100}%`).join(", ")})`;

const words = ({ says, tied, foresees }) => {
  const told = [
    foresees
      ? say(
          "The residual stream after each layer, read as the last one is: which token comes next?",
        )
      : say("The residual stream after each layer, read as the last one is: which token is it?"),
    say("It is read with {head} (nostalgebraist 2020), so early rows may be nonsense.", {
      head: says,
    }),
  ];
  if (tied && foresees) {
    told.push(say("The input repeats the token just read: head and embedding are one matrix."));
  }
  told.push(
    say("Underlined: the same best token as the model's own, in the top row."),
    say("Click a column to choose its token."),
  );
  return told.join(" ");
};

// Row names stand beside the picture: its own, and its colour bar, go.
const fitBesideRows = ({ data, layout }, width) => {
  const cells = width - layout.margin.l - layout.margin.r;
  layout.width = Math.round((cells * fontPx()) / TYPE_PX) + 16;
  const rows = layout.height - layout.margin.t - layout.margin.b;
  const above = layout.xaxis2.visible === false ? 8 : labelRoom(layout.xaxis2);
  layout.margin = { l: 8, r: 8, t: above, b: labelRoom(layout.xaxis) };
  layout.height = rows + layout.margin.t + layout.margin.b;
  Object.assign(layout.yaxis, { showticklabels: false, ticks: "" });
  for (const axis of [layout.xaxis, layout.xaxis2, layout.yaxis]) {
    Object.assign(axis, { automargin: false, fixedrange: true });
    if (axis.title)
      Object.assign(axis.title, { standoff: 0, font: { size: fontPx(), color: "rgba(0,0,0,0)" } });
  }
  data[0].showscale = false;
  withoutZoom(layout);
};

export const mountLens = (find, server) => {
  const box = find("[data-picture=lens]");
  const lens = { first: 0, columns: 0, total: 0 };
  const seen = tokenColumns(box, () => page.run.trace_start + lens.first);
  const draw = async (current) => {
    if (!page.run) return;
    const { run } = page.run;
    const answer = await ask(server.lens, { run, first: lens.first, dark: page.dark });
    if (!current()) return;
    find(".lens-says").textContent = words(answer);
    const { meta, width } = JSON.parse(answer.figure).layout;
    const figure = await seen.draw(answer.figure, {
      change: (made) => fitBesideRows(made, width),
      numbers: (row, column) => cellText(meta, figureZ(), row, column),
    });
    Object.assign(lens, { columns: answer.columns, total: meta.total });
    drawRows(figure.layout, meta.row_labels);
    find(".lens-scale").style.background = gradient(figure.data[0].colorscale);
    drawPager();
    Object.assign(find(".lens-box").dataset, { run, first: lens.first });
  };
  const figureZ = () => box.calcdata[0][0].z;
  // Row names stand beside the picture, so that they stay when it is scrolled.
  const drawRows = (layout, names) => {
    const { t: top, b: bottom } = layout.margin;
    const height = (layout.height - top - bottom) / names.length;
    const at = (text, y, kind = "") => {
      const made = el("span", kind, text);
      made.style.top = `${y}px`;
      return made;
    };
    const rows = names.map((name, row) => at(name, top + height * (names.length - row - 0.5)));
    if (layout.xaxis2.visible !== false) rows.push(at(say("came next"), top - 14, "axis"));
    find(".lens-rows").replaceChildren(
      ...rows,
      at(say("token read"), layout.height - bottom + 16, "axis"),
    );
  };
  const drawPager = () => {
    const { first, columns, total } = lens;
    find(".lens-pager").hidden = total <= columns;
    find(".earlier").disabled = first === 0;
    find(".later").disabled = first + columns >= total;
    find(".lens-range").textContent = say("tokens {first} to {last} of {total}", {
      first,
      last: Math.min(total, first + columns) - 1,
      total,
    });
  };
  const turnTo = (first) => {
    lens.first = Math.max(0, first);
    refresh();
  };
  find(".earlier").addEventListener("click", () => turnTo(lens.first - lens.columns));
  find(".later").addEventListener("click", () => turnTo(lens.first + lens.columns));
  on("query", (query) => {
    const place = query?.stack === page.run?.stack ? query.index - page.run.trace_start : -1;
    const outside = place < lens.first || place >= lens.first + lens.columns;
    if (place < 0 || place >= lens.total || !outside) return;
    turnTo(Math.floor(place / lens.columns) * lens.columns);
  });
  on("run", () => Object.assign(lens, { first: 0, total: 0 }));

  const refresh = redrawWhen(find(".lens-box"), ["run"], draw);
  ownFields(
    { lens: "0" },
    () => ({ lens: lens.first }),
    (given) => turnTo(wholeNumber("lens", given.lens, 0, 4095)),
  );
};
