// What is kept of each picture that Plotly has drawn.

// What belongs to a drawn box: {listens, whole}; whole: its figure with labels by Plotly.
const drawn = new WeakMap();
export const drawnIn = (box) => {
  if (!drawn.has(box)) drawn.set(box, { listens: false, whole: null });
  return drawn.get(box);
};
export const forgetDrawn = (box) => drawn.delete(box);

export const paperColour = () => getComputedStyle(document.body).backgroundColor;
// The figure of a drawn box, {data, layout}, with all that the page draws around it.
export const figureIn = (box) => drawnIn(box).whole ?? box;
