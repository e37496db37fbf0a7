/** Given numbers can be changed: the page works all others again, marks what is new, and compares the loss. */
import { expression, sourcesOf, treeOf } from "./arithmetic.js";
import { news, pointAgain, tell, tools } from "./bar.js";
import { live, make } from "./grids.js";
import { refused } from "./settings.js";
import { say } from "./words.js";
import { read, written } from "../numbers.js";

const isSame = (a, b) => Object.is(a, b) || a === b || (Number.isFinite(a - b) && Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)));
const reset = make("button", { type: "button", hidden: "" });

/**
 * Change given numbers, and everything that follows from them; return the losses before, after, and as the gradient foretold.
 * @param {any} graph @param {[cell: number, value: number][]} changes @returns {{before: number, after: number, foretold: number}[]}
 */
export const changeAll = (graph, changes) => {
  for (const [cell, value] of changes) graph.values[cell] = value;
  graph.work();
  refresh(graph);
  pointAgain();
  return graph.losses.map((loss) => {
    const { first, sum } = foretold(graph, loss, changes.map(([cell]) => cell));
    return { before: graph.lesson[first], after: graph.values[first], foretold: sum };
  });
};

/** Change one given number. @param {any} graph @param {number} cell @param {number} value */
export const change = (graph, cell, value) => changeAll(graph, [[cell, value]]);

/** The gradient at a given number, as the lesson computes it. @param {any} graph @param {[array: number, gradient: number][]} pairs @param {number} cell */
const slope = (graph, pairs, cell) => {
  const gradient = pairs.find(([array]) => array === graph.owner[cell])?.[1];
  return gradient === undefined ? NaN : graph.lesson[graph.arrays[gradient].first + cell - graph.array(cell).first];
};

/** What the gradient foretells of a loss: loss + sum of gradient times change; NaN if it knows nothing of one of the changes. */
const foretold = (graph, [which, pairs], cells) => {
  const { first } = graph.arrays[which];
  const parts = cells.map((cell) => [slope(graph, pairs, cell), graph.values[cell] - graph.lesson[cell]]);
  return { first, parts, sum: parts.reduce((total, [a, b]) => total + a * b, graph.lesson[first]) };
};

/** Write every shown number of a graph again; what is as in the lesson is written as it was printed. */
const refresh = (graph, isNew = isNewIn(graph)) => {
  for (const view of live.views) {
    if (view.graph !== graph || view.cell < 0) continue;
    const { element, cell, register, printed, sign } = view;
    if (element.tagName === "TD") {
      if (!element.firstElementChild) element.textContent = isNew(cell) ? written(sign * graph.values[cell]) : printed;
      element.classList.toggle("live-changed", isNew(cell));
      continue;
    }
    if (!graph.programs[cell]) continue;
    const tree = treeOf(graph, cell, register);
    const fresh = (register < 0 && isNew(cell)) || [...sourcesOf(tree)].some(isNew);
    const texts = fresh ? [expression(tree), written(tree.value)] : [element.arithmetic, printed];
    texts.forEach((text, k) => ((element.cells[k + 1].querySelector("code") ?? element.cells[k + 1]).textContent = text));
    element.classList.toggle("live-changed", fresh);
  }
  live.followers.forEach((follow) => follow(graph));
  tellNews(graph, isNew);
};

const isNewIn = (graph) => (cell) => !isSame(graph.values[cell], graph.lesson[cell]);

/** A number before and after; −rate is the rate. */
const arrow = (graph, cell) => {
  const { kind, setting } = graph.array(cell);
  if (kind === "switch") return say(graph.values[cell] ? "on" : "off", setting.words);
  const turned = graph.label(cell).startsWith("−") ? -1 : 1;
  return `${graph.label(cell).replace(/^−/, "")} ${written(turned * graph.lesson[cell])} → ${written(turned * graph.values[cell])}`;
};
const arrows = (graph, cells) => cells.map((cell) => arrow(graph, cell)).join(say("list"));

/** The cells that are given, and those that are made, where they are new. @param {any} graph @returns {[given: number[], made: number[]]} */
export const changedCells = (graph, isNew = isNewIn(graph)) => {
  const cells = [...graph.values.keys()].filter(isNew);
  return [cells.filter((cell) => !graph.programs[cell]), cells.filter((cell) => graph.programs[cell])];
};

/** What became of the losses; without one, how many numbers are new. @param {any} graph */
export const outcome = (graph) => {
  const cells = graph.losses.flatMap(([which, , later]) => [which, ...later]).map((k) => graph.arrays[k].first);
  return arrows(graph, cells.filter(isNewIn(graph))) || say("numbers", changedCells(graph)[1].length);
};

const tellNews = (graph, isNew) => {
  const [given, made] = changedCells(graph, isNew);
  reset.hidden = !live.graphs.some((other) => [...other.values.keys()].some(isNewIn(other)));
  if (!given.length) return news.replaceChildren();
  const lines = [say("changed", arrows(graph, given)), ...losses(graph, given), say("numbers", made.length)];
  news.replaceChildren(...lines.map((line) => make("p", {}, line)));
};

/** The loss before and after, and what the gradient foretold, if it knows all that was changed. */
const losses = (graph, given) => {
  const lines = [];
  for (const loss of graph.losses) {
    const [which, , later] = loss, { first, parts, sum } = foretold(graph, loss, given);
    if (!Number.isNaN(sum)) {
      const factor = (x) => (x < 0 ? `(${written(x)})` : written(x));
      const products = parts.slice(0, 3).map((part) => part.map(factor).join(" × "));
      const worked = [written(graph.lesson[first]), ...products, ...(parts.length > 3 ? ["…"] : [])].join(" + ");
      lines.push(`${arrow(graph, first)}${say("semicolon")}${say("foretold", worked, written(sum))}`);
    }
    const others = (Number.isNaN(sum) ? [which, ...later] : later).map((k) => graph.arrays[k].first);
    lines.push(arrows(graph, others.filter(isNewIn(graph))));
  }
  return lines.filter(Boolean);
};

/** Let a reader write a new number into a cell. */
const editCell = (view) => {
  const { graph, cell, element, sign } = view;
  if (element.firstElementChild) return;
  const before = element.textContent;
  const name = graph.label(cell).replace(/^−(?=.)/, sign < 0 ? "" : "−");
  const input = make("input", { class: "live-input", inputmode: "text", autocomplete: "off", "aria-label": say("change", name) });
  input.value = before;
  element.replaceChildren(input);
  input.focus();
  input.select();
  let done = false;
  const finish = (keep, back) => {
    if (done) return;
    const value = read(input.value);
    const why = value === null ? say("noNumber", input.value.slice(-40) || "—") : refused(graph, cell, sign * value);
    const isWrong = keep && input.value !== before && why !== "";
    if (isWrong) {
      input.setAttribute("aria-invalid", "true");
      tell(why);
      if (back) return;
    }
    done = true;
    element.textContent = before;
    if (keep && !isWrong && input.value !== before) change(graph, cell, sign * value);
    if (back) element.focus();
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Escape") {
      event.preventDefault();
      finish(event.key === "Enter", true);
    }
  });
  input.addEventListener("blur", () => finish(true, false));
};

export const listenToChanges = () => {
  const free = (target) => {
    const cell = target.closest?.("td.live-free");
    return cell && !live.blanks?.on ? live.viewOf.get(cell) : undefined;
  };
  document.addEventListener("click", (event) => free(event.target) && editCell(free(event.target)));
  document.addEventListener("keydown", (event) => {
    const view = free(event.target);
    if (!view || event.ctrlKey || event.metaKey || event.altKey || !/^(Enter|F2|[-−.\d√])$/.test(event.key)) return;
    event.preventDefault();
    editCell(view);
    if (event.key.length === 1) view.element.firstElementChild.value = event.key;
  });
  const all = (isNew) => live.blanks.on || live.graphs.forEach((graph) => refresh(graph, isNew));
  addEventListener("beforeprint", () => all(() => false)); // formulas are printed as they are written
  addEventListener("afterprint", () => all());
  reset.textContent = say("reset");
  reset.addEventListener("click", () => restore());
  tools.append(reset);
};

/** Bring the lessons' numbers back. */
export const restore = () => {
  for (const graph of live.graphs) {
    graph.values.set(graph.lesson);
    graph.work();
    graph.values.set(graph.lesson); // as printed, to the last bit
    refresh(graph);
  }
  pointAgain();
};
