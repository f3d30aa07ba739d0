// What the pictures of positions share: a last touch to a figure, whose title is the page's own.

const MOST_PX = 460;

export const low = ({ layout }) => {
  layout.height = 300;
  layout.margin = { l: 64, r: 16, t: layout.showlegend ? 36 : 8, b: 56 };
  if (layout.legend) layout.legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };
};
export const nearlySquare = (figure) => {
  low(figure);
  figure.layout.height = Math.min(MOST_PX, Math.round(figure.layout.width * 0.95));
};
