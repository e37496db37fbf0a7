"use strict";
/** The first page's card: a lesson's numbers, which readers move; the lesson's own programs compute them again. */
{
  const graph = new live.Graph(JSON.parse(document.querySelector("script.front-data").textContent));
  const all = (/** @type {string} */ selector) => [...document.querySelectorAll(selector)];
  const [learn] = all("button.learn"), [again] = all("button.again"), [history] = all("svg.history");
  const at = (/** @type {HTMLElement} */ element, name) => graph.values[Number(element.dataset[name])];
  /** @type {number[]} */
  let losses = [];

  const show = () => {
    graph.work();
    for (const element of all("[data-cell]")) element.textContent = live.written(at(element, "cell"), 4);
    for (const element of all("[data-width]")) element.style.width = `${100 * at(element, "width")}%`;
    for (const element of all("[data-signed]")) element.classList.toggle("falls", at(element, "signed") < 0);
    for (const slider of all("[data-moves]")) {
      slider.value = at(slider, "moves");
      slider.setAttribute("aria-valuetext", live.written(at(slider, "moves"), 4));
    }
    const top = Math.max(...losses), wide = Math.max(12, losses.length - 1);
    const points = losses.map((loss, k) => `${(200 * k) / wide},${38 - (36 * loss) / top}`);
    history.querySelector("polyline").setAttribute("points", points.length > 1 ? points.join(" ") : "");
    again.hidden = all("[data-moves]").every(({ dataset: { moves } }) => graph.values[moves] === graph.lesson[moves]);
  };

  for (const slider of all("[data-moves]")) {
    slider.addEventListener("input", () => {
      graph.values[Number(slider.dataset.moves)] = Number(slider.value);
      losses = [];
      show();
    });
  }
  learn.addEventListener("click", () => {
    const { from, to, count } = learn.dataset;
    if (!losses.length) losses.push(at(history, "loss"));
    graph.values.copyWithin(Number(to), Number(from), Number(from) + Number(count));
    show();
    losses.push(at(history, "loss"));
    show();
  });
  again.addEventListener("click", () => {
    graph.values.set(graph.lesson);
    losses = [];
    show();
    learn.focus(); // the button that had the focus is gone
  });
  show();
}
