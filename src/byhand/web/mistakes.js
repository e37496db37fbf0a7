/** What a wrong number looks like, by the trace that a mistake leaves in the result. */
import { decimals, read } from "./numbers.js";

const RELATIVE = 5e-3; // paper and pencil: three digits are enough
const ROUNDED = 5.1e-4; // or three decimals

/** Whether a number is right to three digits or three decimals, or to the page's decimals; for 0, whether it rounds to 0. @param {number} given @param {number} right */
export const agrees = (given, right) => {
  if (!Number.isFinite(right)) return given === right;
  const apart = Math.abs(given - right);
  if (decimals.places && right !== 0) return apart <= 0.51 * 10 ** -decimals.places;
  if (right === 0 || given === 0) return apart <= ROUNDED / 10;
  return apart <= Math.max(RELATIVE * Math.abs(right), Math.min(ROUNDED, 0.05 * Math.abs(right)));
};

/** The digits that were given, without zeros before them. @param {string} text */
const digitsOf = (text) => text.replace(/[eE·].*$/, "").replace(/^\D*0*(?:[.,]0*)?/, "").replace(/\D/g, "").length;

/**
 * Whether a number is right to the digits that were given, or else which mistake it looks like; null if it is no number.
 * @param {string} text  what was typed
 * @param {number} value  what is right
 * @returns {[isRight: boolean, mistake: string, apart: number] | null}
 */
export function verdict(text, value) {
  const x = read(text);
  if (text.trim() === "" || x === null) return null;
  const digits = digitsOf(text), rounding = x === 0 ? 0 : 0.5 * 10 ** (Math.floor(Math.log10(Math.abs(x))) + 1 - (digits || 1)); // half a unit of the last one
  const least = rounding * 1.0001 + 1e-12 * Math.abs(value), near = (/** @type {number} */ to) => Number.isFinite(to) && Math.abs(x - to) <= Math.max(least, 1e-6 * Math.abs(to)) && x !== 0;
  if ((x === 0 && value === 0) || (near(value) && (digits > 1 || Math.abs(value - x) <= 0.06 * Math.abs(value)))) return [true, "right", 0];
  /** @type {[string, number][]} */
  const mistakes = [["sign", -value], ["place", 10 * value], ["place", value / 10], ["inverse", 1 / value], ["exp", Math.exp(value)], ["half", 2 * value], ["half", value / 2], ["square", value * value]];
  return [false, mistakes.find(([, to]) => near(to))?.[0] ?? "notYet", x - value];
}
