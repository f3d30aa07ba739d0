// Elements of the page, and the table of what a step could have chosen.
(() => {
  'use strict';
  const viz = window.viz;

  viz.element = (tag, properties = {}, children = []) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const { element } = viz;

  viz.candidateRows = (step) => {
    const most = Math.max(...step.candidates.flatMap((c) => [c.probability, c.sampling_probability]));
    return step.candidates.map((candidate) => {
      const chosen = candidate.id === step.token;
      const cut = candidate.sampling_probability === 0;
      const label = element('td', {}, [chosen ? '▶ ' : '', element('bdi', { textContent: candidate.label }), chosen ? ' (chosen)' : '']);
      const after = cut ? element('td', { textContent: '✕ cut' }) : bar(candidate.sampling_probability, most, 'bar after');
      const row = element('tr', {}, [label, bar(candidate.probability, most, 'bar'), after]);
      row.classList.toggle('chosen', chosen);
      row.classList.toggle('cut', cut);
      return row;
    });
  };

  const bar = (probability, most, className) => {
    const line = element('span', { className });
    line.style.width = `${(70 * probability) / most}%`;
    return element('td', {}, [line, `${(100 * probability).toFixed(2)}%`]);
  };
})();
