/** Matrices of a lesson as grids of cells that can be pointed at, and the rows of its tables tied to the same cells. */
import { decimals } from "../numbers.js";
import { Graph } from "./graph.js";

/** @typedef {{graph: any, cell: number, register: number, element: any, printed: string, sign: number, blank?: any, kept?: Node[]}} View */

/**
 * The page's lessons; every place that shows a number, and the one of an element; whether results are hidden; what follows changes.
 * @type {{graphs: Graph[], sections: any[], views: View[], viewOf: WeakMap<Element, View>, blanks: {on: boolean}, followers: ((graph: any) => void)[]}}
 */
export const live = { graphs: [], sections: [], views: [], viewOf: new WeakMap(), blanks: { on: false }, followers: [] };

/** Whether a place of the page is a blank that is still open. @param {any} view */
export const isBlank = (view) => !!view.blank && live.blanks.on && !view.blank.solved;

/** Make an element. @param {string} tag @param {Record<string, any>} [facts] @param {...(Node|string)} children @returns {any} */
export const make = (tag, facts = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

/** @param {View} view */
const addView = (view) => {
  live.views.push(view);
  live.viewOf.set(view.element, view);
  return view;
};

/** One matrix: [array, first cell, columns, cells from row to row, printed texts, sign]. */
const grid = (/** @type {Graph} */ graph, /** @type {any[]} */ [which, first, columns, stride, texts, sign], part, letter) => {
  const array = graph.arrays[which];
  const name = sign < 0 ? array.name.replace("−", "") : array.name;
  const alone = array.shape.length ? "" : " live-alone";
  const called = name ? { "aria-label": name } : letter ? { "aria-labelledby": letter.id } : {};
  const table = make("table", { class: `live-grid live-${part}${alone}`, role: "grid", ...called });
  for (let at = 0; at < texts.length; at += columns) {
    const row = make("tr", { role: "row" });
    for (let k = at; k < at + columns; k++) {
      const free = array.kind === "free" && part !== "made";
      const facts = { role: "gridcell", tabindex: k ? -1 : 0, class: free ? "live-cell live-free" : "live-cell" };
      const element = make("td", { ...facts, "aria-readonly": !free }, texts[k]);
      addView({ graph, cell: first + (at / columns) * stride + (k - at), register: -1, element, printed: texts[k], sign });
      row.append(element);
    }
    table.append(row);
  }
  rove(table, [...table.querySelectorAll("td")], columns);
  return table;
};

/** Let the arrow keys move among elements of which only one is in the tab order; without columns, along one line. */
export const rove = (box, items, columns = NaN) => {
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  box.addEventListener("keydown", (event) => {
    const at = items.indexOf(event.target);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const ends = { Home: -at, End: items.length - 1 - at };
    const next = items[at + ({ ...moves, ...ends }[event.key] ?? NaN)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  box.addEventListener("focusin", (event) => {
    if (items.includes(event.target)) items.forEach((item) => (item.tabIndex = item === event.target ? 0 : -1));
  });
};

let letters = 0;

/** Set the grids of a displayed block beside the formula that printers and pages without scripts show. */
const fillBlock = (graph, box) => {
  const grids = make("div", { class: "live-lines" });
  for (const line of JSON.parse(box.dataset.show)) {
    const row = make("div", { class: "live-line" });
    let letter = null; // stands beside its matrix, also where a narrow line breaks
    for (const piece of line) {
      if (Array.isArray(piece)) {
        const pair = make("span", { class: "live-pair" });
        row.append(pair);
        pair.append(...(letter ? [letter] : []), grid(graph, piece, box.dataset.part, letter));
        letter = null;
      } else if (piece) {
        letter = make("span", { class: "live-letter", id: `live-letter-${(letters += 1)}` });
        letter.append(...new DOMParser().parseFromString(piece, "text/html").body.childNodes); // MathML, which the build made
        row.append(letter);
      }
    }
    grids.append(row);
  }
  box.append(grids);
};

/** Tie the rows of a step's tables to the numbers that they work. */
const tieRows = (graph, step, section) => {
  const numbers = new Map(graph.steps[step - 1].numbers.map((number) => [number[0], number]));
  for (const table of section.querySelectorAll("table:not(.live-grid)")) {
    const own = [...table.querySelectorAll("tbody tr")].filter((row) => numbers.has(row.cells[0].textContent.trim()));
    own.forEach((row, k) => {
      const number = numbers.get(row.cells[0].textContent.trim());
      const printed = row.cells[2].textContent;
      row.classList.add("live-row");
      row.tabIndex = k ? -1 : 0;
      row.number = number;
      addView({ graph, cell: number[2], register: number[3], element: row, printed, sign: 1 });
      row.arithmetic = row.cells[1].textContent;
    });
    rove(table, own, 1);
  }
};

/** Make the page's graphs, grids and rows. */
export const build = () => {
  const scripts = [...document.querySelectorAll("script.live-data")];
  const graphs = new Map(scripts.map((script) => JSON.parse(script.textContent)).map((data) => [data.lesson, new Graph(data)]));
  /** @type {any[]} */
  const sections = [...document.querySelectorAll(".live-step")];
  decimals.places = Number(document.querySelector("[data-places]")?.getAttribute("data-places") ?? 0);
  for (const section of sections) {
    const graph = graphs.get(section.dataset.lesson);
    section.graph = graph;
    section.querySelectorAll(".live-math").forEach((box) => fillBlock(graph, box));
    if (Number(section.dataset.step)) tieRows(graph, Number(section.dataset.step), section);
  }
  document.documentElement.classList.add("live");
  return { graphs: [...graphs.values()], sections };
};
