/** A page without a server: the same answers, computed beforehand, in files beside it. */
import { Failure, lost } from "../api.js";
import { parse } from "./numbers.js";

/** @typedef {import("./server.js").PassData} PassData @typedef {import("./server.js").Shares} Shares */

export const isStill = "static" in document.documentElement.dataset;

const absent = () => new Failure("failed", "", 400);

export class Still {
  key = "";
  #files = /** @type {Map<string, Promise<any>>} */ (new Map());

  unlock() {}

  /** @param {string} path @param {"json" | "arrayBuffer"} kind @returns {Promise<any>} */
  #file(path, kind = "json") {
    const had = this.#files.get(path);
    if (had) return had;
    const read = async () => {
      const response = await fetch(new URL(`data/${path}`, document.baseURI)).catch(lost);
      if (!response.ok) throw absent();
      return response[kind]();
    };
    const found = read();
    this.#files.set(path, found);
    found.catch(() => this.#files.delete(path));
    return found;
  }

  /** @param {{prompt?: string, changes?: unknown[]}} asked @returns {Promise<PassData>} */
  async pass(asked) {
    const own = await this.#file("pass.json");
    const isOwn = asked.prompt === undefined || asked.prompt === own.prompt; // as a tour that was written with a server says it
    if (!isOwn || asked.changes?.length) throw new Failure("failed", "this page has no server. Run byhand explore.", 400);
    return own;
  }

  /** @param {string} path @param {Record<string, any>} [query] @returns {Promise<any>} */
  async get(path, query = {}) {
    const route = path.split("/").at(-1) ?? "";
    if (["stages", "equations", "norms"].includes(route)) return this.#file(`${route}.json`);
    if (route === "reads" && !(await this.#file("pass.json")).places.includes(query.name)) throw absent();
    if (route === "reads") return { reads: await this.#file(`reads/${query.grad ? "d-" : ""}${query.name}.json`) };
    if (route === "shares") return this.#shares(query);
    if (route !== "answer" && route !== "difference") throw absent();
    const { name, index, back } = parse(query.target), all = await this.#file(`answer/${back ? "d-" : ""}${name}.json`), found = all[index.join(",")];
    if (!found) throw absent();
    if (route === "answer") return found;
    if (!("central_difference" in found)) throw absent(); // a page of many numbers has none
    return { value: found.central_difference };
  }

  /** What added to a logit; to a difference of two, the difference. @param {Record<string, any>} query @returns {Promise<Shares>} */
  async #shares({ position, token, against }) {
    const all = await this.#file("shares.json"), of = all[`${position},${token}`], other = against === undefined ? null : all[`${position},${against}`];
    if (!of) throw absent();
    const value = (/** @type {number} */ k) => of.parts[k].value - (other?.parts[k].value ?? 0);
    return { parts: of.parts.map(({ name }, k) => ({ name, value: value(k) })), total: of.total - (other?.total ?? 0), bias: of.bias - (other?.bias ?? 0) };
  }

  /** @param {string} _path @param {Record<string, any>} query @returns {Promise<{rows: number, cols: number, data: Float32Array}>} */
  async array(_path, { name, grad, head, rows, cols }) {
    const whole = new Float32Array(await this.#file(`array/${grad ? "d-" : ""}${name}.bin`, "arrayBuffer")), shape = (await this.#file("pass.json")).shapes[name];
    const [r0, r1] = rows.split("-").map(Number), [c0, c1] = cols.split("-").map(Number), wide = shape.at(-1) ?? 1, high = shape.at(-2) ?? 1, data = new Float32Array((r1 - r0) * (c1 - c0));
    for (let r = r0; r < r1; r++) data.set(whole.subarray((head * high + r) * wide + c0, (head * high + r) * wide + c1), (r - r0) * (c1 - c0));
    return { rows: r1 - r0, cols: c1 - c0, data };
  }

  async texts() { return {}; }
}
