/** Change the model: a weight, a head switched off, the mask; and what the loss becomes beside what the gradient foretold. */
import { html, nothing, svg } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { ask, session } from "./session.js";
import { blockOf } from "./pass.js";
import { go, page } from "./navigate.js";
import { label, numeric, shown, signed } from "./numbers.js";
import { isStill } from "./still.js";
import { read } from "../numbers.js";
import { sent } from "../fields.js";
import { say } from "./words.js";

/** @typedef {import("./server.js").Change} Change */

const W = 320, H = 110, PAD = 10; // of the curve
let due = 0;
/** What the last changes did, readable while others are computed. @type {import("./server.js").Losses | undefined} */
let last;

const same = (/** @type {Change} */ a, /** @type {Change} */ b) =>
  ("target" in a && "target" in b && a.target === b.target) || ("head" in a && "head" in b && String(a.head) === String(b.head)) || ("mask" in a && "mask" in b);
/** @param {Change} to @param {boolean} [push] */
const put = (to, push = true) => ask({ changes: [...S.changes.filter((each) => !same(each, to)), to] }, push);
/** @param {Change} what */
const undo = (what) => ask({ changes: S.changes.filter((each) => !same(each, what)) });

/** @param {string} target @param {string} text */
function putValue(target, text) {
  const value = read(text);
  if (value !== null && Number.isFinite(value)) put({ target, value });
}

/** What the chosen number may be changed to, if it is one of the model's own. */
export function changing() {
  const { pass } = now, block = blockOf(S.at), heads = pass.headsOf(S.at);
  if (S.cover || S.back || isStill) return nothing;
  if (heads === pass.heads && block !== null) {
    const head = /** @type {[number, number]} */ ([block, S.i[1]]), off = /** @type {Change} */ ({ head }), isOff = S.changes.some((each) => same(each, off));
    const unmasked = /** @type {Change} */ ({ mask: false }), isUnmasked = S.changes.some((each) => same(each, unmasked));
    return html`<div class="row wrap change"><button class="button" aria-pressed=${isOff} @click=${() => (isOff ? undo(off) : put(off))}>${say("off")}</button>
      ${pass.mask(S.at) || isUnmasked ? html`<button class="button" aria-pressed=${isUnmasked} @click=${() => (isUnmasked ? undo(unmasked) : put(unmasked))}>${say("unmask")}</button>` : nothing}${upstream() ? toParameter() : nothing}</div>`;
  }
  if (!pass.isParameter(S.at)) return upstream() ? html`<div class="row wrap change">${toParameter()}</div>` : nothing;
  const target = label(S.at, S.i), value = now.data.value(S.at, false, S.i), isOpen = S.panel.change ?? !now.data.isSlow;
  return html`<details class="change" ?open=${isOpen} @toggle=${(e) => { S.panel.change = e.target.open; page.draw(); }}><summary>${say("change")}</summary>
    <form class="row wrap" @submit=${sent(({ value: text }) => putValue(target, text))}>
      <label class="row"><span class="cap">${say("value")}</span><input class="box" name="value" inputmode="text" autocomplete="off" .value=${value === undefined ? "" : String(Number(value.toPrecision(7)))}></label>
      <button class="button">${say("use")}</button></form>${!isOpen ? nothing : !now.data.isLarge || S.panel.along ? curve(target, value) : html`<button class="button quiet" @click=${() => { S.panel.along = true; page.draw(); }}>${say("along")} …</button>`}</details>`;
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
  for (let r = 0; isSmall && r < rows; r++) (matrix.row(r) ?? []).forEach((x, c) => { if (Math.abs(x) > most) [best, most] = [[r, c], Math.abs(x)]; });
  S.panel.change = true;
  go({ name, index: isSmall ? best.slice(-pass.shape(name).length) : [], back: false }, true);
}
const toParameter = () => html`<button class="button" @click=${toChange}>${say("toChange")}</button>`;

/** The loss along a number, with its slope; dragging tries values. @param {string} target @param {number | undefined} value */
function curve(target, value) {
  const data = now.baseData ?? now.data, first = data.along(S.at, S.i), far = first && value !== undefined ? Math.abs(value - first.value) : 0;
  const isFar = first && far > 1.001 * Math.abs(first.losses[0][0] - first.value), along = isFar ? data.along(S.at, S.i, 2 ** Math.ceil(Math.log2(1.1 * far))) ?? first : first;
  if (!along) return html`<p class="cap">${say("along")}: ${say("pending")}</p>`;
  const points = along.losses.map(([x, y]) => [numeric(x), numeric(y)]).filter(([, y]) => Number.isFinite(y)), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [x0, x1, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)], tall = high - low || 1e-9;
  const X = (/** @type {number} */ x) => PAD + ((x - x0) / (x1 - x0)) * (W - 2 * PAD), Y = (/** @type {number} */ y) => H - PAD - ((y - low) / tall) * (H - 2 * PAD);
  const here = points.reduce((best, each) => (Math.abs(each[0] - along.value) < Math.abs(best[0] - along.value) ? each : best)), line = (/** @type {number} */ x) => here[1] + along.slope * (x - along.value);
  const at = value ?? along.value, loss = numeric(now.pass.data.loss ?? NaN), reach = (x1 - x0) / 5;
  const drag = (e) => {
    const to = Number(e.target.value);
    clearTimeout(due);
    due = setTimeout(() => put({ target, value: Number(to.toPrecision(6)) }, false), 120);
  };
  return html`<figure class="along"><figcaption class="cap">${say("along")}</figcaption><svg viewBox="0 0 ${W} ${H}" role="img" aria-label=${say("along")}>
      <path class="curve" d=${`M${points.map(([x, y]) => `${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("L")}`} />
      <path class="tangent" d=${`M${X(along.value - reach)} ${Y(line(along.value - reach))}L${X(along.value + reach)} ${Y(line(along.value + reach))}`} />
      ${svg`<circle class="was" cx=${X(along.value)} cy=${Y(here[1])} r="3.5" />`}${at >= x0 && at <= x1 && Number.isFinite(loss) ? svg`<circle class="is" cx=${X(at)} cy=${Math.max(PAD / 2, Math.min(H - PAD / 2, Y(loss)))} r="5" />` : nothing}</svg>
    <input type="range" aria-label=${say("change")} min=${x0} max=${x1} step=${(x1 - x0) / 200} .value=${String(at)} @input=${drag}>
    <span class="row cap"><span class="grow">${shown(x0, 3)}</span><span>${shown(x1, 3)}</span></span></figure>`;
}

/** What is changed, and what came of it. */
export function changed() {
  if (!S.changes.length) last = undefined;
  if (!S.changes.length) return nothing;
  const fresh = now.pass.data.base && !session.isLoading ? now.data.predicted() : undefined, found = (last = fresh ?? last);
  const name = (/** @type {Change} */ each) => ("target" in each ? `${each.target} = ${shown(each.value, 6)}` : "head" in each ? `${say("blockHead", ...each.head)}: ${say("isOff")}` : say("unmask"));
  const losses = found && html`${say("lossWas")} <b>${shown(found.before, 6)}</b> → <b>${shown(found.after, 6)}</b> (${signed(numeric(found.after) - numeric(found.before))})
    ${found.predicted === null ? nothing : html`<span class="dim" title=${say("foretoldTitle")}>· ${say("foretold")} ${signed(numeric(found.predicted) - numeric(found.before))}</span>`}`;
  return html`<section class="strip-of changes" aria-label=${say("changes")} role="status"><b>${say("changes")}</b>
    ${S.changes.map((each) => html`<span class="tag"><button title=${"target" in each ? each.target : ""} @click=${() => "target" in each && go(each.target)}>${name(each)}</button><button aria-label="${say("undo")}: ${name(each)}" title=${say("undo")} @click=${() => undo(each)}>✕</button></span>`)}
    <span class="losses ${fresh ? "" : "dim"}">${S.cover ? nothing : losses ?? say("pending")}</span></section>`;
}
