/** Numbers and names as the page writes and reads them. */
import { number } from "../numbers.js";

/** An element of a pass, or of its gradients. @typedef {{name: string, index: number[], back: boolean}} There */

/** A number of the server's JSON, which has "NaN" and "Infinity" as text. @param {number | string} x */
export const numeric = (x) => (typeof x === "string" ? Number(x) : x);

/** @param {number | string | undefined} x @param {number} digits */
export const shown = (x, digits = 4) => (x === undefined ? "–" : number(numeric(x), digits));

/** Three digits that fit a cell; what is smaller than they say is nearly nothing until one opens it. @param {number} x */
export function brief(x) {
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return shown(x);
  if (x && size < 0.0005) return "≈0";
  return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−").replace(/^(−?)0\./, "$1.");
}

/** @param {number} value  a change, with its sign @param {number} digits */
export const signed = (value, digits = 3) => (value < 0 || Number.isNaN(value) ? "" : "+") + shown(value, digits);

/** An element as `explain` writes it. @param {string} name @param {number[]} index @param {boolean} [back] */
export const label = (name, index, back = false) => `${back ? "d " : ""}${name}${index.length ? `[${index.join(",")}]` : ""}`;

/** @param {string} text  an element as `explain` takes it @returns {There} */
export function parse(text) {
  const found = /^(d )?([^[]*)(?:\[([^\]]*)\])?$/.exec(text.trim());
  if (!found) return { name: "", index: [], back: false };
  const index = found[3] ? found[3].split(",").map((each) => (each.trim() === "top" ? NaN : Math.trunc(Number(each)))) : [];
  return { name: found[2].trim(), index, back: Boolean(found[1]) };
}

/** The last two numbers of an index, which say the row and the column. @param {number[]} index */
export const short = (index) => index.slice(-2).join(",");

/** A byte as the server writes it. @param {number} id */
export const byteText = (id) => (id < 0x80 ? String.fromCharCode(id) : `\\x${id.toString(16)}`);
