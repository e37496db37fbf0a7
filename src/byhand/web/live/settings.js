/** Settings: a slider for a temperature, a k or a rate, a switch for a mask; each stands where it acts. */
import { change } from "./changes.js";
import { live, make } from "./grids.js";
import { say } from "./words.js";
import { written } from "../numbers.js";

/** @typedef {{graph: any, cell: number, sign: number, input: HTMLInputElement, shown: HTMLElement|null}} Control */

const controls = /** @type {Control[]} */ ([]);
const sign = (graph, cell) => (graph.label(cell).startsWith("−") ? -1 : 1);

/** Make the slider or the switch of a cell; beside the cell itself no value is shown again. */
const control = (graph, cell, isBeside) => {
  const { setting, kind } = graph.array(cell);
  const letter = graph.label(cell).replace(/^−/, "");
  const said = kind === "switch" || setting.words.startsWith(letter) ? setting.words : `${setting.words} ${letter}`;
  const range = { min: setting.low, max: setting.high, step: setting.step };
  const facts = kind === "switch" ? { type: "checkbox", role: "switch" } : { type: "range", ...range, "aria-label": said };
  const input = make("input", { ...facts, class: "live-slider", autocomplete: "off" });
  const shown = isBeside || kind === "switch" ? null : make("output", { "aria-hidden": "true" });
  const words = make("span", {}, isBeside && kind !== "switch" ? setting.words : said);
  const own = { graph, cell, sign: sign(graph, cell), input, shown };
  input.addEventListener("input", () => {
    change(graph, cell, kind === "switch" ? Number(input.checked) : own.sign * Number(input.value));
  });
  controls.push(own);
  const order = kind === "switch" ? [input, words] : [words, input];
  return make("label", { class: "live-setting" }, ...order, ...(shown ? [shown] : []));
};

/** Show the settings of a graph as they are. */
const showSettings = (graph) => {
  for (const own of controls.filter((one) => one.graph === graph)) {
    const value = own.sign * graph.values[own.cell];
    own.input.checked = value === 1;
    if (own.input.type !== "range") continue;
    own.input.value = String(value);
    own.input.setAttribute("aria-valuetext", written(value));
    if (own.shown) own.shown.textContent = written(value);
  }
};

/** @param {boolean} locked */
export const lockSettings = (locked) => controls.forEach((own) => (own.input.disabled = locked));

/** Why a number cannot be given to a cell; "" if it can. @param {any} graph @param {number} cell @param {number} value */
export const refused = (graph, cell, value) => {
  const { setting } = graph.array(cell);
  if (!setting?.bound) return Math.abs(value) <= graph.largest ? "" : say("large", graph.largest.toLocaleString("en"));
  const fits = value >= setting.low && value <= setting.high && (setting.step !== 1 || Number.isInteger(value));
  const ends = [setting.low, setting.high].map((end) => written(end));
  return fits ? "" : say(setting.step === 1 ? "whole" : "between", graph.label(cell), ...ends);
};

/** The cells that a setting's first step makes, or a switch works in another way. */
const actsOn = (graph, which) => {
  const { first } = graph.arrays[which];
  const choice = graph.choices.find(([cell]) => cell === first);
  const made = choice && new Set(Object.keys(choice[1][0][1]).map((cell) => graph.owner[Number(cell)]));
  return (step) => (made ? step.makes.some((array) => made.has(array)) : step.reads.includes(which));
};

/** Set the controls: beside the given number, and above the result of the first step that a setting acts on. */
export const listenToSettings = () => {
  live.followers.push(showSettings);
  for (const graph of live.graphs) {
    const sections = live.sections.filter((section) => section.graph === graph);
    graph.arrays.forEach((array, which) => {
      if (!array.setting) return;
      const given = live.views.find((view) => view.graph === graph && view.cell === array.first && view.element.matches(".live-given td"));
      given?.element.closest("table").after(control(graph, array.first, true));
      const acts = actsOn(graph, which);
      const section = sections.find((one) => Number(one.dataset.step) && acts(graph.steps[one.dataset.step - 1]));
      const result = [...(section?.querySelectorAll(".live-math") ?? [])].at(-1);
      result?.before(control(graph, array.first, false));
      const lines = array.kind === "switch" && sections[0]?.dataset.step === "0" ? [...sections[0].querySelectorAll(".live-lines")].at(-1) : null;
      lines?.append(make("div", { class: "live-line" }, control(graph, array.first, true)));
    });
    showSettings(graph);
  }
};
