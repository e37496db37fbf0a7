/** The steps of a page's lessons as a graph to walk, forward and back: what a step makes, and from what. */
import { point, tell, tools } from "./bar.js";
import { live, make, rove } from "./grids.js";
import { lightSpots, placeSpots } from "./pictures.js";
import { say } from "./words.js";

const [ABOVE, LINE] = [0.2, 0.22]; // of the window: where a step is brought to, and the line that the current one crosses
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export const listenToSteps = () => {
  const sections = live.sections.filter((section) => Number(section.dataset.step));
  const facts = (section) => section.graph.steps[section.dataset.step - 1];
  const map = make("ol", { class: "live-map", "aria-label": say("map") });
  const nodes = sections.map((section) => {
    const { title, makes } = facts(section);
    const names = [...new Set(makes.map((array) => section.graph.arrays[array].name).filter(Boolean))];
    const said = say("step", section.dataset.step, section.graph.steps.length, title);
    const button = make("button", { type: "button", title: said, "aria-label": said, tabindex: -1 }, names.join(" ") || section.querySelector("strong").textContent.replace(".", ""));
    button.addEventListener("click", () => go(sections.indexOf(section)));
    map.append(make("li", {}, button));
    return button;
  });
  let at = -1;
  let stood = NaN; // where the window stands since the last walk; before it has come there, -1

  /** Whether the reader has not scrolled away from the step that was walked to. */
  const isThere = () => stood < 0 || Math.abs(scrollY - stood) < 2;
  addEventListener("scrollend", () => (stood = stood < 0 ? scrollY : stood));
  ["wheel", "touchmove"].forEach((way) => addEventListener(way, () => (stood = NaN), { passive: true }));

  /** The step that is next from where the window stands: the one below the line, or above it. */
  const nextTo = (by) => {
    if (isThere()) return at + by;
    const line = LINE * innerHeight;
    const places = sections.map((section) => (section.closest("details:not([open])") ?? section).getBoundingClientRect());
    return by > 0 ? places.findIndex((place) => place.top > line) : places.findLastIndex((place) => place.bottom < line);
  };

  /** Go to a step: it comes into view, what it reads and makes lights up, its title is said. */
  const go = (wanted) => {
    at = Math.min(Math.max(wanted, 0), sections.length - 1);
    const section = sections[at];
    const { title, reads, makes } = facts(section);
    section.tabIndex = -1;
    section.closest("details")?.setAttribute("open", "");
    const top = section.getBoundingClientRect().top + scrollY - ABOVE * innerHeight;
    const before = scrollY;
    scrollTo({ top, behavior: calm.matches ? "instant" : "smooth" });
    const low = document.documentElement.scrollHeight - innerHeight;
    stood = Math.abs(Math.min(Math.max(top, 0), low) - before) < 1 || scrollY !== before ? scrollY : -1;
    section.focus({ preventScroll: true });
    show(section);
    point(undefined);
    const lit = (name, arrays) => {
      const wantedArrays = new Set(arrays);
      for (const view of live.views) {
        const own = view.graph === section.graph && view.cell >= 0 && wantedArrays.has(view.graph.owner[view.cell]);
        if (own && view.element.tagName === "TD") view.element.classList.add(name);
      }
    };
    lit("live-source", reads);
    lit("live-here", makes);
    tell(say("step", section.dataset.step, section.graph.steps.length, title));
  };

  /** Mark a step in the map, and the steps that it reads from. */
  const show = (section) => {
    at = sections.indexOf(section);
    const read = new Set(facts(section).reads);
    nodes.forEach((node, k) => {
      const reads = sections[k].graph === section.graph && facts(sections[k]).makes.some((array) => read.has(array));
      node.classList.toggle("live-at", k === at);
      node.classList.toggle("live-from", k !== at && reads);
      node.tabIndex = k === Math.max(at, 0) ? 0 : -1;
      if (k === at) node.setAttribute("aria-current", "step");
      else node.removeAttribute("aria-current");
    });
    lightSpots(section.graph, facts(section));
    const node = nodes[at].parentElement;
    map.scrollLeft = node.offsetLeft - map.clientWidth / 2 + node.clientWidth / 2;
  };

  rove(map, nodes);
  const button = (key, sign, by) => {
    const made = make("button", { type: "button", "aria-label": say(key), title: say(key) }, sign);
    made.addEventListener("click", () => {
      const wanted = nextTo(by);
      go(wanted < 0 && by > 0 ? sections.length - 1 : wanted);
      made.focus({ preventScroll: true });
    });
    return made;
  };
  tools.prepend(button("previous", "◀", -1), map, button("next", "▶", 1));
  nodes[0].tabIndex = 0;
  placeSpots((graph, arrays) => {
    const made = sections.findIndex((one) => one.graph === graph && facts(one).makes.some((array) => arrays.includes(array)));
    return made < 0 ? undefined : () => go(made);
  });
  const observer = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && !isThere() && show(/** @type {any} */ (entry.target))),
    { rootMargin: `-${100 * LINE}% 0px -${100 - 100 * LINE}% 0px` },
  );
  sections.forEach((section) => observer.observe(section));
};
