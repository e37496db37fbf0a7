/** The server's side: the routes under /explore, and what each gives. */
import { keptHere } from "../language.js";
import { lost, request } from "../api.js";

/**
 * How a pass differs from the model's own.
 * @typedef {{target: string, value: number} | {head: [number, number]} | {mask: false}} Change
 * @typedef {{equation: string, inputs: (string | null)[], result: number, static: Record<string, any>}} Made
 * @typedef {{name: string, top: [number, number][][], true: ([number, number] | null)[]}} Stage
 * @typedef {{
 *   id: string, base: string | null, prompt: string, tokens: number[], targets: number[], texts: Record<string, string>,
 *   model: {name: string, step: number | null, parameters: number, layers: number, heads: number, kv_heads: number, width: number, vocab: number, unit: "byte" | "token" | "word"},
 *   loss: number | string | null, places: string[], shapes: Record<string, number[]>, made: Record<string, Made>,
 *   trained: Record<string, boolean>, norms: Record<string, number[]>, next: string, theirs?: boolean,
 * }} PassData
 * @typedef {{name: string, symbol: string, meaning: {en: string, zh: string}}} Symbol_
 * @typedef {{line: number, text: string[]}} Lines
 * @typedef {{
 *   title: {en: string, zh: string}, forward: string, derivative: string, file: string, forward_lines: Lines | null,
 *   derivative_lines: Lines | null, test: string | null, page: string | null, inputs: Symbol_[], results: Symbol_[],
 * }} Equation
 * @typedef {{name: string, gradient: boolean, divided: [number, number][], axes: [number[], number[]][] | null}} Read
 * @typedef {{parts: {name: string, value: number}[], total: number, bias: number}} Shares
 * @typedef {{before: number, after: number, predicted: number | null}} Losses
 * @typedef {{value: number, slope: number, losses: [number, number][]}} Along
 * @typedef {{first: string | null, places: {name: string, difference: number | null, index: number[] | null, gradient?: boolean}[]}} Comparison
 */

export class Server {
  key = keptHere.get("key") ?? "";

  /** @param {string} key */
  unlock(key) {
    this.key = key;
    keptHere.set("key", key);
  }

  /** @param {string} path @param {unknown} body @returns {Promise<any>} */
  async post(path, body) {
    return (await request(`/explore/${path}`, this.key, { method: "POST", body: JSON.stringify(body) })).json();
  }

  /** @param {{prompt?: string, next?: string, changes?: Change[]}} asked @returns {Promise<PassData>} */
  pass(asked) { return this.post("pass", asked); }

  /** @param {string} path  behind the pass's id @param {Record<string, any>} [query] @param {AbortSignal} [signal] @returns {Promise<any>} */
  async get(path, query = {}, signal) { return (await this.#asked(path, query, signal)).json(); }

  /**
   * Numbers of a matrix: those of a window.
   * @param {string} path @param {Record<string, any>} query @param {AbortSignal} signal
   * @returns {Promise<{rows: number, cols: number, data: Float32Array}>}
   */
  async array(path, query, signal) {
    const response = await this.#asked(path, query, signal);
    const [rows, cols] = (response.headers.get("x-shape") ?? "").split(",").map(Number);
    const bytes = await response.arrayBuffer().catch(lost);
    return { rows, cols, data: new Float32Array(bytes) }; // browsers run on little-endian machines
  }

  /** @param {string} path @param {Record<string, any>} query @param {AbortSignal} [signal] */
  #asked(path, query, signal) {
    const asked = new URLSearchParams(query);
    return request(`/explore/${path}${asked.size ? `?${asked}` : ""}`, this.key, { signal });
  }

  /** The texts of tokens. @param {string} id  of the pass @param {number[]} ids @returns {Promise<Record<string, string>>} */
  texts(id, ids) { return this.post(`${id}/texts`, { ids }); }
}
