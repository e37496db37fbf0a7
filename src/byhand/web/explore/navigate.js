/** Going somewhere is choosing a number: the ways to do it. */
import { S, address, here, now, place, stand } from "./state.js";
import { blockOf, tailOf } from "./pass.js";
import { parse } from "./numbers.js";

/** @typedef {import("./numbers.js").There} There */

const SOON = 250; // milliseconds between addresses that replace each other: browsers refuse more

/** What the page does when something has changed; `steady`, where the opened number stood, since a door opens in its place. */
/** @type {{draw: (moved?: boolean) => void, steady: number | null}} */
export const page = { draw: () => {}, steady: null };

let due = 0;
/** Put what is looked at into the address. @param {boolean} push  as a place to come back to */
export function write(push) {
  clearTimeout(due);
  const put = () => { if (now.pass) history[push ? "pushState" : "replaceState"](null, "", address()); };
  if (push) put();
  else due = setTimeout(put, SOON);
}

/** @param {Partial<typeof S>} to @param {boolean} [push] */
export function change(to, push = false) {
  if (push && due) { clearTimeout(due); history.replaceState(null, "", address()); }
  Object.assign(S, to);
  write(push);
  page.draw(push);
}

export const cellTop = () => document.querySelector(".cell")?.getBoundingClientRect().top ?? null;

/** @param {string | There} to @param {boolean} [isDoor]  one step deeper */
export function go(to, isDoor = false) {
  const there = typeof to === "string" ? parse(to) : to;
  if (!now.pass.has(there.name)) return;
  const trail = isDoor ? [...S.trail, here()] : [];
  page.steady = isDoor ? cellTop() : null;
  place(there);
  change({ trail, tab: S.tab === "map" || isDoor ? "eq" : S.tab }, true);
}

/** Back to a step of the trail, the last one by default. @param {number} [step] */
export function backTo(step = S.trail.length - 1) {
  if (step < 0) return void history.back();
  page.steady = cellTop();
  const trail = S.trail.slice(0, step), there = parse(S.trail[step]);
  if (now.pass.has(there.name)) place(there); // the door may be of another model
  change({ trail }, true);
}

/** @param {boolean} to */
export function flip(to = !S.back) {
  const { use, at } = S;
  place({ name: at, index: S.i, back: to });
  change({ use }, true);
}

/** @param {number} by */
export function step(by) {
  const { places } = now.pass.data, at = places.indexOf(S.at), to = at < 0 ? 0 : (at + by + places.length) % places.length;
  go({ name: places[to], index: [], back: S.back });
}

/** The same place in another block. @param {number} by */
export function layer(by) {
  const block = blockOf(S.at), { layers } = now.pass.model;
  if (block === null) return;
  const name = `blocks.${(block + by + layers) % layers}.${tailOf(S.at)}`;
  go({ name, index: now.pass.shape(name).length === S.i.length ? S.i : [], back: S.back });
}

/** @param {number} t */
export function toPosition(t) {
  if (t < 0 || t > now.pass.last) return;
  const index = [...S.i], { pass } = now;
  stand(t);
  if (pass.isAlongText(S.at)) {
    index[index.length - 2] = t;
    if (pass.mask(S.at)) index[index.length - 1] = Math.min(t, index[index.length - 1]);
    place({ name: S.at, index, back: S.back });
  }
  change({}, true);
}

/** @param {number} head */
export function toHead(head) {
  if (head >= now.pass.headsOf(S.at)) return;
  const index = [...S.i];
  index[1] = head;
  go({ name: S.at, index, back: S.back });
}

