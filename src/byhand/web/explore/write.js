/** Write a tour: at each number that is shown, a stop with a sentence in each language; then it is a file. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address } from "./state.js";
import { begin } from "./tour.js";
import { isStill } from "./still.js";
import { keptHere } from "../language.js";
import { page } from "./navigate.js";
import { say } from "./words.js";
import { focus } from "../fields.js";

/** @typedef {import("./tour.js").Stop} Stop */

const NAME = "tour"; // of the draft, which stays in this tab
/** @type {Stop[]} */
const stops = JSON.parse(keptHere.get(NAME) ?? "[]");

function keep() {
  keptHere.set(NAME, JSON.stringify(stops));
  page.draw();
}
function add() {
  stops.push({ address: address(!isStill), en: "", zh: "" });
  keep();
  requestAnimationFrame(() => requestAnimationFrame(() => focus(".writes li:last-child input")));
}
/** @param {number} k @param {number} by */
function move(k, by) {
  stops.splice(k + by, 0, ...stops.splice(k, 1));
  keep();
}

/** What the file holds: a language without a sentence is left out. */
const written = () => stops.map(({ address: to, en, zh }) => ({ address: to, ...(en.trim() && { en: en.trim() }), ...(zh.trim() && { zh: zh.trim() }) }));
function save() {
  const link = document.createElement("a"), url = URL.createObjectURL(new Blob([`[\n${written().map((stop) => `  ${JSON.stringify(stop)}`).join(",\n")}\n]\n`], { type: "application/json" }));
  Object.assign(link, { href: url, download: "tour.json" }).click();
  URL.revokeObjectURL(url);
}

/** @param {Stop} stop @param {number} k */
const row = (stop, k) => {
  const field = (/** @type {"en" | "zh"} */ language, /** @type {string} */ name) => html`<input class="box" lang=${language} placeholder=${name} aria-label="${name}, ${k + 1}" .value=${stop[language]} @input=${(e) => { stop[language] = e.target.value; keep(); }}>`;
  return html`<li><button class="to mono" title=${stop.address} @click=${() => { location.hash = stop.address; }}>${k + 1} · ${decodeURIComponent(stop.address.slice(2).split("?")[0])}</button>${field("en", "English")}${field("zh", "中文")}
    <button class="button quiet" aria-label="${say("writeUp")}, ${k + 1}" title=${say("writeUp")} ?disabled=${!k} @click=${() => move(k, -1)}>↑</button><button class="button quiet" aria-label="${say("writeOut")}, ${k + 1}" title=${say("writeOut")} @click=${() => { stops.splice(k, 1); keep(); }}>✕</button></li>`;
};

export function writing() {
  if (!S.panel.write) return nothing;
  const isWhole = stops.length > 0 && stops.every(({ en, zh }) => en.trim() || zh.trim());
  return html`<section class="strip-of writes" aria-label=${say("tourWrite")}><div class="row"><b>${say("writeTitle")}</b><span class="cap grow">${say("writeHow")}</span>
      <button class="button quiet" aria-label=${say("close")} @click=${() => { S.panel.write = false; page.draw(); }}>✕</button></div>
    ${stops.length ? html`<ol>${stops.map(row)}</ol>` : nothing}
    <div class="row wrap"><button class="button" @click=${add}>${say("writeAdd")}</button><span class="grow"></span><button class="button" ?disabled=${!isWhole} @click=${() => begin(async () => written())}>${say("writeTry")}</button><button class="button" ?disabled=${!isWhole} @click=${save}>${say("writeSave")}</button></div></section>`;
}
