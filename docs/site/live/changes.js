"use strict";
/** Given numbers can be changed: the page works all others again, marks what is new, and compares the loss. */
{
  const same = (a, b) => Object.is(a, b) || a === b || (Number.isFinite(a - b) && Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)));
  const reset = live.make("button", { type: "button", hidden: "" });

  /**
   * Change a given number, and everything that follows from it.
   * @param {any} graph
   * @param {number} cell
   * @param {number} value
   */
  live.change = (graph, cell, value) => {
    graph.values[cell] = value;
    graph.work();
    refresh(graph);
    live.pointAgain();
  };

  /** Write every shown number of a graph again; what is as in the lesson is written as it was printed. */
  const refresh = (graph, isNew = (cell) => !same(graph.values[cell], graph.lesson[cell])) => {
    for (const view of live.views) {
      if (view.graph !== graph || view.cell < 0) continue;
      const { element, cell, register, printed, sign } = view;
      if (element.tagName === "TD") {
        if (!element.firstElementChild) element.textContent = isNew(cell) ? live.written(sign * graph.values[cell]) : printed;
        element.classList.toggle("live-changed", isNew(cell));
        continue;
      }
      if (!graph.programs[cell]) continue;
      const tree = live.tree(graph, cell, register);
      const fresh = (register < 0 && isNew(cell)) || [...live.sources(tree)].some(isNew);
      const texts = fresh ? [live.expression(tree), live.written(tree.value)] : [element.arithmetic, printed];
      texts.forEach((text, k) => ((element.cells[k + 1].querySelector("code") ?? element.cells[k + 1]).textContent = text));
      element.classList.toggle("live-changed", fresh);
    }
    live.showSettings(graph);
    tellNews(graph, isNew);
  };

  const tellNews = (graph, isNew) => {
    const cells = [...graph.values.keys()].filter(isNew);
    const given = cells.filter((cell) => !graph.programs[cell]);
    reset.hidden = !live.graphs.some((other) => !other.values.every((value, cell) => same(value, other.lesson[cell])));
    if (!given.length) return live.news.replaceChildren();
    const turned = (cell) => (graph.label(cell).startsWith("−") ? -1 : 1);
    const arrow = (cell) =>
      graph.array(cell).kind === "switch"
        ? live.say(graph.values[cell] ? "on" : "off", graph.array(cell).setting.words)
        : `${graph.label(cell).replace(/^−/, "")} ${live.written(turned(cell) * graph.lesson[cell])} → ${live.written(turned(cell) * graph.values[cell])}`;
    const lines = [live.say("changed", given.map(arrow).join(live.say("list"))), ...losses(graph, given, arrow)];
    lines.push(live.say("numbers", cells.length - given.length));
    live.news.replaceChildren(...lines.map((line) => live.make("p", {}, line)));
  };

  /** The loss before and after, and what the gradient foretold: loss + sum of gradient times change. */
  const losses = (graph, given, arrow) => {
    const lines = [];
    for (const [which, pairs, later] of graph.losses) {
      const { first } = graph.arrays[which];
      const gradients = new Map(pairs.map(([array, gradient]) => [array, graph.arrays[gradient].first]));
      const isOther = given.some((cell) => graph.array(cell).kind === "switch"); // of which a gradient knows nothing
      const moved = given.filter((cell) => gradients.has(graph.owner[cell]) && graph.owner[cell] !== which);
      const slope = (cell) => graph.lesson[gradients.get(graph.owner[cell]) + cell - graph.array(cell).first];
      const change = (cell) => graph.values[cell] - graph.lesson[cell];
      if (isOther && !same(graph.values[first], graph.lesson[first])) lines.push(arrow(first));
      else if (moved.length) {
        const sum = moved.reduce((total, cell) => total + slope(cell) * change(cell), graph.lesson[first]);
        const factor = (x) => (x < 0 ? `(${live.written(x)})` : live.written(x));
        const products = moved.slice(0, 3).map((cell) => `${factor(slope(cell))} × ${factor(change(cell))}`);
        const worked = [live.written(graph.lesson[first]), ...products, ...(moved.length > 3 ? ["…"] : [])].join(" + ");
        lines.push(`${arrow(first)}${live.say("semicolon")}${live.say("foretold", worked, live.written(sum))}`);
      }
      const news = later.map((k) => graph.arrays[k]).filter((a) => !same(graph.values[a.first], graph.lesson[a.first]));
      if (news.length) lines.push(news.map((a) => arrow(a.first)).join(live.say("list")));
    }
    return lines;
  };

  /** Let a reader write a new number into a cell. */
  const edit = (view) => {
    const { graph, cell, element, sign } = view;
    if (element.firstElementChild) return;
    const before = element.textContent;
    const name = graph.label(cell).replace(/^−(?=.)/, sign < 0 ? "" : "−");
    const input = live.make("input", { class: "live-input", inputmode: "text", autocomplete: "off", "aria-label": live.say("change", name) });
    input.value = before;
    element.replaceChildren(input);
    input.focus();
    input.select();
    let done = false;
    const finish = (keep, back) => {
      if (done) return;
      const value = live.read(input.value);
      const why = value === null ? live.say("noNumber", input.value.slice(-40) || "—") : live.refused(graph, cell, sign * value);
      const isWrong = keep && input.value !== before && why !== "";
      if (isWrong) {
        input.setAttribute("aria-invalid", "true");
        live.tell(why);
        if (back) return;
      }
      done = true;
      element.textContent = before;
      if (keep && !isWrong && input.value !== before) live.change(graph, cell, sign * value);
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

  live.listenToChanges = () => {
    const free = (target) => {
      const cell = target.closest?.("td.live-free");
      return cell && !live.blanks?.on ? live.viewOf.get(cell) : undefined;
    };
    document.addEventListener("click", (event) => free(event.target) && edit(free(event.target)));
    document.addEventListener("keydown", (event) => {
      const view = free(event.target);
      if (!view || event.ctrlKey || event.metaKey || event.altKey || !/^(Enter|F2|[-−.\d√])$/.test(event.key)) return;
      event.preventDefault();
      edit(view);
      if (event.key.length === 1) view.element.firstElementChild.value = event.key;
    });
    const all = (isNew) => live.blanks.on || live.graphs.forEach((graph) => refresh(graph, isNew));
    addEventListener("beforeprint", () => all(() => false)); // formulas are printed as they are written
    addEventListener("afterprint", () => all());
    reset.textContent = live.say("reset");
    reset.addEventListener("click", () => live.restore());
    live.tools.append(reset);
  };

  /** Bring the lessons' numbers back. */
  live.restore = () => {
    for (const graph of live.graphs) {
      graph.values.set(graph.lesson);
      graph.work();
      graph.values.set(graph.lesson); // as printed, to the last bit
      refresh(graph);
    }
    live.pointAgain();
  };
}
