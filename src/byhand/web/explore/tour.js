/** A tour: a list of addresses with a sentence each. A teacher's own is a file, by `?tour=URL` of this server or picked. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address, now, readPlace, readQuestion } from "./state.js";
import { change, page } from "./navigate.js";
import { inLanguage, say } from "./words.js";
import { load } from "./session.js";
import { given } from "../language.js";

/** @typedef {{address: string, en: string, zh: string}} Stop */

export const GUIDES = ["gpt", "gradient", "why"]; // the tours that come with the page
const LONGEST = 200; // stops
/** @type {Stop[] | null} */
let stops = null;
let isBad = false, isOwn = false, guide = "";

/** @param {unknown} found @returns {Stop[]} */
function checked(found) {
  const isStop = (/** @type {any} */ each) => typeof each?.address === "string" && /^(https?:[^#]*)?#\//.test(each.address) && (typeof each.en === "string" || typeof each.zh === "string");
  if (!Array.isArray(found) || !found.length || found.length > LONGEST || !found.every(isStop)) throw new TypeError("no tour");
  return found.map(({ address, en, zh }) => ({ address: address.slice(address.indexOf("#/")), en: en ?? zh, zh: zh ?? en }));
}

/** @param {() => Promise<unknown>} read */
async function take(read) {
  try {
    [stops, isBad] = [checked(await read()), false];
  } catch {
    isBad = true;
  }
}

/** The tour that the address names, fetched from this server only. */
export async function findTour() {
  const asked = given("tour"), ours = GUIDES.includes(S.guide) ? S.guide : GUIDES[0];
  const url = asked && !S.guide ? new URL(asked, location.href) : new URL(`tours/${ours}.json`, import.meta.url);
  if (stops && (isOwn || guide === S.guide)) return;
  guide = S.guide;
  await take(async () => { if (url.origin !== location.origin) throw new TypeError("elsewhere"); return (await fetch(url, { cache: "no-cache" })).json(); });
  page.draw();
}

/** Go to a stop, from 1; elsewhere the tour ends. @param {number} n */
export async function toStop(n) {
  if (n > 0) await findTour();
  if (n < 1 || !stops || n > stops.length) return change({ tour: isBad && n > 0 ? -1 : 0 }, true);
  const { guide: which, prompt, next, changes, vs } = S, { address: to } = stops[n - 1];
  history.pushState(null, "", to);
  readQuestion();
  if (!/[?&](prompt|change|vs)=/.test(to)) Object.assign(S, { prompt, next, changes, vs }); // of any text
  await load(readPlace);
  [S.tour, S.guide] = [n, which];
  if (now.pass) history.replaceState(null, "", address());
  page.draw(true);
}
/** The tour that a link asks for, at its first stop unless the link has another place. */
export function arrive() {
  if (!location.hash && given("tour")) toStop(1);
  else if (S.tour) findTour();
}
export const toggleTour = () => toStop(S.tour ? 0 : 1);
/** Begin another tour. @param {string} which */
export function choose(which) {
  [isOwn, S.guide] = [false, which];
  return toStop(1);
}

/** Begin a tour of one's own. @param {() => Promise<unknown>} read */
export async function begin(read) {
  [stops, isOwn, S.guide] = [null, true, ""];
  await take(read);
  if (isBad) change({ tour: -1 });
  else toStop(1);
}
/** @param {Event} event */
function pick(event) {
  const file = /** @type {HTMLInputElement} */ (event.target).files?.[0];
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
    <select class="box" aria-label=${say("tour")} @change=${(/** @type {Event} */ e) => choose(/** @type {HTMLSelectElement} */ (e.target).value)}>
      ${isOwn ? html`<option selected>${say("tourOwn")}</option>` : nothing}${GUIDES.map((name, k) => html`<option value=${name} ?selected=${!isOwn && name === (S.guide || GUIDES[0])}>${say("tours")[k]}</option>`)}</select>
    <label class="button">${say("tourOpen")}<input class="unseen" type="file" accept=".json,application/json" @change=${pick}></label>
    ${S.panel.write ? nothing : html`<button class="button wide" @click=${write}>${say("tourWrite")}</button>`}
    <button class="button" aria-label=${say("tourBack")} ?disabled=${S.tour < 2} @click=${() => toStop(S.tour - 1)}>←</button>
    <button class="button" ?disabled=${!stop} @click=${() => toStop(isLast ? 0 : S.tour + 1)}>${isLast ? say("done") : say("tourNext")}</button>
    <button class="button quiet" aria-label=${say("leaveTour")} @click=${() => toStop(0)}>✕</button></div>`;
}
