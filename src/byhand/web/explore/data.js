/** The numbers of a pass, as they come from the server; undefined until they have come. */
import { Matrix } from "./matrix.js";
import { label } from "./numbers.js";

/** @typedef {import("./server.js").Server | import("./still.js").Still} Server */

const LARGE = 2e7, SLOW = 2e5; // parameters
const DWELL = 400; // milliseconds at a number before its slow facts are asked for

export class Data {
  #matrices = /** @type {Map<string, Matrix>} */ (new Map());
  #isWhole = false; // a model whose parts do not add up

  /** @param {Server} server @param {import("./pass.js").Pass} pass @param {import("./fetched.js").Fetched} fetched */
  constructor(server, pass, fetched) {
    this.server = server;
    this.pass = pass;
    this.fetched = fetched;
  }

  /** @param {string} path @param {Record<string, string | number>} [query] @param {string} [lane] */
  #get(path, query = {}, lane) {
    const load = (/** @type {AbortSignal} */ signal) => this.server.get(`${this.pass.id}/${path}`, query, signal);
    return this.fetched.get(this.#key(path, query), load, lane);
  }
  /** Why there is no answer. @param {string} path @param {Record<string, string | number>} query */
  #why(path, query) { return this.fetched.why(this.#key(path, query)); }
  #key(path, query) { return `${this.pass.id}/${path}?${JSON.stringify(query)}`; }

  /** A matrix of a tensor or, going back, of its gradient. @param {string} name @param {boolean} back @param {number} [head] */
  matrix(name, back, head = 0) {
    const key = `${this.pass.id}/${back ? "d " : ""}${name}/${head}`, had = this.#matrices.get(key);
    if (had) return had;
    const { rows, cols } = this.pass.matrix(name);
    const made = new Matrix(key, rows, cols, (r0, r1, c0, c1) => {
      const query = { name, grad: Number(back), head, rows: `${r0}-${r1 + 1}`, cols: `${c0}-${c1 + 1}` }; // ends are not part of it;
      const load = async (/** @type {AbortSignal} */ signal) => ({ r: r0, c: c0, ...(await this.server.array(`${this.pass.id}/array`, query, signal)) });
      return this.fetched.get(`${key}/${r0},${c0}`, load);
    });
    this.#matrices.set(key, made);
    return made;
  }

  /** The number of an element as its array has it. @param {string} name @param {boolean} back @param {number[]} index */
  value(name, back, index) {
    return this.matrix(name, back, this.headOf(name, index)).value(index.at(-2) ?? 0, index.at(-1) ?? 0);
  }

  /** Which matrix of a tensor an element lies in. @param {string} name @param {number[]} index */
  headOf(name, index) { return index.slice(0, -2).reduce((at, i, k) => at * this.pass.shape(name)[k] + i, 0); }

  /** Whether the way back takes so long that it is gone only when it is asked for. */
  get isLarge() { return this.pass.model.parameters > LARGE; }

  /** Whether its losses and whole gradients are fetched only when they are asked for. */
  get isSlow() { return this.pass.model.parameters > SLOW; }

  /** A number with its arithmetic. @param {string} name @param {number[]} index @param {boolean} back @param {number} [terms] */
  answer(name, index, back, terms = 8) { return this.#get("answer", { target: label(name, index, back), terms }); }
  /** Why an element has no answer. @param {string} name @param {number[]} index @param {boolean} back @param {number} [terms] */
  refusal(name, index, back, terms = 8) { return this.#why("answer", { target: label(name, index, back), terms }); }

  /** The finite difference beside a gradient. @param {string} name @param {number[]} index @returns {number | string | undefined} */
  difference(name, index) {
    const query = { target: label(name, index, true) }, load = async (/** @type {AbortSignal} */ signal) => {
      await new Promise((done) => setTimeout(done, DWELL)); // it is slow: not for a number that is only passed
      return signal.aborted ? null : this.server.get(`${this.pass.id}/difference`, query, signal);
    };
    return this.fetched.get(this.#key("difference", query), load, "difference")?.value;
  }
  /** Whether a gradient has none. @param {string} name @param {number[]} index */
  hasNoDifference(name, index) { return this.#why("difference", { target: label(name, index, true) }) !== null; }

  /** What added to a logit. @param {number} t @param {number} token @param {number | null} against @returns {import("./server.js").Shares | undefined} */
  shares(t, token, against) { return this.#isWhole ? undefined : this.#get("shares", shared(t, token, against)); }
  /** @param {number} t @param {number} token @param {number | null} against */
  noShares(t, token, against) { return (this.#isWhole ||= this.#why("shares", shared(t, token, against))?.status === 400); }

  /** @param {string} name @param {number[]} index @param {number} [width] @returns {import("./server.js").Along | undefined} */
  along(name, index, width) {
    return this.#get("along", { target: label(name, index), points: 21, ...(width && { width }) }, width ? "along wider" : "along");
  }

  /** What a place reads. @param {string} name @param {boolean} back @returns {import("./server.js").Read[] | undefined} */
  reads = (name, back) => this.#get("reads", { name, grad: Number(back) })?.reads;
  /** The lengths of vectors by place and position. @param {boolean} back @returns {Record<string, number[]> | undefined} */
  norms = (back) => (back ? this.#get("norms", { grad: 1 }) : this.pass.data.norms);
  /** @returns {Record<string, import("./server.js").Equation> | undefined} */
  equations = () => this.#get("equations");
  /** @param {string} id  of another pass @returns {import("./server.js").Comparison | undefined} */
  compared = (id) => this.#get("compare", { with: id });
  /** The loss before and after the changes, and what the gradient foretold. @returns {import("./server.js").Losses | undefined} */
  predicted = () => this.#get("predicted");
  /** The likeliest tokens after each half block. @returns {import("./server.js").Stage[] | undefined} */
  stages = () => this.#get("stages");
}

const shared = (/** @type {number} */ t, /** @type {number} */ token, /** @type {number | null} */ against) =>
  ({ position: t, token, ...(against !== null && { against }) });
