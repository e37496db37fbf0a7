/** A tour: a list of addresses with a sentence each. A teacher's own is a file, by `?tour=URL` of this server or picked. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address, now, readPlace, readQuestion } from "./state.js";
import { change, page } from "./navigate.js";
import { inLanguage, say } from "./words.js";
import { load } from "./session.js";
import { given } from "../language.js";

/** @typedef {{address: string, en: string, zh: string}} Stop */

const GUIDES = ["gpt", "gradient", "why"]; // the tours that come with the page
const LONGEST = 200; // stops
let stops = /** @type {Stop[] | null} */ (null);
let isBad = false, isOwn = false, reads = 0, goes = 0;
/** The guide that was read last, and until it has been. @type {string | null} */
let guide = null, reading = Promise.resolve(true);

/** @param {unknown} found @returns {Stop[]} */
function checked(found) {
  const isStop = (/** @type {any} */ each) => typeof each?.address === "string" && /^(https?:[^#]*)?#\//.test(each.address) && (typeof each.en === "string" || typeof each.zh === "string");
  if (!Array.isArray(found) || !found.length || found.length > LONGEST || !found.every(isStop)) throw new TypeError("no tour");
  return found.map(({ address, en, zh }) => ({ address: address.slice(address.indexOf("#/")), en: en ?? zh, zh: zh ?? en }));
}

/** Read a tour; whether it is still the one that is wanted. @param {() => Promise<unknown>} read */
async function take(read) {
  [stops, isBad] = [null, false];
  const mine = ++reads, found = await read().then(checked).catch(() => null);
  if (mine === reads) [stops, isBad] = [found, !found];
  page.draw();
  return mine === reads;
}

/** The tour that the address names, fetched from this server only. */
export function findTour() {
  const asked = given("tour"), ours = GUIDES.includes(S.guide) ? S.guide : GUIDES[0];
  const url = asked && !S.guide ? new URL(asked, location.href) : new URL(`tours/${ours}.json`, import.meta.url);
  if (!isBad && (isOwn || guide === S.guide)) return reading;
  guide = S.guide;
  const read = async () => (await fetch(url, { cache: "no-cache" })).json();
  return (reading = take(() => (url.origin === location.origin ? read() : Promise.reject())));
}

/** Go to a stop, from 1; elsewhere the tour ends. @param {number} n */
export async function toStop(n) {
  const mine = ++goes;
  if (n > 0) await findTour();
  if (mine !== goes) return;
  if (n < 1 || !stops || n > stops.length) return change({ tour: isBad && n > 0 ? -1 : 0 }, true);
  const { guide: which, prompt, next, changes, vs } = S, { address: to } = stops[n - 1];
  history.pushState(null, "", to);
  readQuestion();
  if (!/[?&](prompt|change|vs)=/.test(to)) Object.assign(S, { prompt, next, changes, vs }); // of any text
  await load(() => {
    readPlace();
    if (mine === goes) [S.tour, S.guide] = [n, which];
    history.replaceState(null, "", address());
  });
}
/** The tour that a link asks for, at its first stop unless the link has another place. */
export function arrive() {
  if (!location.hash && given("tour")) toStop(1);
  else if (S.tour) findTour();
}
export const toggleTour = () => toStop(S.tour ? 0 : 1);
/** Begin another tour. @param {string} which */
function choose(which) {
  [isOwn, S.guide] = [false, which];
  return toStop(1);
}

/** Begin a tour of one's own. @param {() => Promise<unknown>} read */
export async function begin(read) {
  [isOwn, S.guide, guide] = [true, "", null];
  if (!(await (reading = take(read)))) return;
  if (isBad) change({ tour: -1 });
  else toStop(1);
}
/** @param {{target: any}} event */
function pick({ target: { files: [file] } }) {
  if (file) begin(async () => JSON.parse(await file.text()));
}
/** Leave the tour, to write one. */
async function write() {
  await toStop(0);
  S.panel.write = true;
}

export function tour() {
  if (!S.tour) return nothing;
  const stop = stops?.[S.tour - 1], isLast = S.tour === stops?.length;
  const text = isBad ? say("tourBad") : stop ? inLanguage(stop) : say("pending");
  return html`<div class="tour" role="region" aria-label=${say("tour")}><span class="dots">${stop ? `${S.tour} / ${stops?.length}` : ""}</span><p aria-live="polite">${text}</p>
    <select class="box" aria-label=${say("tour")} @change=${(e) => choose(e.target.value)}>
      ${isOwn ? html`<option selected>${say("tourOwn")}</option>` : nothing}${GUIDES.map((name, k) => html`<option value=${name} ?selected=${!isOwn && name === (S.guide || GUIDES[0])}>${say("tours")[k]}</option>`)}</select>
    <label class="button">${say("tourOpen")}<input class="unseen" type="file" accept=".json,application/json" @change=${pick}></label>
    ${S.panel.write ? nothing : html`<button class="button wide" @click=${write}>${say("tourWrite")}</button>`}
    <button class="button" aria-label=${say("tourBack")} ?disabled=${S.tour < 2} @click=${() => toStop(S.tour - 1)}>←</button>
    <button class="button" ?disabled=${!stop} @click=${() => toStop(isLast ? 0 : S.tour + 1)}>${isLast ? say("done") : say("tourNext")}</button>
    <button class="button quiet" aria-label=${say("leaveTour")} @click=${() => toStop(0)}>✕</button></div>`;
}
