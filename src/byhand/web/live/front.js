/** The first page's card: a lesson's numbers, which readers move; the lesson's own programs compute them again. */
import { Graph } from "./graph.js";
import { written } from "../numbers.js";
import { switchTheme } from "../theme.js";

/** @type {(selector: string) => any[]} */
const all = (selector) => [...document.querySelectorAll(selector)];
const graph = new Graph(JSON.parse(all("script.front-data")[0].textContent));
const [learn] = all("button.learn"), [again] = all("button.again"), [history] = all("svg.history");
const at = (/** @type {HTMLElement} */ element, /** @type {string} */ name) => graph.values[Number(element.dataset[name])];
let losses = /** @type {number[]} */ ([]);

const show = () => {
  graph.work();
  for (const element of all("[data-cell]")) element.textContent = written(at(element, "cell"), 4);
  for (const element of all("[data-width]")) element.style.width = `${100 * at(element, "width")}%`;
  for (const element of all("[data-signed]")) element.classList.toggle("falls", at(element, "signed") < 0);
  for (const slider of all("[data-moves]")) {
    slider.value = at(slider, "moves");
    slider.setAttribute("aria-valuetext", written(at(slider, "moves"), 4));
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
all("button.theme")[0].addEventListener("click", switchTheme);
