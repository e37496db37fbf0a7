/** What was asked of the server, kept: an answer that comes late is kept too, but shown only where it belongs. */
import { failureOf } from "../api.js";

/** @typedef {{value: any, failure: import("../api.js").Failure | null, arrived: Promise<void>, stop: AbortController}} Entry */

const MOST = 3000, LARGEST = 1 << 27; // answers that are kept, and bytes of their arrays

const sizeOf = (/** @type {any} */ value) => value?.data?.byteLength ?? 0;

export class Fetched {
  #bytes = 0;
  #found = /** @type {Map<string, Entry>} */ (new Map());
  /** @type {Map<string, string>} what is asked in each lane, where only the last question matters */
  #lanes = new Map();
  #asked = new Set();
  /** @type {import("../api.js").Failure | null} the last one */
  failure = null;

  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
  }

  /**
   * What was asked under this key; undefined until it has come.
   * @template Value
   * @param {string} key
   * @param {(signal: AbortSignal) => Promise<Value>} load
   * @param {string} [lane]  a new question in it ends the one before
   * @returns {Value | undefined}
   */
  get(key, load, lane) {
    if (lane) this.#asked.add(lane);
    const had = this.#found.get(key);
    if (had) return had.value;
    if (lane) {
      this.#end(lane);
      this.#lanes.set(lane, key);
    }
    const stop = new AbortController();
    /** @type {Entry} */
    const entry = { value: undefined, failure: null, stop, arrived: Promise.resolve() };
    this.#found.set(key, entry);
    entry.arrived = load(stop.signal).then(
      (value) => {
        entry.value = value;
        this.#bytes += sizeOf(value);
        this.#forget();
        if (this.failure?.kind === "lost") this.retry(); // it answers again
      },
      (why) => {
        if (stop.signal.aborted) return;
        entry.failure = failureOf(why);
        if (entry.failure.status !== 400) this.failure = entry.failure;
      },
    ).then(() => this.changed());
    return undefined;
  }

  /** End the question of a lane, if its answer has not come. @param {string} lane */
  #end(lane) {
    const key = this.#lanes.get(lane) ?? "", entry = this.#found.get(key);
    if (!entry || entry.value !== undefined || entry.failure) return;
    entry.stop.abort();
    this.#found.delete(key);
  }

  /** What is shown has been drawn: end the questions of lanes that it does not ask. */
  drawn() {
    for (const lane of this.#lanes.keys()) if (!this.#asked.has(lane)) this.#end(lane);
    this.#asked.clear();
  }

  /** Let go of what was asked for first. */
  #forget() {
    for (const [key, entry] of this.#found) {
      if (this.#found.size <= MOST && this.#bytes <= LARGEST) return;
      if (entry.value === undefined) continue;
      this.#bytes -= sizeOf(entry.value);
      this.#found.delete(key);
    }
  }

  /** Why there is no answer. @param {string} key */
  why(key) { return this.#found.get(key)?.failure ?? null; }

  /** Ask again for what failed. */
  retry() {
    this.failure = null;
    for (const [key, entry] of this.#found) if (entry.failure) this.#found.delete(key);
    this.changed();
  }

  /** Until all that has been asked has come. @param {(key: string) => boolean} which */
  settled(which) {
    return Promise.all([...this.#found].filter(([key, entry]) => entry.value === undefined && which(key)).map(([, entry]) => entry.arrived));
  }
}
