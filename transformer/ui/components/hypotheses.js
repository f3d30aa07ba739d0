// The n-best list of a beam search.
const viz = window.viz;
const root = element.querySelector(".hypotheses");

const draw = () => {
  const found = viz.run?.hypotheses ?? [];
  root.hidden = found.length === 0;
  root.querySelector("tbody").replaceChildren(...found.map(({ text, score, normalised, ended }) => {
    const row = viz.el("tr");
    const words = viz.el("td");
    words.append(viz.el("bdi", "", text), ended ? "" : viz.el("small", "", " (cut at the length)"));
    row.append(words, viz.el("td", "value", score.toFixed(3)), viz.el("td", "value", normalised.toFixed(3)));
    return row;
  }));
  root.dataset.run = viz.run?.run ?? "";
};
viz.on("run", draw);
draw();
