/**
 * A tour: a list of addresses with a sentence each. A teacher's own is a file, by `?tour=URL` of this server or picked.
 * It is written here too: at each number that is shown, a stop with a sentence in each language.
 */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address, readPlace, readQuestion } from "./state.js";
import { change, page } from "./navigate.js";
import { inLanguage, say } from "./words.js";
import { load } from "./session.js";
import { focus, icon } from "../fields.js";
import { given, keptHere } from "../language.js";
import { isStill } from "./still.js";

/** @typedef {{address: string, en: string, zh: string}} Stop */

const GUIDES = ["gpt", "gradient", "why"]; // the tours that come with the page
const LONGEST = 200; // stops
let stops = /** @type {Stop[] | null} */ (null);
let isBad = false, isOwn = false, reads = 0, goes = 0;
/** The guide that was read last, and until it has been. @type {string | null} */
let guide = null, reading = Promise.resolve(true);

/** @param {unknown} found @returns {Stop[]} */
function checked(found) {
  const isText = (/** @type {unknown} */ text) => typeof text === "string";
  const isAddress = (/** @type {any} */ text) => isText(text) && /^(https?:[^#]*)?#\//.test(text);
  const isStop = (/** @type {any} */ each) => isAddress(each?.address) && (isText(each.en) || isText(each.zh));
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
async function begin(read) {
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
  return html`<div class="tour" role="region" aria-label=${say("tour")}>
    <span class="dots">${stop ? `${S.tour} / ${stops?.length}` : ""}</span><p aria-live="polite">${text}</p>
    <select class="box" aria-label=${say("tour")} @change=${(e) => choose(e.target.value)}>
      ${isOwn ? html`<option selected>${say("tourOwn")}</option>` : nothing}${GUIDES.map((name, k) => html`
        <option value=${name} ?selected=${!isOwn && name === (S.guide || GUIDES[0])}>${say("tours")[k]}</option>`)}</select>
    <label class="button">${say("tourOpen")}<input class="unseen" type="file" accept=".json,application/json" @change=${pick}></label>
    ${S.panel.write ? nothing : html`<button class="button wide" @click=${write}>${say("tourWrite")}</button>`}
    <button class="button" aria-label=${say("tourBack")} ?disabled=${S.tour < 2} @click=${() => toStop(S.tour - 1)}>←</button>
    <button class="button" ?disabled=${!stop} @click=${() => toStop(isLast ? 0 : S.tour + 1)}>${isLast ? say("done") : say("tourNext")}</button>
    <button class="button quiet" aria-label=${say("leaveTour")} @click=${() => toStop(0)}>✕</button></div>`;
}

const NAME = "tour"; // of the tour that is written, which stays in this tab
const draft = /** @type {Stop[]} */ (JSON.parse(keptHere.get(NAME) ?? "[]"));

function keep() {
  keptHere.set(NAME, JSON.stringify(draft));
  page.draw();
}
function add() {
  draft.push({ address: address(!isStill), en: "", zh: "" });
  keep();
  focus(".writes li:last-child input", 2);
}
/** @param {number} k @param {number} by */
function move(k, by) {
  draft.splice(k + by, 0, ...draft.splice(k, 1));
  keep();
}

/** What the file holds: a language without a sentence is left out. */
const written = () => draft.map(({ address: to, en, zh }) => ({ address: to, en: en.trim() || undefined, zh: zh.trim() || undefined }));
function save() {
  const lines = written().map((stop) => `  ${JSON.stringify(stop)}`), link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([`[\n${lines.join(",\n")}\n]\n`], { type: "application/json" }));
  Object.assign(link, { href: url, download: "tour.json" }).click();
  URL.revokeObjectURL(url);
}

/** @param {Stop} stop @param {number} k */
const row = (stop, k) => {
  const field = (/** @type {"en" | "zh"} */ language, /** @type {string} */ name) => html`<input class="box" lang=${language} placeholder=${name}
    aria-label="${name}, ${k + 1}" .value=${stop[language]} @input=${(e) => { stop[language] = e.target.value; keep(); }}>`;
  const said = (/** @type {string} */ word) => /** @type {const} */ ([`${say(word)}, ${k + 1}`, say(word)]);
  const [up, out] = [said("writeUp"), said("writeOut")], place = decodeURIComponent(stop.address.slice(2).split("?")[0]);
  return html`<li><button class="to mono" title=${stop.address} @click=${() => { location.hash = stop.address; }}>${k + 1} · ${place}</button>
    ${field("en", "English")}${field("zh", "中文")}${icon("↑", up[0], () => move(k, -1), !k, up[1])}
    ${icon("✕", out[0], () => { draft.splice(k, 1); keep(); }, false, out[1])}</li>`;
};

export function writing() {
  if (!S.panel.write) return nothing;
  const isWhole = draft.length > 0 && draft.every(({ en, zh }) => en.trim() || zh.trim());
  return html`<section class="strip-of writes" aria-label=${say("tourWrite")}><div class="row"><b>${say("writeTitle")}</b>
      <span class="cap grow">${say("writeHow")}</span>${icon("✕", say("close"), () => { S.panel.write = false; page.draw(); })}</div>
    ${draft.length ? html`<ol>${draft.map(row)}</ol>` : nothing}
    <div class="row wrap"><button class="button" @click=${add}>${say("writeAdd")}</button><span class="grow"></span>
      <button class="button" ?disabled=${!isWhole} @click=${() => begin(async () => written())}>${say("writeTry")}</button>
      <button class="button" ?disabled=${!isWhole} @click=${save}>${say("writeSave")}</button></div></section>`;
}
