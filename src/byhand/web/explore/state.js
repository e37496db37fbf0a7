/** What is looked at: one chosen number, and the settings around it. The address holds all of it. */
import { Pass, blockOf, tailOf } from "./pass.js";
import { label, parse } from "./numbers.js";
import { isTall } from "./screen.js";

/** @typedef {import("./numbers.js").There} There @typedef {import("./server.js").Change} Change */

/** The pass that is shown, and what it is compared with. @type {{pass: Pass, data: import("./data.js").Data, other: Pass | null, otherData: import("./data.js").Data | null, baseData: import("./data.js").Data | null}} */
export const now = /** @type {any} */ ({ pass: null, data: null, other: null, otherData: null, baseData: null });

/**
 * i: the chosen number's index; t, tok, against: the position, the token whose logit is asked for, and one beside it; T, k, p: of the
 * next token's draw, k 0 for all; tour: the stop, from 1; guide: which tour; trail: the doors one came through; head: block and head of the arcs;
 * vs: what it is compared with, "base" or p:PROMPT. The last line is not in the address.
 * @type {{
 *   at: string, i: number[], back: boolean, t: number, tok: number, against: number | null, T: number, k: number, p: number,
 *   cover: boolean, lens: boolean, metric: string, zoom: string, tab: string, tour: number, guide: string, trail: string[], head: [number, number],
 *   prompt: string | null, next: string, changes: Change[], vs: string,
 *   use: number, terms: number, nudge: boolean, tried: string, find: string | null, opened: Record<string, boolean>, panel: {compare: boolean, change: boolean | null, train: boolean, write: boolean, along: boolean},
 * }}
 */
export const S = {
  at: "", i: [], back: false, t: 0, tok: 0, against: null, T: 0.8, k: 0, p: 1,
  cover: false, lens: false, metric: "size", zoom: "", tab: "eq", tour: 0, guide: "", trail: [], head: [0, 0],
  prompt: null, next: "", changes: [], vs: "",
  use: 0, terms: 8, nudge: false, tried: "", find: null, opened: {}, panel: { compare: false, change: null, train: false, write: false, along: false },
};

/** The chosen number as `explain` writes it. */
export const here = () => label(S.at, S.i, S.back);
/** Its value and its arithmetic; undefined until they have come. */
export const opened = () => now.data.answer(S.at, S.i, S.back, S.terms);

/** @param {Change} change */
const written = (change) => ("head" in change ? `head:${change.head}` : "mask" in change ? "mask" : `${change.target}:${change.value}`);

/** @param {string} text @returns {Change | null} */
function read(text) {
  if (text === "mask") return { mask: false };
  const head = /^head:(\d+),(\d+)$/.exec(text), value = /^(.+\]):([-+.\de]+)$/i.exec(text);
  if (head) return { head: [Number(head[1]), Number(head[2])] };
  return value && Number.isFinite(Number(value[2])) ? { target: value[1], value: Number(value[2]) } : null;
}

/** The address of what is looked at: what differs from the beginning. @param {boolean} [isWhole]  with the text, for those who began with another */
export function address(isWhole = false) {
  const { pass } = now, grad = (/** @type {string} */ text) => text.replaceAll("d ", "grad/");
  const kept = {
    t: S.t !== pass.start && !pass.isAlongText(S.at) && S.t, tok: S.tok !== usual(S.t) && S.at !== "logits" && S.tok, against: S.against, T: S.T !== 0.8 && S.T, k: S.k, p: S.p !== 1 && S.p,
    cover: S.cover && 1, lens: S.lens !== isTall() && Number(S.lens), metric: S.metric !== "size" && S.metric, zoom: S.zoom && grad(S.zoom),
    tab: S.tab !== "eq" && S.tab, use: S.use, tour: S.tour > 0 && S.tour, guide: S.tour > 0 && S.guide, via: S.trail.slice(-6).map(grad).join("~"),
    prompt: S.prompt ?? (isWhole ? pass.data.prompt : null), next: S.prompt !== null ? S.next : isWhole && (pass.data.next ?? ""), change: S.changes.map(written).join("~"), vs: S.vs,
  };
  const query = Object.entries(kept).filter(([name, value]) => value || (value === 0 && ["t", "tok", "against", "T", "lens"].includes(name)) || (name === "prompt" && value === ""));
  const said = query.map(([name, value]) => `${name}=${encodeURIComponent(String(value)).replace(/%(5B|5D|2C|2F|3A|7E)/g, decodeURIComponent)}`);
  return `#/${grad(here())}${said.length ? `?${said.join("&")}` : ""}`;
}

/** Read what asks for a pass: the text, changes, and what to compare with. */
export function readQuestion() {
  const query = parts().query;
  S.prompt = query.get("prompt");
  S.next = query.get("next") ?? "";
  S.changes = /** @type {Change[]} */ ((query.get("change") ?? "").split("~").map(read).filter(Boolean));
  S.vs = query.get("vs") ?? "";
}

/** Read the rest, once there is a pass. */
export function readPlace() {
  const { path, query } = parts(), { pass } = now;
  const number = (/** @type {string} */ name, /** @type {number} */ usually, /** @type {number} */ most, least = 0) => (query.has(name) && Number.isFinite(Number(query.get(name))) ? Math.max(least, Math.min(most, Number(query.get(name)))) : usually);
  const whole = (/** @type {string} */ name, /** @type {number} */ usually, /** @type {number} */ most) => Math.trunc(number(name, usually, most)), token = pass.model.vocab - 1;
  S.t = whole("t", pass.start, pass.last);
  S.tok = whole("tok", usual(S.t), token);
  S.against = query.has("against") ? whole("against", 0, token) : null;
  Object.assign(S, {
    T: number("T", 0.8, 2), k: whole("k", 0, token + 1), p: number("p", 1, 1, 0.01), cover: query.has("cover"), lens: query.has("lens") ? query.get("lens") === "1" : isTall(),
    metric: query.get("metric") ?? "size", zoom: (query.get("zoom") ?? "").replace("grad/", "d "), tab: query.get("tab") ?? "eq", tour: whole("tour", 0, 999), guide: query.get("guide") ?? "",
    trail: (query.get("via") ?? "").replaceAll("grad/", "d ").split("~").filter(Boolean),
  });
  const there = parse(path.replace("grad/", "d "));
  place(pass.has(there.name) ? there : { name: first(), index: [], back: false });
  S.use = whole("use", 0, 999);
}

function parts() {
  const [path, query = ""] = location.hash.slice(2).split("?");
  return { path: decodeURIComponent(path), query: new URLSearchParams(query) };
}

/** Where one begins: the attention in the middle of the model. */
export function first() {
  const { pass } = now, blocks = pass.model.layers;
  return pass.weightsOf(Math.floor((blocks - 1) / 2) + Number(blocks > 2)) ?? pass.data.places.at(-1) ?? "";
}

/** The token whose logit is shown at a position: the one that follows, else the likeliest. @param {number} t */
export function usual(t) {
  const next = now.pass.target(t);
  return next >= 0 ? next : now.pass.likeliest;
}

/** Move to a position; the token that is asked for moves along if it is the usual one. @param {number} t */
export function stand(t) {
  if (S.tok === usual(S.t)) S.tok = usual(t);
  S.t = t;
}

/** Choose a number; what is left out of its index is where one is. @param {There} there */
export function place({ name, index, back }) {
  const { pass } = now, shape = pass.shape(name), isGiven = index.length === shape.length;
  const inside = (/** @type {number} */ i, /** @type {number} */ size) => Math.max(0, Math.min(size - 1, i < 0 ? i + size : i)), t = index[shape.length - 2];
  if (isGiven && pass.isAlongText(name) && !Number.isNaN(t)) stand(inside(t, shape[shape.length - 2])); // what is left out is of that position
  const here = near(name);
  S.i = isGiven ? index.map((i, axis) => (Number.isNaN(i) ? here[axis] : inside(i, shape[axis]))) : here;
  Object.assign(S, { at: name, back, tried: "", opened: {}, use: 0, terms: 8, nudge: false });
  const block = blockOf(name), heads = pass.headsOf(name);
  if (block !== null) S.head = [block, heads ? (pass.headFor(name, S.head[1]) === S.i[1] ? S.head[1] : Math.floor((S.i[1] * pass.heads) / heads)) : S.head[1]];
  if (pass.isAlongText(name)) stand(S.i[shape.length - 2]);
  if (name === "logits") S.tok = S.i[2];
}

/** The element of another place that is nearest to where one is: the same position and head, a column that exists. @param {string} name */
function near(name) {
  const { pass } = now, shape = pass.shape(name), isText = pass.isAlongText(name);
  const before = pass.shape(S.at), column = before.at(-1) === shape.at(-1) && S.i.length && tailOf(name) === tailOf(S.at) ? S.i[S.i.length - 1] : null;
  return shape.map((size, axis) => {
    if (axis === shape.length - 1) {
      if (isText && shape.length === 3 && size === pass.model.vocab) return Math.min(S.tok, size - 1);
      if (pass.mask(name) && isText) return Math.min(S.t, column ?? Math.max(0, S.t - 1));
      return Math.min(column ?? 0, size - 1);
    }
    if (isText && axis === shape.length - 2) return Math.min(S.t, size - 1);
    if (shape.length === 4 && axis === 1) return pass.headFor(name, S.head[1]);
    return 0;
  });
}
