// Until what has been changed is painted.
export const nextPaint = () =>
  new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
