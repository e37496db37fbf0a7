/** A number's arithmetic on one line, as the lessons write it (book/numbers/arithmetic.py). */
import { say } from "./words.js";
import { written } from "../numbers.js";

const [SUM, PRODUCT, POWER, ATOM] = [1, 2, 3, 4]; // precedence of a piece of text
const LONG = 8; // a sum of more parts gets its own place

/** @typedef {{op: string, parts: Part[], label: string, value: number, cell: number}} Part */

/** The tree below a register of a cell's program. @returns {Part} */
export const treeOf = (graph, cell, register = -1) => {
  const [form, ...cells] = graph.programs[cell];
  const [, constants, operations, labels] = graph.forms[form];
  const values = graph.registers(cell);
  const first = cells.length + constants.length;
  /** @returns {Part} */
  const part = (at) => {
    const [op, ...parts] = at < first ? [""] : operations[at - first];
    return { op, parts: parts.map(part), label: labels[at] ?? "", value: values[at], cell: cells[at] ?? -1 };
  };
  return part(register < 0 ? values.length - 1 : register);
};

const is = (/** @type {Part} */ part, /** @type {number} */ value) => !part.op && part.value === value;
const isZeroProduct = (part) => {
  const inner = part.op === "negative" ? part.parts[0] : part;
  return inner.op === "product" && inner.parts.some((factor) => is(factor, 0));
};

/** Leave out factors 1, and products with a factor 0; of a factor −1 only the sign stays. @param {Part} part @returns {Part} */
function simplified(part) {
  let parts = part.parts.map((inner) => (inner.op && !inner.label ? simplified(inner) : inner));
  if (part.op === "product" && !parts.some((p) => is(p, 0))) {
    const kept = parts.filter((p) => !is(p, 1));
    parts = kept.length ? kept : parts.slice(0, 1);
    const minus = parts.findIndex((p) => is(p, -1));
    if (parts.length > 1 && minus >= 0) {
      const others = parts.filter((_, k) => k !== minus);
      const rest = simplified({ op: "product", parts: others, label: "", value: -part.value, cell: -1 });
      return { ...part, op: "negative", parts: [rest] };
    }
  } else if (part.op === "sum") {
    const alone = !part.parts.some((p) => p.op === "product");
    parts = parts.filter((p) => !((is(p, 0) && !alone) || isZeroProduct(p)));
    if (!parts.length) parts = [{ op: "", parts: [], label: "", value: 0, cell: -1 }];
  }
  return parts.length === 1 && (part.op === "sum" || part.op === "product") ? parts[0] : { ...part, parts };
}

/** @type {(text: string) => [string, number]} */
const tight = (text) => [text, text.startsWith("−") ? PRODUCT : ATOM];

/** A comparison in brackets, 1 if it is true and 0 if not; of a difference its two parts. @type {(step: Part, sign: string) => [string, number]} */
function compared({ parts: [inner] }, sign) {
  const [a, b] = inner.op === "sum" && inner.parts.length === 2 && inner.parts[1].op === "negative" ? [inner.parts[0], inner.parts[1].parts[0]] : [inner, null];
  return [`[${write(a)[0]} ${sign} ${b ? write(b)[0] : 0}]`, ATOM];
}

/** @type {(part: Part, top?: boolean) => [string, number]} */
function write(part, top = false) {
  const long = (part.op === "sum" || part.op === "max") && part.parts.length > LONG;
  if (!part.op || (!top && (part.label || long))) return tight(written(part.value));
  const shown = long ? [...part.parts.slice(0, 2), null, part.parts[part.parts.length - 1]] : part.parts;
  const parts = shown.map((inner) => (inner ? write(inner) : /** @type {[string, number]} */ (["…", ATOM])));
  const held = (/** @type {[string, number]} */ [text, by], least) => (by < least ? `(${text})` : text);
  switch (part.op) {
    case "sum": {
      const against = part.parts[1]?.op === "negative" ? part.parts[1].parts[0] : null;
      if (against?.op === "step" && is(part.parts[0], 1) && part.parts.length === 2) return compared(against, "≤");
      const text = parts.reduce((sum, [next, by]) => {
        if (!sum) return next;
        if (next.startsWith("−") && by >= PRODUCT) return `${sum} − ${next.slice(1)}`;
        return `${sum} + ${by < PRODUCT && next.startsWith("−") ? `(${next})` : next}`;
      }, "");
      return [text || "0", parts.length > 1 ? SUM : (parts[0]?.[1] ?? ATOM)];
    }
    case "product":
      return [parts.map(([text, by], i) => (by < PRODUCT || (i && text.startsWith("−")) ? `(${text})` : text)).join(" × "), PRODUCT];
    case "ratio":
      return [`${held(parts[0], PRODUCT)} / ${held(parts[1], POWER)}`, PRODUCT];
    case "negative": {
      const [text, by] = parts[0];
      return [by >= POWER || (by === PRODUCT && !text.startsWith("−")) ? `−${text}` : `−(${text})`, PRODUCT];
    }
    default: {
      const inside = parts.map(([text]) => text).join(", ");
      const atom = parts[0][1] === ATOM ? inside : `(${inside})`;
      if (part.op === "sqrt") return [`√${atom}`, ATOM];
      if (part.op === "square") return [`${atom}²`, POWER];
      if (part.op === "positive") return [`max(${inside}, 0)`, ATOM];
      if (part.op === "kept") return [say("kept", ...[1, 2, 0].map((k) => parts[k][0])), SUM];
      if (part.op === "draw") {
        let sum = 0;
        const sums = part.parts.slice(1).map((p) => written((sum += p.value)));
        return [say("draw", parts[0][0], sums.join(say("list"))), SUM];
      }
      if (part.op === "step") return compared(part, ">");
      return [`${part.op === "log" ? "ln" : part.op}(${inside})`, ATOM];
    }
  }
}

/** The arithmetic of a part in numbers. @param {Part} part */
export const expression = (part) => write(simplified(part), true)[0];

/**
 * The labelled parts below a part, the innermost first, each once; not the largest number that softmax subtracts.
 * @param {Part} part
 * @returns {Part[]}
 */
export const labelled = (part) => {
  const found = /** @type {Map<string, Part>} */ (new Map());
  const visit = (/** @type {Part} */ inner) => {
    inner.parts.forEach(visit);
    if (inner !== part && inner.op && inner.op !== "max" && inner.label) found.set(`${inner.label} ${inner.value}`, inner);
  };
  visit(part);
  return [...found.values()];
};

/** The cells that a part is made from, each once. @param {Part} part @returns {Set<number>} */
export const sourcesOf = (part, found = new Set()) => {
  if (part.cell >= 0) found.add(part.cell);
  part.parts.forEach((inner) => sourcesOf(inner, found));
  return found;
};
