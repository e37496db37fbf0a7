/** By hand: what a wrong number looks like, by the trace that a mistake leaves in the result. */
import { shown } from "./numbers.js";

/** @param {string} text */
export const typed = (text) => Number(text.trim().replace("−", "-").replace(",", ".").replace(/·10(.*)$/, (_, power) => `e${[...power].map((c) => (c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c))).join("")}`));

/** Half a unit of the last digit that was given: what rounding may take. @param {string} text @param {number} x */
function rounding(text, x) {
  const digits = text.replace(/[eE·].*$/, "").replace(/^\D*0*(?:[.,]0*)?/, "").replace(/\D/g, "").length || 1;
  return x === 0 ? 0 : 0.5 * 10 ** (Math.floor(Math.log10(Math.abs(x))) + 1 - digits);
}

/** @param {string} text  what was typed @param {number} value  what is right @returns {[isRight: boolean, word: string, values: string[]] | null} */
export function verdict(text, value) {
  const x = typed(text);
  if (text.trim() === "" || Number.isNaN(x)) return null;
  const least = rounding(text, x) * 1.0001 + 1e-12 * Math.abs(value), near = (/** @type {number} */ to) => Number.isFinite(to) && Math.abs(x - to) <= Math.max(least, 1e-6 * Math.abs(to)) && x !== 0;
  const significant = text.replace(/[eE·].*$/, "").replace(/^\D*0*(?:[.,]0*)?/, "").replace(/\D/g, "").length;
  if ((x === 0 && value === 0) || (near(value) && (significant > 1 || Math.abs(value - x) <= 0.06 * Math.abs(value)))) return [true, "right", []];
  if (near(-value)) return [false, "sign", []];
  if (near(10 * value) || near(value / 10)) return [false, "place", []];
  if (near(1 / value)) return [false, "inverse", []];
  if (near(Math.exp(value))) return [false, "exp", []];
  if (near(2 * value) || near(value / 2)) return [false, "half", []];
  if (near(value * value)) return [false, "square", []];
  return [false, "notYet", [shown(x - value, 2)]];
}
