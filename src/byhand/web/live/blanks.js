/** Blanks: results are hidden, the reader fills them in, and is told which mistake a wrong number looks like. */
import { expression, treeOf } from "./arithmetic.js";
import { judged, news, tools } from "./bar.js";
import { restore } from "./changes.js";
import { live, make } from "./grids.js";
import { pictured } from "./pictures.js";
import { lockSettings } from "./settings.js";
import { say } from "./words.js";
import { kept } from "../language.js";
import { agrees, verdict } from "../mistakes.js";
import { read, written } from "../numbers.js";

/** @typedef {{key: string, graph: any, cell: number, register: number, label: string, right: number, slips: [number, number][], views: any[], input: any, solved: boolean}} Blank */
/** @typedef {{blanks: Blank[], cover: (isOn: boolean) => void}} Cover what shows results too, until all its blanks are filled in */

const blanks = /** @type {Map<string, Blank>} */ (new Map());
/** @type {Map<any, Map<number, number>>} the reader's own numbers, by graph and cell */
const own = new Map();
const covers = /** @type {Cover[]} */ ([]);
const PLACE = `blanks ${location.pathname}`;
/** @type {Record<string, string>} what the reader wrote last, by blank; kept when the page is loaded again */
let answers = {};

/** Find the blanks of a step: the cells that it makes, and the numbers of its tables. */
const findBlanks = (section) => {
  const graph = section.graph;
  const all = graph.steps[section.dataset.step - 1].numbers;
  const numbers = new Map(all.filter((n) => n[2] >= 0 && n[3] < 0).map((n) => [n[2], n]));
  const parts = all.filter((n) => n[3] >= 0);
  for (const element of section.querySelectorAll("table.live-made td.live-cell, tr.live-row")) {
    const view = live.viewOf.get(element);
    if (element.tagName === "TD" && !graph.programs[view.cell]) continue;
    const number = element.number ?? numbers.get(view.cell);
    const label = element.number?.[0] ?? graph.label(view.cell);
    const key = `${graph.name} ${section.dataset.step} ${label}`;
    if (!blanks.has(key)) {
      const right = number ? number[1] : graph.lesson[view.cell];
      const part = number ?? parts.find((one) => Math.abs(one[1] - right) <= 1e-12 * Math.abs(right)); // kept on the way
      const slips = part ? part[4] : [];
      blanks.set(key, { key, graph, cell: view.cell, register: view.register, label, right, slips, views: [], input: null, solved: false });
    }
    view.blank = blanks.get(key);
    view.blank.views.push(view);
  }
};

/** Find what shows the same results elsewhere: later inputs, what a step keeps on its way, pictures, and text. */
const findCovers = () => {
  const all = [...blanks.values()].filter((blank) => blank.cell >= 0);
  for (const view of live.views) {
    const { graph, cell, element } = view;
    if (view.blank || element.tagName !== "TD" || !graph.programs[cell]) continue;
    const section = element.closest(".live-step");
    const same = all.filter((blank) => blank.graph === graph && blank.register < 0 && blank.cell === cell);
    const around = all.filter((blank) => blank.views.some((other) => other.element.closest(".live-step") === section));
    covers.push({ blanks: same.length ? same : around, cover: (isOn) => element.classList.toggle("live-hidden", isOn) });
  }
  for (const { graph, arrays, cover } of pictured()) {
    const own = arrays ? all.filter((blank) => arrays.includes(graph.owner[blank.cell])) : [...blanks.values()];
    covers.push({ blanks: own.filter((blank) => blank.graph === graph), cover });
  }
  for (const told of /** @type {any} */ (document.querySelectorAll(".live-told"))) {
    const { lesson, cell } = told.dataset;
    const own = all.filter((blank) => blank.graph.name === lesson && blank.cell === Number(cell) && blank.register < 0);
    covers.push({ blanks: own, cover: (isOn) => told.classList.toggle("live-hidden", isOn) });
  }
};

const cover = () => covers.forEach((one) => one.cover(live.blanks.on && one.blanks.some((blank) => !blank.solved)));

const keep = () => kept.set(PLACE, live.blanks.on ? JSON.stringify(answers) : null);

/** Where a view shows its number. */
const placeOf = ({ element }) => (element.tagName === "TD" ? element : element.cells[2]);

const hide = (/** @type {Blank} */ blank) => {
  const grid = blank.views.find((view) => view.element.tagName === "TD");
  blank.views.forEach((view, k) => {
    const asks = grid ? view === grid : k === 0, place = placeOf(view);
    if (view.element.tagName === "TR") view.element.cells[1].classList.add("live-hidden");
    view.kept ??= [...place.childNodes];
    if (!asks) return place.classList.add("live-hidden");
    const input = make("input", { class: "live-input", autocomplete: "off", "aria-label": say("blank", blank.label) });
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") judge(blank, input, true);
    });
    input.addEventListener("change", () => judge(blank, input, false));
    blank.input = input;
    place.replaceChildren(input);
    if (view.element.tagName === "TD") view.element.tabIndex = -1;
  });
};

const reveal = (/** @type {Blank} */ blank) => {
  for (const view of blank.views) {
    const place = placeOf(view);
    place.replaceChildren(...view.kept);
    place.classList.remove("live-hidden");
    if (view.element.tagName === "TR") view.element.cells[1].classList.remove("live-hidden");
  }
};

/** The number that right arithmetic gives from the reader's own earlier numbers. */
const followed = ({ graph, cell, register }) => {
  if (!graph.programs[cell]) return NaN;
  const registers = graph.registers(cell, (source) => own.get(graph)?.get(source) ?? graph.lesson[source]);
  return registers[register < 0 ? registers.length - 1 : register];
};

/** Judge what a reader wrote; what is right is kept. */
const judge = (blank, input, asked) => {
  const text = input.value.trim();
  if (blank.solved || (!asked && !text)) return;
  if (!text) {
    const { graph, cell, register, label } = blank;
    if (graph.programs[cell]) judged(`${label} = ${expression(treeOf(graph, cell, register))}`);
    return;
  }
  judged(settle(blank, text));
  keep();
  if (!blank.solved) return;
  cover();
  tellProgress();
  next(blank);
};

/** Settle what was written into a blank; return what is to be said. */
const settle = (blank, text) => {
  const given = read(text);
  if (given === null) {
    blank.input.setAttribute("aria-invalid", "true");
    return say("noNumber", text);
  }
  answers[blank.key] = text;
  const right = agrees(given, blank.right);
  const carried = !right && agrees(given, followed(blank));
  if (blank.register < 0 && blank.cell >= 0) {
    if (!own.has(blank.graph)) own.set(blank.graph, new Map());
    own.get(blank.graph).set(blank.cell, right ? blank.right : given);
  }
  if (right || carried) {
    blank.solved = true;
    reveal(blank);
    blank.views.forEach((view) => view.element.classList.add("live-right"));
    return say(right ? "right" : "carried", blank.label, written(blank.right));
  }
  blank.input.value = text;
  blank.input.setAttribute("aria-invalid", "true");
  return diagnosis(blank, text, given);
};

/** Say which mistake a wrong number looks like. */
const diagnosis = (blank, text, given) => {
  const near = (value) => agrees(given, value) && !agrees(blank.right, value);
  const apart = ([value]) => Math.abs(value - given);
  const slip = blank.slips.filter(([value]) => near(Number(value))).sort((a, b) => apart(a) - apart(b))[0];
  if (slip) {
    const words = blank.graph.words[slip[1]];
    return say(/^(the|that) /.test(words) ? "general" : "mistake", blank.label, text, words);
  }
  const [isRounded, word] = verdict(text, blank.right) ?? [false, "notYet"]; // right to the digits that were given, too few
  if (word !== "notYet") return say("general", blank.label, text, say(isRounded ? "rounded" : word));
  return say("wrong", blank.label, text);
};

/** Go to the next open blank, if the reader is still at this one. */
const next = (blank) => {
  const here = blank.views[0].element, open = [.../** @type {any} */ (document.querySelectorAll(".live-step input.live-input"))];
  if (document.activeElement !== document.body) return;
  open.find((input) => here.compareDocumentPosition(input) & Node.DOCUMENT_POSITION_FOLLOWING)?.focus();
};

const tellProgress = () => {
  const all = [...blanks.values()];
  news.replaceChildren(make("p", {}, say("done", all.filter((blank) => blank.solved).length, all.length)));
};

const turn = (on, before = {}) => {
  restore();
  live.blanks.on = on;
  document.documentElement.classList.toggle("live-blanks", on);
  lockSettings(on);
  judged("");
  own.clear();
  answers = {};
  for (const blank of blanks.values()) {
    blank.views.forEach((view) => view.element.classList.remove("live-right"));
    blank.solved = false;
    if (on) hide(blank);
    else reveal(blank);
  }
  for (const [key, text] of Object.entries(before)) if (blanks.has(key)) settle(blanks.get(key), String(text));
  cover();
  keep();
  if (on) tellProgress();
  else news.replaceChildren();
};

/** Add the switch; return what brings those back with which the page was left. */
export const listenToBlanks = () => {
  live.sections.filter((section) => Number(section.dataset.step)).forEach(findBlanks);
  findCovers();
  const box = make("input", { type: "checkbox", autocomplete: "off" });
  box.addEventListener("change", () => turn(box.checked));
  tools.append(make("label", {}, box, ` ${say("blanks")}`));
  return () => {
    const before = JSON.parse(kept.get(PLACE) ?? "null");
    box.checked = before !== null;
    if (before) turn(true, before);
  };
};
