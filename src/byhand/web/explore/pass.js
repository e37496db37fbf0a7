/** A pass as it was computed: which equation made what of what, and the flow from the text to the loss. */
import { byteText } from "./numbers.js";
import { visible } from "../numbers.js";

/**
 * One use of a tensor: the application that reads it, and as which input.
 * @typedef {{equation: string, inputs: (string | null)[], results: string[], slot: number}} Use
 * What leaves the stream and comes back: rows of places, then what is added (`out`), then the stream after it (`trunk`).
 * @typedef {{rows: string[][], out: string, trunk: string}} Branch
 * A stretch of the flow: a block's branches, or places of the stream itself.
 * @typedef {{block: number | null, places: string[], branches: Branch[]}} Stretch
 */

const SOFTMAXES = ["causal_softmax", "window_softmax"];
export const GIVEN = ["tokens", "targets"];

/** @param {string} name @returns {number | null} */
export function blockOf(name) {
  const found = /^blocks\.(\d+)\./.exec(name);
  return found ? Number(found[1]) : null;
}
/** @param {string} name */
export const tailOf = (name) => name.replace(/^blocks\.\d+\./, "");

export class Pass {
  /** @param {import("./server.js").PassData} data */
  constructor(data) {
    this.data = data;
    this.id = data.id;
    this.model = data.model;
    this.tokens = data.tokens;
    this.last = data.tokens.length - 1;
    /** where one begins: the last position that has a target, so that the loss asks something of it */
    this.start = data.targets.findLastIndex((id) => id >= 0);
    if (this.start < 0) this.start = this.last;
    this.heads = data.model.heads;
    /** whether it is of a run that trains here */
    this.isTrained = false;
    /** tokens whose texts have not come @type {Set<number>} */
    this.unknown = new Set();
    /** the likeliest token after the text */
    this.likeliest = 0;
    this.uses = /** @type {Map<string, Use[]>} */ (new Map());
    const applications = /** @type {Map<string, Use>} */ (new Map());
    for (const name of data.places) {
      const { equation, inputs } = data.made[name];
      inputs.forEach((input, slot) => {
        if (input === null) return;
        const key = `${equation}/${inputs}/${slot}`, known = applications.get(key);
        if (known) return void known.results.push(name);
        const use = { equation, inputs, results: [name], slot };
        applications.set(key, use);
        this.uses.set(input, [...(this.uses.get(input) ?? []), use]);
      });
    }
    const added = data.places.filter((name) => data.made[name].equation === "residual");
    /** the residual stream: its states */
    this.stream = new Set([...added, ...added.map((name) => /** @type {string} */ (data.made[name].inputs[0]))]);
    this.stretches = this.#stretches();
  }

  /** @param {string} name @returns {number[]} */
  shape(name) { return this.data.shapes[name] ?? this.data.shapes[this.updated(name)] ?? []; }
  /** @param {string} name */
  has(name) { return (name in this.data.shapes && !GIVEN.includes(name)) || this.updated(name) !== ""; }
  /** The parameter to whose update a name belongs; "" if it is another one. @param {string} name */
  updated(name) {
    const found = /^(.+)\.(theta|m|v|update)$/.exec(name)?.[1] ?? "";
    return !(name in this.data.shapes) && this.data.trained[found] ? found : "";
  }
  /** @param {string} name */
  isParameter(name) { return name in this.data.trained; }
  /** A token as it is shown. @param {number} id */
  text(id) {
    if (id < 0) return "–";
    if (!(id in this.data.texts) && this.model.unit === "byte") return visible(byteText(id)) || "∅";
    if (!(id in this.data.texts)) this.unknown.add(id);
    return visible(this.data.texts[id] ?? "…") || "∅";
  }
  /** What follows a position in the text; -1 if nothing does. @param {number} t */
  target(t) { return this.data.targets[t] ?? -1; }
  /** Rows and columns of the matrix that is shown of a tensor. @param {string} name */
  matrix(name) {
    const shape = this.shape(name);
    return { rows: shape.at(-2) ?? 1, cols: shape.at(-1) ?? 1, heads: shape.slice(0, -2).reduce((a, b) => a * b, 1) };
  }
  /** How many heads a tensor has; 0 if it has none. @param {string} name */
  headsOf(name) { return this.shape(name).length === 4 ? this.shape(name)[1] : 0; }
  /** The head of a tensor that belongs to a head of the queries, which may share keys and values. @param {string} name @param {number} head */
  headFor(name, head) {
    const count = this.headsOf(name);
    return count ? Math.min(count - 1, Math.floor((head * count) / this.heads)) : 0;
  }
  /** The weights of attention in a block. @param {number} block @returns {string | undefined} */
  weightsOf(block) { return this.data.places.find((name) => blockOf(name) === block && this.isAttention(name)); }
  /** @param {string} name */
  isAttention(name) {
    const equation = this.data.made[name]?.equation;
    return SOFTMAXES.includes(equation) || (equation === "softmax" && this.shape(name).length === 4);
  }
  /** What the mask forbids in a matrix of a query's row and a key's column. @param {string} name @returns {((r: number, c: number) => boolean) | null} */
  mask(name) {
    const of = [this.data.made[name], ...(this.uses.get(name) ?? []).map((use) => this.data.made[use.results[0]])];
    const made = of.find((each) => each && SOFTMAXES.includes(each.equation));
    if (!made || this.shape(name).at(-1) !== this.shape(name).at(-2)) return null;
    const window = made.static.window ?? Infinity;
    return (r, c) => c > r || c <= r - window;
  }
  /** The element of the stream that flows at a place of it or beside it. @param {string} name */
  isAlongText(name) {
    const shape = this.shape(name);
    return shape.length >= 3 && shape.at(-2) === this.tokens.length;
  }

  #stretches() {
    const found = /** @type {Stretch[]} */ ([]);
    for (const name of this.data.places) {
      const block = blockOf(name), last = found.at(-1);
      if (this.shape(name).length === 2 && block === null) continue; // the head's matrix, transposed embeddings
      if (last?.block === block) last.places.push(name);
      else found.push({ block, places: [name], branches: [] });
    }
    for (const stretch of found) if (stretch.block !== null) stretch.branches = this.#branches(stretch.places);
    return found;
  }

  /** @param {string[]} places  of a block */
  #branches(places) {
    const left = new Set(places);
    const found = /** @type {Branch[]} */ ([]);
    for (const trunk of places.filter((name) => this.data.made[name].equation === "residual")) {
      const out = /** @type {string} */ (this.data.made[trunk].inputs[1]);
      const reached = this.#reached(out, left);
      for (const name of [...reached, trunk]) left.delete(name);
      found.push({ rows: this.#rows(places.filter((name) => reached.has(name))), out, trunk });
    }
    for (const name of places.filter((each) => left.has(each))) { // such as a norm of the stream itself
      const at = found.findIndex((branch) => branch.trunk === this.data.made[name].inputs[0]);
      found.splice(at + 1 || found.length, 0, { rows: [], out: name, trunk: name });
    }
    return found;
  }

  /** What a place was made from, among others. @param {string | null} name @param {Set<string>} among @returns {Set<string>} */
  #reached(name, among, found = new Set()) {
    if (name === null || !among.has(name) || found.has(name) || this.stream.has(name)) return found;
    found.add(name);
    for (const input of this.data.made[name].inputs) this.#reached(input, among, found);
    return found;
  }

  /** Places that stand beside each other: made by the same equation, not of one another. @param {string[]} names */
  #rows(names) {
    const rows = /** @type {string[][]} */ ([]);
    for (const name of names) {
      const made = this.data.made[name], row = rows.at(-1), first = row && this.data.made[row[0]];
      const isBeside = first && row.length < 3 && first.equation === made.equation && !made.inputs.some((input) => input && row.includes(input));
      if (isBeside) row.push(name);
      else rows.push([name]);
    }
    return rows;
  }
}
