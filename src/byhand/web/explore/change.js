/** Change the model: a weight, a head switched off, the mask; and what the loss becomes beside what the gradient foretold. */
import { html, nothing, svg } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { ask, session } from "./session.js";
import { blockOf } from "./pass.js";
import { go, page } from "./navigate.js";
import { label, numeric, shown, signed } from "./numbers.js";
import { plot } from "./plot.js";
import { isStill } from "./still.js";
import { read } from "../numbers.js";
import { sent } from "../fields.js";
import { say } from "./words.js";

/** @typedef {import("./server.js").Change} Change */

const BOX = { wide: 320, high: 110, pad: 10 }; // of the curve
let due = 0;
/** What the last changes did, readable while others are computed. @type {import("./server.js").Losses | undefined} */
let last;

const same = (/** @type {Change} */ a, /** @type {Change} */ b) =>
  ("target" in a && "target" in b && a.target === b.target) || ("head" in a && "head" in b && String(a.head) === String(b.head)) || ("mask" in a && "mask" in b);
/** @param {Change} to @param {boolean} [push] */
const put = (to, push = true) => ask({ changes: [...S.changes.filter((each) => !same(each, to)), to] }, push);
/** @param {Change} what */
const undo = (what) => ask({ changes: S.changes.filter((each) => !same(each, what)) });

/** What the chosen number may be changed to, if it is one of the model's own. */
export function changing() {
  const { pass } = now, block = blockOf(S.at), heads = pass.headsOf(S.at);
  if (S.cover || S.back || isStill) return nothing;
  if (heads === pass.heads && block !== null) {
    const is = (/** @type {Change} */ what) => S.changes.some((each) => same(each, what));
    const toggle = (/** @type {string} */ word, /** @type {Change} */ what) =>
      html`<button class="button" aria-pressed=${is(what)} @click=${() => (is(what) ? undo(what) : put(what))}>${say(word)}</button>`;
    return html`<div class="row wrap change">${toggle("off", { head: [block, S.i[1]] })}
      ${pass.mask(S.at) || is({ mask: false }) ? toggle("unmask", { mask: false }) : nothing}${upstream() ? toParameter() : nothing}</div>`;
  }
  if (!pass.isParameter(S.at)) return upstream() ? html`<div class="row wrap change">${toParameter()}</div>` : nothing;
  const target = label(S.at, S.i), value = now.data.value(S.at, false, S.i), isOpen = S.panel.change ?? !now.data.isSlow;
  return html`<details class="change" ?open=${isOpen} @toggle=${(e) => { S.panel.change = e.target.open; page.draw(); }}><summary>${say("change")}</summary>
    <form class="row wrap" @submit=${sent(({ value: text }) => Number.isFinite(read(text)) && put({ target, value: read(text) }))}>
      <label class="row"><span class="cap">${say("value")}</span><input class="box" name="value" inputmode="text" autocomplete="off"
        .value=${value === undefined ? "" : String(Number(value.toPrecision(7)))}></label>
      <button class="button">${say("use")}</button></form>${!isOpen || !pass.data.trained[S.at] ? nothing : !now.data.isLarge || S.panel.along ? curve(target, value)
        : html`<button class="button quiet" @click=${() => { S.panel.along = true; page.draw(); }}>${say("along")} …</button>`}</details>`;
}

/** The parameter that is nearest to where one is, of what it was made from. */
function upstream() {
  const { pass } = now, queue = [S.at];
  for (const name of queue) {
    const inputs = pass.data.made[name]?.inputs.filter((each) => each !== null) ?? [], found = inputs.find((each) => pass.data.trained[each]);
    if (found) return found;
    queue.push(...inputs.filter((each) => !queue.includes(each)));
  }
  return null;
}
/** Go to the number of it of which the loss asks most. */
async function toChange() {
  const name = upstream(), { pass, data } = now, { at } = S;
  if (!name) return;
  const { rows, cols } = pass.matrix(name), matrix = data.matrix(name, true), isSmall = !data.isSlow && pass.shape(name).length < 3;
  if (isSmall) {
    matrix.want(0, rows - 1, 0, cols - 1);
    await session.fetched.settled((key) => key.startsWith(`${matrix.key}/`));
  }
  if (pass !== now.pass || at !== S.at) return; // one has gone elsewhere
  let best = [0, 0], most = 0;
  const look = (/** @type {number} */ x, /** @type {number} */ r, /** @type {number} */ c) => { if (x > most) [best, most] = [[r, c], x]; };
  for (let r = 0; isSmall && r < rows; r++) matrix.row(r)?.forEach((x, c) => look(Math.abs(x), r, c));
  S.panel.change = true;
  go({ name, index: isSmall ? best.slice(-pass.shape(name).length) : [], back: false }, true);
}
const toParameter = () => html`<button class="button" @click=${toChange}>${say("toChange")}</button>`;

/** The loss along a number, with its slope; dragging tries values. @param {string} target @param {number | undefined} value */
function curve(target, value) {
  const data = now.baseData ?? now.data, first = data.along(S.at, S.i);
  if (!first) return html`<p class="cap">${say("along")}: ${say("pending")}</p>`;
  const far = value === undefined ? 0 : Math.abs(value - first.value), isFar = far > 1.001 * Math.abs(first.losses[0][0] - first.value);
  const along = (isFar && data.along(S.at, S.i, 2 ** Math.ceil(Math.log2(1.1 * far)))) || first;
  const points = along.losses.map(([x, y]) => [numeric(x), numeric(y)]).filter(([, y]) => Number.isFinite(y));
  const { X, Y, x0, x1, path } = plot(points, BOX), { wide, high, pad } = BOX, reach = (x1 - x0) / 5;
  const apart = (/** @type {number[]} */ [x]) => Math.abs(x - along.value), was = points.reduce((best, each) => (apart(each) < apart(best) ? each : best));
  const tangent = [-reach, reach].map((by) => `${X(along.value + by)} ${Y(was[1] + along.slope * by)}`).join("L");
  const at = value ?? along.value, loss = numeric(now.pass.data.loss ?? NaN), y = Math.max(pad / 2, Math.min(high - pad / 2, Y(loss)));
  const drag = (e) => {
    const to = Number(e.target.value);
    clearTimeout(due);
    due = setTimeout(() => put({ target, value: Number(to.toPrecision(6)) }, false), 120);
  };
  return html`<figure class="along"><figcaption class="cap">${say("along")}</figcaption>
    <svg viewBox="0 0 ${wide} ${high}" role="img" aria-label=${say("along")}>
      <path class="curve" d=${path} /><path class="tangent" d=${`M${tangent}`} /><circle class="was" cx=${X(along.value)} cy=${Y(was[1])} r="3.5" />
      ${at >= x0 && at <= x1 && Number.isFinite(loss) ? svg`<circle class="is" cx=${X(at)} cy=${y} r="5" />` : nothing}</svg>
    <input type="range" aria-label=${say("change")} min=${x0} max=${x1} step=${(x1 - x0) / 200} .value=${String(at)} @input=${drag}>
    <span class="row cap"><span class="grow">${shown(x0, 3)}</span><span>${shown(x1, 3)}</span></span></figure>`;
}

/** What is changed, and what came of it. */
export function changed() {
  if (!S.changes.length) return (last = undefined), nothing;
  const fresh = now.pass.data.base && !session.isLoading ? now.data.predicted() : undefined, found = (last = fresh ?? last);
  const tag = (/** @type {Change} */ each) => {
    const target = "target" in each ? each.target : "";
    const name = "target" in each ? `${target} = ${shown(each.value, 6)}` : "head" in each ? `${say("blockHead", ...each.head)}: ${say("isOff")}` : say("unmask");
    return html`<span class="tag"><button title=${target} @click=${() => target && go(target)}>${name}</button>
      <button aria-label="${say("undo")}: ${name}" title=${say("undo")} @click=${() => undo(each)}>✕</button></span>`;
  };
  const by = (/** @type {number} */ x) => signed(numeric(x) - numeric(found.before));
  const losses = found && html`${say("lossWas")} <b>${shown(found.before, 6)}</b> → <b>${shown(found.after, 6)}</b> (${by(found.after)})
    ${found.predicted === null ? nothing : html`<span class="dim" title=${say("foretoldTitle")}>· ${say("foretold")} ${by(found.predicted)}</span>`}`;
  return html`<section class="strip-of changes" aria-label=${say("changes")} role="status"><b>${say("changes")}</b>${S.changes.map(tag)}
    <span class="losses ${fresh ? "" : "dim"}">${S.cover ? nothing : losses ?? say("pending")}</span></section>`;
}
