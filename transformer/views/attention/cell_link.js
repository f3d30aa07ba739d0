// The pinned cell in a link.

import { ownFields } from "../../ui/static/fields.js";
import { wholeNumber } from "../../ui/static/link_text.js";
import { page, setQuery, tracedFrom } from "../../web/store.js";

// The pinned cell, state.pin, as a link has it: "row,column", or "row" alone. The row's token becomes
// the query. queryStack(), keyStack(): what the rows and the columns are.
export const linkCell = (state, queryStack, keyStack, show) => {
  const count = (stack) =>
    (stack === page.run.stack ? page.run.labels : page.run.source_labels).length -
    tracedFrom(stack);
  const read = () =>
    state.pin && { cell: [state.pin.row, state.pin.column].filter((at) => at !== null).join() };
  ownFields({ cell: "" }, read, ({ cell }) => {
    if (cell === "" || !page.run) {
      state.pin = null;
      return show();
    }
    const [row, column] = cell.split(",");
    /** @type {{row: number, column: number | null}} */
    const pin = { row: wholeNumber("cell's row", row, 0, count(queryStack()) - 1), column: null };
    if (column) pin.column = wholeNumber("cell's column", column, 0, count(keyStack()) - 1);
    state.pin = pin;
    setQuery({ stack: queryStack(), index: pin.row + tracedFrom(queryStack()) });
    return show();
  });
};
