// The pictures that the page was served with, first_look.html, until its own are drawn.

// Show the page's own grid of heads; the large head stays, in `box`, until it is drawn there too.
/** @type {(box: Element) => void} */
export const endFirstLook = (box) => {
  const look = document.querySelector("#first-look");
  const head = look?.querySelector(".first-head");
  if (head) box.prepend(head);
  look?.remove();
};
