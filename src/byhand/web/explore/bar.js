/** The bar above the page, what went wrong, and the list of keys. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { askKey, icon } from "../fields.js";
import { change, flip, go, page } from "./navigate.js";
import { parse, shown } from "./numbers.js";
import { retry, session, unlock } from "./session.js";
import { isStill } from "./still.js";
import { spoken } from "./view.js";
import { switchLanguage } from "../language.js";
import { switchTheme } from "../theme.js";
import { toggleCompare } from "./compare.js";
import { toggleTour } from "./tour.js";
import { toggleTrain } from "./train.js";
import { say } from "./words.js";
import { isNarrow } from "./screen.js";

const MOST = 8; // places that are found at once
let picked = 0;

/** @param {string} asked */
function places(asked) {
  const { pass } = now, words = asked.toLowerCase().split("[")[0].replace(/^d /, "").split(/\s+/).filter(Boolean);
  const all = [...pass.data.places, ...Object.keys(pass.data.trained)];
  return all.filter((name) => { const said = `${name} ${spoken(name)}`.toLowerCase(); return words.every((each) => said.includes(each)); }).slice(0, MOST);
}

function find() {
  const found = S.find === null ? [] : places(S.find), to = (/** @type {string} */ name) => go({ name, index: [], back: S.back });
  const look = (/** @type {string | null} */ text, at = 0) => { [S.find, picked] = [text, at]; page.draw(); };
  const keyed = (e) => {
    e.stopPropagation();
    if (e.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key], whole = parse(S.find ?? ""), isWhole = now.pass.has(whole.name);
    if (by) {
      e.preventDefault();
      look(S.find, Math.max(0, Math.min(found.length - 1, picked + by)));
    }
    const isFound = e.key === "Enter" && (isWhole || found.length);
    if (isFound && isWhole) go({ ...whole, back: whole.back || S.back });
    else if (isFound) to(found[picked] ?? found[0]);
    if (isFound || e.key === "Escape") e.target.blur();
  };
  const option = (/** @type {string} */ name, /** @type {number} */ k) => html`<li role="option" id=${`found-${k}`} aria-selected=${k === picked}
    @mousedown=${() => to(name)}><span class="grow">${spoken(name)}</span><span class="mono faint">${name}</span></li>`;
  return html`<div class="find wide"><input id="find" class="box" role="combobox" aria-expanded=${found.length > 0} aria-controls="found"
      aria-activedescendant=${found.length ? `found-${picked}` : ""} autocomplete="off" placeholder=${say("find")} aria-label=${say("findLabel")}
      .value=${S.find ?? ""} @focus=${() => look("")} @input=${(e) => look(e.target.value)} @blur=${() => setTimeout(look, 150, null)} @keydown=${keyed}>
    <ul role="listbox" id="found" aria-label=${say("findLabel")} ?hidden=${!found.length}>${found.map(option)}</ul></div>`;
}

function facts() {
  if (!now.pass) return "";
  const { model: { name, step, parameters: n }, data: { loss } } = now.pass;
  const size = n >= 1e6 ? `${(n / 1e6).toFixed(0)}M` : n >= 1e4 ? `${(n / 1e3).toFixed(0)}k` : String(n);
  return say("about", name, step === null ? "" : say("step", step), size, S.cover ? "···" : loss === null ? "–" : shown(loss, 4));
}

const toggle = (/** @type {string} */ name, /** @type {boolean} */ isOn, /** @type {() => unknown} */ act, title = "", wide = "") =>
  html`<button class="button ${wide}" aria-pressed=${isOn} title=${title} ?disabled=${!now.pass} @click=${act}>${name}</button>`;

/** What else one may do: in the bar, and on a telephone above the map. @param {string} [wide] */
export function ways(wide = "") {
  const way = (/** @type {string} */ word, /** @type {boolean} */ isOn, /** @type {() => unknown} */ act) =>
    toggle(say(word), isOn, () => { act(); if (S.tab !== "eq") change({ tab: "eq" }); }, "", wide);
  return html`${isStill ? nothing : html`${way("compare", Boolean(S.vs || S.panel.compare), toggleCompare)}${way("train", S.panel.train, toggleTrain)}`}
    ${way("tour", S.tour > 0, toggleTour)}`;
}

export function bar() {
  const isThere = Boolean(now.pass);
  const half = (/** @type {string} */ word, /** @type {boolean} */ back) =>
    html`<button aria-pressed=${S.back === back} title=${say("flipKey")} ?disabled=${!isThere} @click=${() => flip(back)}>${say(word)}</button>`;
  return html`<header class="bar"><b class="brand">byhand</b><span class="cap wide facts">${facts()}</span><span class="grow"></span>
    ${isThere ? find() : nothing}<span class="seg">${half("forward", false)}${half("backward", true)}</span>
    ${toggle(say(isNarrow() ? "coverShort" : "cover"), S.cover, () => change({ cover: !S.cover, tried: "" }), say("coverTitle"))}
    ${ways("wide")}
    <button class="button quiet" lang=${say("other") === "中文" ? "zh-CN" : "en"} title=${say("otherTitle")}
      @click=${() => { switchLanguage(); page.draw(); }}>${say("other")}</button>
    ${icon("◐", say("theme"), () => { switchTheme(); page.draw(); })}
    <button class="button quiet wide" aria-label=${say("keys")} title=${say("keys")} @click=${showKeys}>?</button></header>`;
}

/** What went wrong, with a way on. */
export function trouble() {
  const failure = session.failure ?? session.fetched.failure;
  if (!failure) return session.isLoading ? html`<p class="notice loading" role="status"><span>${say("loading")}</span></p>` : nothing;
  if (failure.kind === "key") return askKey(say, unlock);
  const dismiss = () => { session.failure = session.fetched.failure = null; page.draw(); };
  const isRefused = failure.kind === "failed" && failure.status < 500 && now.pass;
  return html`<p class="notice" role="alert"><span>${say(failure.kind, failure.message)}</span>
    <button class="button" @click=${isRefused ? dismiss : retry}>${say(isRefused ? "close" : "retry")}</button></p>`;
}

export const showKeys = () => /** @type {HTMLDialogElement | null} */ (document.querySelector("#keys"))?.showModal();
const named = (/** @type {string} */ names) => names.split(/(?<=[,，、]) ?/).map((name) => html`<kbd>${name.replace(/[,，、]$/, "")}</kbd> `);
export const keys = () => html`<dialog id="keys" aria-label=${say("keys")}><h2>${say("keys")}</h2>
  <dl>${say("keysList").map(([names, does]) => html`<dt>${named(names)}</dt><dd>${does}</dd>`)}</dl>
  <form method="dialog"><button class="button">${say("close")}</button></form></dialog>`;
