/** A run that trains in front of someone: what the server says of it, as it comes, and what it is asked to do. */
import { events, failureOf, request } from "../api.js";
import { page } from "./navigate.js";
import { session } from "./session.js";
import { say } from "./words.js";

/**
 * @typedef {{step: number, loss: number | string, lr: number, grad_norm: number | string, val_loss: number | string | null}} Update
 * @typedef {{
 *   folder: string, step: number, steps: number, back: number, complete: boolean, running: boolean, failed: string, told: number,
 *   watched: {name: string, index: number[]} | null, path: [number, number][], seen: Update[],
 * }} State
 */

/** @type {{state: State | null, seen: Update[], text: string, failure: string, isBusy: boolean, saved: string}} */
export const run = { state: null, seen: [], text: "", failure: "", isBusy: false, saved: "" };
let listening = /** @type {AbortController | null} */ (null);

/** @param {State} state */
function take(state) {
  if (run.state && state.told < run.state.told) return; // an answer that came after later news
  const known = new Set(state.seen.map(({ step }) => step));
  run.seen = [...run.seen.filter(({ step }) => step <= state.step && !known.has(step)), ...state.seen].sort((a, b) => a.step - b.step);
  run.state = state;
  page.draw();
}

/** Ask the run for something; what fails is said in its panel. @param {string} path @param {unknown} body @returns {Promise<any>} */
export async function tell(path, body) {
  [run.failure, run.isBusy] = ["", true];
  page.draw();
  try {
    const found = await /** @type {import("./server.js").Server} */ (session.server).post(`train${path}`, body);
    if (found && "seen" in found) take(found);
    return found;
  } catch (why) {
    const { message, kind } = failureOf(why);
    run.failure = message || say(kind);
    return null;
  } finally {
    run.isBusy = false;
    page.draw();
  }
}

/** Hear of each update, until the run ends. */
export async function listen() {
  listening?.abort();
  const mine = (listening = new AbortController());
  try {
    const response = await request("/explore/train/events", session.server.key, { signal: mine.signal });
    for await (const event of events(response)) {
      if (mine.signal.aborted) return;
      take(JSON.parse(event));
    }
  } catch { /* the panel has what came; the next question says what is wrong */ }
}

/** @param {{text: string, minutes?: number, steps?: number, preset?: string}} settings */
export async function begin(settings) {
  [run.seen, run.text, run.saved] = [[], "", ""];
  const state = await tell("", settings);
  if (!state) return;
  listen();
  await tell("/go", { running: true });
}

/** Find a run that trains already. */
export async function find() {
  try {
    take(await session.server.get("train"));
    listen();
  } catch { /* there is none */ }
}

/** Save the run, and let go of it. */
export async function end() {
  const found = await tell("/end", {});
  if (!found) return;
  listening?.abort();
  Object.assign(run, { state: null, seen: [], saved: found.folder });
}
