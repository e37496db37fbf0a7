/** The server's side: what it is asked, and how it fails. */

/** @typedef {import("./tokens.js").Token} Token */
/** @typedef {{id: string, version: string, max_model_len: number, command: string, sampling: Record<string, number>}} Model */
/** @typedef {{text: string, tokens: Token[], finish: string | null, version: string, used: number | null}} Part */

const LONGEST_WAIT = 60; // seconds

/** Why there is no answer: key, full, busy, lost, or failed with the server's own words. */
export class Failure extends Error {
  /** @param {"key" | "full" | "busy" | "lost" | "failed"} kind @param {string} said @param {number} status @param {number} wait  seconds before it is worth another try */
  constructor(kind, said = "", status = 0, wait = 0) {
    super(said);
    this.kind = kind;
    this.status = status;
    this.until = performance.now() + 1000 * Math.min(wait, LONGEST_WAIT);
  }
}

/** @param {{code?: string, message?: string} | undefined} error @param {number} status @param {number} [wait] */
function failure(error, status, wait) {
  if (status === 401) return new Failure("key");
  if (status === 429) return new Failure("busy", "", status, wait);
  if (error?.code === "context_length_exceeded") return new Failure("full");
  return new Failure("failed", error?.message ?? `${status}`, status);
}

/** @param {unknown} why @returns {Failure} */
export const failureOf = (why) => (why instanceof Failure ? why : new Failure("failed", String(why)));
/** @returns {never} */
export const lost = () => { throw new Failure("lost"); };

/** @param {string} path @param {string} key @param {RequestInit} how @returns {Promise<Response>} */
export async function request(path, key, how) {
  if (/[^\x20-\x7e]/.test(key)) throw new Failure("key"); // no header can have it
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(path, { ...how, headers, cache: "no-store" }).catch(lost);
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({}));
    throw failure(error, response.status, Number(response.headers.get("retry-after")) || 0);
  }
  return response;
}

/** @param {string} key @returns {Promise<Model>} */
export async function model(key) {
  return (await (await request("/v1/models", key, {})).json()).data[0];
}

/** The events of a response, as they come. @param {Response} response @returns {AsyncGenerator<string>} */
export async function* events(response) {
  const reader = response.body.getReader(), decoder = new TextDecoder();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read().catch(lost);
    if (done) return;
    const found = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = found.pop();
    yield* found.map((event) => event.slice("data: ".length));
  }
}

/**
 * The parts of an answer as they come; a Failure if it ends early.
 * @param {Record<string, unknown>} asked  messages and sampling
 * @param {string} key @param {AbortSignal} signal @returns {AsyncGenerator<Part>}
 */
export async function* answer(asked, key, signal) {
  const how = { stream: true, stream_options: { include_usage: true }, logprobs: true, top_logprobs: 5 };
  const body = JSON.stringify({ ...asked, ...how });
  for await (const event of events(await request("/v1/chat/completions", key, { method: "POST", body, signal }))) {
    if (event === "[DONE]") return;
    const { error, choices, usage, system_fingerprint: version } = JSON.parse(event);
    if (error) throw failure(error, 500);
    const { delta, logprobs, finish_reason: finish = null } = choices[0] ?? {};
    yield { text: delta?.content ?? "", tokens: logprobs?.content ?? [], finish, version, used: usage?.total_tokens ?? null };
  }
  lost();
}
