/** What a place shows: the equation that made it or, going back, the one that reads it and so hands it its gradient. */
import { S, now } from "./state.js";
import { GIVEN, blockOf, tailOf } from "./pass.js";
import { inLanguage, placeWord, say } from "./words.js";

/**
 * A matrix beside the equation; `slot` is "out" for that of the chosen number.
 * @typedef {{
 *   name: string, back: boolean, slot: "out" | "in", symbol: string, key: string, kind: import("./colours.js").Kind, head: number,
 *   mask: ((r: number, c: number) => boolean) | null, matrix: import("./matrix.js").Matrix, rows: number, cols: number, isVector: boolean, isParameter: boolean,
 * }} Mat
 * @typedef {{name: string | null, equation: import("./server.js").Equation | null, use: import("./pass.js").Use | null, uses: import("./pass.js").Use[], mats: Mat[]}} View
 */

/** A place as the page calls it. @param {string} name */
export function word(name) {
  const made = now.pass.data.made[name];
  return placeWord(tailOf(name)) ?? (made ? inLanguage(now.data.equations()?.[made.equation]?.title) || tailOf(name) : tailOf(name));
}
/** The same with its block. @param {string} name */
export const spoken = (name) => (blockOf(name) === null ? word(name) : `${say("block", /** @type {number} */ (blockOf(name)))} ${word(name)}`);

/** @param {string} name @param {boolean} back @param {"out" | "in"} slot @param {string} symbol @returns {Mat} */
function mat(name, back, slot, symbol) {
  const { pass, data } = now, { rows, cols } = pass.matrix(name);
  const head = slot === "out" ? data.headOf(name, S.i) : pass.headFor(name, S.head[1]);
  return {
    name, back, slot, symbol: symbol && (back ? `<math><mo>∂</mo>${symbol.replace(/^<math[^>]*>/, "")}` : symbol), key: `${back ? "d " : ""}${name}`, head, rows, cols,
    kind: back ? "gradient" : pass.isAttention(name) ? "attention" : "value", mask: pass.mask(name), matrix: data.matrix(name, back, head),
    isVector: pass.shape(name).length < 2, isParameter: pass.isParameter(name),
  };
}

/** @returns {View} */
export function view() {
  const { pass, data } = now;
  if (pass.updated(S.at)) return { name: null, equation: null, use: null, uses: [], mats: [] };
  const equations = data.equations(), uses = pass.uses.get(S.at) ?? [], made = pass.data.made[S.at];
  const use = uses[S.use] ?? uses[0] ?? null;
  if (!S.back || !use) {
    const own = uses[0] ? equations?.[uses[0].equation]?.inputs[uses[0].slot]?.symbol ?? "" : "", equation = made ? equations?.[made.equation] ?? null : null;
    const inputs = made?.inputs.flatMap((name, k) => (name && !GIVEN.includes(name) && !S.back ? [mat(name, false, "in", equation?.inputs[k]?.symbol ?? "")] : [])) ?? [];
    return { name: made?.equation ?? null, equation, use: null, uses, mats: [...inputs, mat(S.at, S.back, "out", equation?.results[made?.result ?? 0]?.symbol ?? own)] };
  }
  const equation = equations?.[use.equation] ?? null, symbolOf = (/** @type {string} */ name) => {
    const slot = use.inputs.indexOf(name), result = pass.data.made[name]?.result ?? 0;
    return (slot >= 0 ? equation?.inputs[slot]?.symbol : equation?.results[result]?.symbol) ?? "";
  };
  const own = [...use.results, ...use.inputs], read = data.reads(S.at, true)?.filter(({ name, gradient }) => own.includes(name) && !GIVEN.includes(name) && !(gradient && name === S.at));
  const from = read ?? [...use.results.map((name) => ({ name, gradient: true })), ...use.inputs.flatMap((name, k) => (name && k !== use.slot && !GIVEN.includes(name) ? [{ name, gradient: false }] : []))];
  const mats = from.filter(({ name }) => name !== "loss").map(({ name, gradient }) => mat(name, gradient, "in", symbolOf(name)));
  return { name: use.equation, equation, use, uses, mats: [...mats, mat(S.at, true, "out", symbolOf(S.at))] };
}

/** The rows and columns of a matrix that an element was made from; null if that is not known. @param {Mat} m @param {number[]} index  of the element @returns {{r0: number, r1: number, c0: number, c1: number} | null} */
export function madeFrom(m, index) {
  const rule = now.data.reads(S.at, S.back)?.find(({ name, gradient }) => name === m.name && gradient === m.back);
  if (!rule?.axes) return null;
  const shape = now.pass.shape(m.name), counted = [...index, ...rule.divided.map(([axis, by]) => Math.floor(index[axis] / by))];
  const far = rule.axes.map((pair) => pair.map(([base, ...by]) => by.reduce((sum, c, k) => sum + c * (counted[k] ?? 0), base)));
  if (far.some(([first, last], axis) => last < 0 || first >= shape[axis])) return null;
  const ends = far.map((pair, axis) => pair.map((place) => Math.max(0, Math.min(shape[axis] - 1, place))));
  const leading = ends.slice(0, -2).map(([first, last], axis) => ({ first, last, axis })), at = headIndex(m);
  if (leading.some(({ first, last, axis }) => at[axis] < first || at[axis] > last)) return null;
  const [r0, r1] = ends.at(-2) ?? [0, 0], [c0, c1] = ends.at(-1) ?? [0, 0];
  return { r0, r1, c0, c1 };
}

/** The places of a matrix on its tensor's leading axes. @param {Mat} m */
function headIndex(m) {
  let left = m.head;
  return now.pass.shape(m.name).slice(0, -2).map((size, axis, all) => {
    const below = all.slice(axis + 1).reduce((a, b) => a * b, 1), at = Math.floor(left / below) % size;
    left -= at * below;
    return at;
  });
}
/** @param {Mat} m @param {number} r @param {number} c */
export const indexIn = (m, r, c) => {
  const count = now.pass.shape(m.name).length;
  return count === 0 ? [] : count === 1 ? [c] : [...headIndex(m), r, c];
};
