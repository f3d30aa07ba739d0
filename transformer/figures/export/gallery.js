// Whole pictures below one another: all at once, or each drawn when it is opened.
(() => {
  'use strict';
  const viz = window.viz;
  const { element } = viz;
  const note = (text) => element('p', { className: 'note', textContent: text });
  const draw = (place, one) => viz.draw(place.querySelector('.figure'), one, { label: `${one.title}; ${one.subtitle}` });

  /** Draw the pictures in a place, again if they stand there already. */
  viz.drawAll = (place, pictures) => {
    // All places first: each one that is added changes the width of the others.
    for (const { title, subtitle } of pictures.slice(place.children.length)) {
      place.append(element('figure', {}, [
        element('figcaption', { textContent: title }), note(subtitle), element('div', { className: 'figure' }),
      ]));
    }
    pictures.forEach((one, at) => draw(place.children[at], one));
  };

  /** A closed box a picture. */
  viz.listClosed = (place, pictures) => {
    place.replaceChildren(...pictures.map((one) => {
      const wide = element('div', { className: 'wide', tabIndex: 0 }, [element('div', { className: 'figure' })]);
      const summary = element('summary', { textContent: one.title });
      const box = element('details', {}, [summary, note(one.help), note(one.subtitle), wide]);
      box.addEventListener('toggle', () => box.open && draw(box, one));
      return box;
    }));
  };

  /** Draw again the pictures of the boxes that are open. */
  viz.drawOpen = (place, pictures) => {
    pictures.forEach((one, at) => place.children[at].open && draw(place.children[at], one));
  };
})();
