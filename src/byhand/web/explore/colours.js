/**
 * Colour maps: stops from the middle to the far end. Each pair differs in lightness from its middle evenly and in a hue
 * pair that no common colour blindness joins: blue and vermilion for values, violet and green for gradients.
 */
import { isDark } from "../theme.js";

/** @typedef {"value" | "gradient" | "attention"} Kind @typedef {[number, number, number]} Colour */

const MAPS = {
  light: {
    value: [["f1efe9", "f6b99f", "d9532a", "7f1f04"], ["f1efe9", "a9cdec", "3a80c4", "0c3a6b"]],
    gradient: [["f1efe9", "aed9ab", "429a48", "0f4a1c"], ["f1efe9", "dbbdec", "9a58c2", "4a1669"]],
    attention: [["f1efe9", "9fd3d6", "27868f", "053f46"]],
  },
  dark: {
    value: [["202429", "7c3a20", "e8713f", "ffbb93"], ["202429", "1d4f80", "4f9fe6", "a9d6ff"]],
    gradient: [["202429", "2a5c31", "5cb868", "b2f0b5"], ["202429", "57307a", "b077e0", "dcbcff"]],
    attention: [["202429", "155960", "36aab4", "b8f3f6"]],
  },
};
const STEPS = 64;

/** @param {string[]} stops @returns {Colour[]} */
function table(stops) {
  const rgb = stops.map((stop) => [0, 2, 4].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  return Array.from({ length: STEPS + 1 }, (_, k) => {
    const x = (k / STEPS) * (rgb.length - 1), i = Math.min(rgb.length - 2, Math.floor(x));
    return /** @type {Colour} */ (rgb[i].map((a, c) => Math.round(a + (rgb[i + 1][c] - a) * (x - i))));
  });
}
const tables = Object.fromEntries(Object.entries(MAPS).map(([theme, maps]) =>
  [theme, Object.fromEntries(Object.entries(maps).map(([kind, sides]) => [kind, sides.map(table)]))]));

export const theme = () => (isDark() ? "dark" : "light");

/** The colour of a number: its size to the power 0.6, so that small ones are seen beside a few large ones. @param {Kind} kind @param {number} x @param {number} most @param {string} [by] */
export function colour(kind, x, most, by = theme()) {
  const sides = tables[by][kind], side = sides[x < 0 ? sides.length - 1 : 0];
  if (Number.isNaN(x)) return /** @type {Colour} */ ([128, 128, 128]);
  return side[Math.round(STEPS * Math.min(1, Math.abs(x) / (most || 1)) ** 0.6)];
}
/** @param {Colour} colour */
const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
/** Text on a colour. @param {Colour} colour */
export const onto = ([r, g, b]) => (r * 0.299 + g * 0.587 + b * 0.114 > 140 ? "#16181a" : "#fdfdfb");

/** @param {Kind} kind */
export function scaleOf(kind) {
  const steps = kind === "attention" ? [0, 0.1, 0.3, 0.6, 1] : [-1, -0.5, -0.15, 0, 0.15, 0.5, 1];
  return `linear-gradient(90deg, ${steps.map((x) => css(colour(kind, x, 1))).join(", ")})`;
}

const inks = /** @type {Map<string, string>} */ (new Map());
/** A colour of the style sheet, as canvases want it. @param {string} name */
export function ink(name) {
  const key = `${theme()}${name}`, had = inks.get(key);
  if (had) return had;
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  inks.set(key, found);
  return found;
}
