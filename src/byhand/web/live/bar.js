/** The bar below the text: the arithmetic of the number that is pointed at, news of changes, and the page's switches. */
import { expression, labelled, sourcesOf, treeOf } from "./arithmetic.js";
import { isBlank, live, make } from "./grids.js";
import { say } from "./words.js";
import { written } from "../numbers.js";

const judgement = make("output", { class: "live-verdict", "aria-live": "polite" });
const text = make("output", { class: "live-text", "aria-live": "polite" });
export const news = make("div", { class: "live-news", role: "status" });
const ways = make("div", { class: "live-ways" });
export const tools = make("div", { class: "live-tools" });
/** @type {HTMLElement} */
let bar;

/** Put the bar at the end of the article, where it sticks to the bottom of the window. */
export const placeBar = () => {
  bar = make("aside", { class: "live-bar", "aria-label": say("bar") }, make("div", { class: "live-said" }, judgement, text, ways, news), tools);
  const last = /** @type {HTMLElement} */ (document.querySelector(".live-step"));
  (last.closest("article") ?? document.body).append(bar);
  text.textContent = say(document.querySelector(".live-free") ? "hint" : "hintFixed");
  new ResizeObserver(() => {
    document.documentElement.style.scrollPaddingBottom = `${bar.offsetHeight + 16}px`;
    const own = pointed?.element; // its arithmetic may make the bar so high that it covers the number
    const isCovered = own === document.activeElement && own?.getBoundingClientRect().bottom > bar.getBoundingClientRect().top;
    if (isCovered) own.scrollIntoView({ block: "nearest", behavior: "instant" });
  }).observe(bar);
  const near = new Set(); // a page may have its lesson far below its beginning
  const observer = new IntersectionObserver(
    (entries) => {
      entries.forEach(({ target, isIntersecting }) => (isIntersecting ? near.add(target) : near.delete(target)));
      bar.classList.toggle("live-away", !near.size);
    },
    { rootMargin: "100% 0px" },
  );
  document.querySelectorAll(".live-step").forEach((section) => observer.observe(section));
};

/** @param {string} said */
export const tell = (said) => (text.textContent = said);

/** Say whether an answer is right; it stays whatever is pointed at. @param {string} said */
export const judged = (said) => (judgement.textContent = said);

const valueOf = (graph, cell) => written(graph.values[cell]);

/** The arithmetic of a number, and of the parts that it names. */
const lines = ({ graph, cell, register, sign, element }) => {
  const label = element.number?.[0] ?? graph.label(cell);
  if (!graph.programs[cell]) {
    const name = sign < 0 ? label.replace("−", "") : label;
    const kind = graph.array(cell).kind;
    const key = element.classList.contains("live-free") ? "given" : kind === "index" ? "index" : "fixed";
    return [say(key, `${name} = ${written(sign * graph.values[cell])}`)];
  }
  const tree = treeOf(graph, cell, register);
  if (!tree.op) return [say("copied", label, valueOf(graph, cell), tree.cell < 0 ? "0" : graph.label(tree.cell))];
  const said = (name, part) => {
    const [worked, result] = [expression(part), written(part.value)];
    return worked === result ? `${name} = ${result}` : `${name} = ${worked} = ${result}`;
  };
  return [said(label || "", tree).replace(/^ = /, ""), ...labelled(tree).map((part) => said(part.label, part))];
};

const markViews = (name, wanted) => {
  document.querySelectorAll(`.${name}`).forEach((element) => element.classList.remove(name));
  const found = live.views.filter(wanted);
  found.forEach((view) => view.element.classList.add(name));
  return found;
};

let lit = [];
let isKept = false; // what is pointed at, though another number has the focus

/** Where a view stands: below the window, above it, or in it; of one that is folded away, what it is folded into. */
const outside = ({ element }) => {
  const place = (element.closest("details:not([open])") ?? element).getBoundingClientRect();
  if (place.top > bar.getBoundingClientRect().top - 8) return place.top - innerHeight / 2;
  return place.bottom < 8 || element.closest("details:not([open])") ? place.bottom - innerHeight / 2 : 0;
};

/** Offer a way to each array of lit numbers of which none is to be seen. */
const offerWays = () => {
  const arrays = /** @type {Map<string, any[]>} */ (new Map());
  for (const view of lit) {
    const key = view.graph.array(view.cell).name;
    arrays.set(key, [...(arrays.get(key) ?? []), [outside(view), view]]);
  }
  const away = [...arrays].filter(([, views]) => views.every(([apart]) => apart)).map(([name, views]) => [name, ...views.sort(([a], [b]) => Math.abs(a) - Math.abs(b))[0]]);
  const said = away.map(([name, apart]) => `${apart < 0 ? "↑" : "↓"} ${name}`);
  if (said.join() === [...ways.children].map((way) => way.textContent).join()) return;
  ways.replaceChildren(
    ...away.map(([name, , { element }], k) => {
      const way = make("button", { type: "button", "aria-label": say("goTo", name) }, said[k]);
      way.addEventListener("click", () => {
        element.closest("details")?.setAttribute("open", "");
        element.scrollIntoView({ block: "center", behavior: "instant" });
        isKept = true;
        element.focus({ preventScroll: true });
        isKept = false;
        offerWays();
      });
      return way;
    }),
  );
};

/** @type {any} */
let pointed;

/** Say again what is pointed at, after its numbers changed. */
export const pointAgain = () => pointed && point(pointed);

/** Show where a number comes from: light up its sources, write its arithmetic. @param {import("./grids.js").View|undefined} view */
export const point = (view) => {
  pointed = view;
  const there = view && view.cell >= 0 ? view : undefined;
  const sources = there && there.graph.programs[there.cell] ? sourcesOf(treeOf(there.graph, there.cell, there.register)) : new Set();
  const here = markViews("live-here", (other) => there && other.graph === there.graph && other.cell === there.cell && other.register === there.register);
  const made = markViews("live-source", (other) => there && other.graph === there.graph && other.register < 0 && sources.has(other.cell));
  lit = [...here, ...made].filter((other) => other.element.tagName === "TD" || other.register >= 0);
  offerWays();
  if (view && isBlank(view)) tell(say("blank", view.blank.label));
  else if (there) tell(lines(there).join("\n"));
  else if (view) tell(`${view.element.number[0]} = ${view.element.arithmetic} = ${view.printed}`);
};

/** Point with the mouse, a finger or the keyboard; what has the focus stays when the mouse leaves. */
export const listen = () => {
  const view = (target) => live.viewOf.get(target?.closest?.("td.live-cell, tr.live-row"));
  document.addEventListener("mouseover", (event) => view(event.target) && point(view(event.target)));
  document.addEventListener("mouseout", (event) => {
    if (view(event.target) && !view(event.relatedTarget)) point(view(document.activeElement));
  });
  document.addEventListener("focusin", (event) => !isKept && view(event.target) && point(view(event.target)));
  let isAsked = false;
  const afterwards = () => {
    isAsked = false;
    offerWays();
  };
  document.addEventListener("scroll", () => lit.length && !isAsked && (isAsked = !!requestAnimationFrame(afterwards)), { passive: true });
};
