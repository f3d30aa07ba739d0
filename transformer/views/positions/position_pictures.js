// What the pictures of positions share.

// px; which: the picture's name, box: where it stands.
export const heightOf = (which, box) =>
  which === "curves" || which === "token" ? 300 : Math.min(460, Math.round(box.clientWidth * 0.95));
// A last touch to a figure: its title is the page's own.
export const fitMargins = ({ layout }) => {
  layout.margin = { l: 64, r: 16, t: 8, b: 56 };
  if (layout.showlegend) Object.assign(layout.margin, { t: 36 });
  if (layout.legend) layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};
