"use strict";
/** Matrices of a lesson as grids of cells that can be pointed at, and the rows of its tables tied to the same cells. */
{
  /** @typedef {{graph: any, cell: number, register: number, element: HTMLElement, printed: string, sign: number}} View */

  /** @type {View[]} every place of the page that shows a number */
  live.views = [];
  /** @type {WeakMap<Element, View>} */
  live.viewOf = new WeakMap();

  /**
   * Make an element.
   * @param {string} tag
   * @param {Record<string, any>} [facts]
   * @param {...(Node|string)} children
   * @returns {any}
   */
  live.make = (tag, facts = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  /** @param {View} view */
  const add = (view) => {
    live.views.push(view);
    live.viewOf.set(view.element, view);
    return view;
  };

  /** One matrix: [array, first cell, columns, cells from row to row, printed texts, sign]. */
  const grid = (graph, [which, first, columns, stride, texts, sign], part, letter) => {
    const array = graph.arrays[which];
    const name = sign < 0 ? array.name.replace("−", "") : array.name;
    const alone = array.shape.length ? "" : " live-alone";
    const called = name ? { "aria-label": name } : letter ? { "aria-labelledby": letter.id } : {};
    const table = live.make("table", { class: `live-grid live-${part}${alone}`, role: "grid", ...called });
    for (let at = 0; at < texts.length; at += columns) {
      const row = live.make("tr", { role: "row" });
      for (let k = at; k < at + columns; k++) {
        const free = array.kind === "free" && part !== "made";
        const facts = { role: "gridcell", tabindex: k ? -1 : 0, class: free ? "live-cell live-free" : "live-cell" };
        const element = live.make("td", { ...facts, "aria-readonly": !free }, texts[k]);
        add({ graph, cell: first + (at / columns) * stride + (k - at), register: -1, element, printed: texts[k], sign });
        row.append(element);
      }
      table.append(row);
    }
    rove(table, [...table.querySelectorAll("td")], columns);
    return table;
  };

  /** Let the arrow keys move among elements of which only one is in the tab order. */
  const rove = (box, items, columns) => {
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
  const block = (graph, box) => {
    const grids = live.make("div", { class: "live-lines" });
    for (const line of JSON.parse(box.dataset.show)) {
      const row = live.make("div", { class: "live-line" });
      let letter = null; // stands beside its matrix, also where a narrow line breaks
      for (const piece of line) {
        if (Array.isArray(piece)) {
          const pair = live.make("span", { class: "live-pair" });
          row.append(pair);
          pair.append(...(letter ? [letter] : []), grid(graph, piece, box.dataset.part, letter));
          letter = null;
        } else if (piece) {
          letter = live.make("span", { class: "live-letter", id: `live-letter-${(letters += 1)}` });
          letter.innerHTML = piece; // MathML, which the build made
          row.append(letter);
        }
      }
      grids.append(row);
    }
    box.append(grids);
  };

  /** Tie the rows of a step's tables to the numbers that they work. */
  const rows = (graph, step, section) => {
    const numbers = new Map(graph.steps[step - 1].numbers.map((number) => [number[0], number]));
    for (const table of section.querySelectorAll("table:not(.live-grid)")) {
      const own = [...table.querySelectorAll("tbody tr")].filter((row) => numbers.has(row.cells[0].textContent.trim()));
      own.forEach((row, k) => {
        const number = numbers.get(row.cells[0].textContent.trim());
        const printed = row.cells[2].textContent;
        row.classList.add("live-row");
        row.tabIndex = k ? -1 : 0;
        row.number = number;
        add({ graph, cell: number[2], register: number[3], element: row, printed, sign: 1 });
        row.arithmetic = row.cells[1].textContent;
      });
      rove(table, own, 1);
    }
  };

  /** Make the page's graphs, grids and rows. */
  live.build = () => {
    const scripts = [...document.querySelectorAll("script.live-data")];
    const graphs = new Map(scripts.map((script) => JSON.parse(script.textContent)).map((data) => [data.lesson, new live.Graph(data)]));
    /** @type {HTMLElement[]} */
    const sections = [...document.querySelectorAll(".live-step")];
    live.places = Number(document.querySelector("[data-places]")?.dataset.places ?? 0); // decimals; 0 for six digits
    for (const section of sections) {
      const graph = graphs.get(section.dataset.lesson);
      section.graph = graph;
      section.querySelectorAll(".live-math").forEach((box) => block(graph, box));
      if (Number(section.dataset.step)) rows(graph, Number(section.dataset.step), section);
    }
    document.documentElement.classList.add("live");
    return { graphs: [...graphs.values()], sections };
  };
}
