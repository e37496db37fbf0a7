/** The chat page: the bar, the conversation, the field below it, and the keys. */
import { html, noChange, nothing, render } from "./vendor/lit-html.js";
import { answer, heard, leave, pointed, popover, scrolled } from "./answer.js";
import { focus } from "./fields.js";
import { switchLanguage } from "./language.js";
import { notice } from "./notice.js";
import { panel, settings } from "./settings.js";
import { Talk } from "./talk.js";
import { switchTheme } from "./theme.js";
import { say } from "./words.js";

const app = /** @type {HTMLElement} */ (document.querySelector("#app"));
const FIELD = ".field textarea";
const NEAR = 160; // pixels from the end within which the view follows an answer
const talk = new Talk(changed);
let draft = "", isOpen = false, isDue = false;

/** Be ready to type, but do not open the keyboard of a telephone. */
const begin = () => { if (!matchMedia("(pointer: coarse)").matches) focus(FIELD); };

/** Draw once before the next frame, whatever has changed by then. */
function changed() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

function draw() {
  const log = app.querySelector(".log"), isNear = log && log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  document.title = talk.model ? `${talk.model.id} · byhand` : "byhand";
  const had = document.activeElement;
  render(page(), app);
  if (had !== document.body && document.activeElement === document.body) begin(); // its button is gone
  if (talk.live && isNear) log.scrollTop = log.scrollHeight;
}

/** Fill the field, whose text is the browser's and not drawn. @param {string} text */
function write(text) {
  draft = text;
  const field = /** @type {HTMLTextAreaElement | null} */ (app.querySelector(FIELD));
  if (field) field.value = text;
  changed();
}

/** @param {string} question */
function ask(question) {
  if (!question.trim() || talk.live) return;
  write("");
  talk.ask(question.trim());
  draw();
  const log = app.querySelector(".log");
  if (log) log.scrollTop = log.scrollHeight;
}

/** @param {string} question */
function edit(question) {
  write(question);
  focus(FIELD);
}

function close() {
  isOpen = false;
  leave();
  changed();
  focus(".opens", 1);
}

function toggle() {
  if (isOpen) return close();
  isOpen = true;
  leave();
  changed();
  focus(".settings input", 1);
}

/** @param {KeyboardEvent} event  in the field */
function typed(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask(draft);
  } else if (event.key === "ArrowUp" && !draft && talk.turns.length) {
    event.preventDefault();
    edit(/** @type {import("./talk.js").Turn} */ (talk.turns.at(-1)).question);
  }
}

/** The whole sentences of the answer that is being written, which are read aloud as they come; then all of it. */
function spoken() {
  const sentences = talk.latest?.text.match(/[^.!?。！？\n]*[.!?。！？\n]+|[^.!?。！？\n]+$/g) ?? [];
  return talk.live ? sentences.slice(0, -1) : sentences;
}

const bar = () => html`<header>
  <h1>byhand</h1><span class="grow name" title=${talk.model?.id ?? ""}>${talk.model?.id ?? ""}</span>
  ${talk.turns.length ? html`<button class="button quiet" title=${say("fresh")} aria-label=${say("fresh")} @click=${() => { leave(); talk.clear(); edit(""); }}>+</button>` : nothing}
  <button class="button quiet" lang=${say("other") === "中文" ? "zh-CN" : "en"} @click=${() => { switchLanguage(); changed(); }}>${say("other")}</button>
  <button class="button opens" aria-expanded=${isOpen} @click=${toggle}>${say("settings")}</button>
  <button class="button quiet" title=${say("theme")} aria-label=${say("theme")} @click=${switchTheme}>◐</button></header>`;

const empty = () => html`<div class="empty"><h2>${say("title")}</h2><p class="dim">${say("below")}</p>
  <div class="tries">${say("tries").map((question) => html`<button @click=${() => ask(question)}>${question}</button>`)}</div></div>`;

const field = () => html`<form class="field" aria-label=${say("ask")} @submit=${(e) => { e.preventDefault(); ask(draft); }}>
  <textarea rows="1" placeholder=${say("ask")} aria-label=${say("ask")} @input=${(e) => { draft = e.target.value; changed(); }} @keydown=${typed}></textarea>
  ${talk.live
    ? html`<button type="button" class="send" title=${say("stop")} aria-label=${say("stop")} @click=${() => talk.live?.stop.abort()}>■</button>`
    : html`<button class="send" title=${say("send")} aria-label=${say("send")} ?disabled=${!draft.trim()}>↑</button>`}</form>`;

/** Of each turn what it was drawn from. @type {WeakMap<import("./talk.js").Turn, unknown[]>} */
const drawn = new WeakMap();

/** A turn; while a long conversation grows, those before are left as they are. @param {import("./talk.js").Turn} each @param {number} i */
function turn(each, i) {
  const version = each.versions[each.shown], { live, model } = talk, { tokens, finish, seconds, failure } = version;
  const of = [i, version, each.versions.length, tokens.length, finish, seconds, failure, pointed(version), live?.version === version, !live, model, settings.shaded, say("other")];
  const before = drawn.get(each);
  if (!failure && before && of.every((value, k) => value === before[k])) return noChange;
  drawn.set(each, of);
  return html`<article>
    <p class="question"><span class="unseen">${say("you")}: </span>${each.question}</p>${answer(each, talk, changed, edit)}</article>`;
}

const page = () => html`<div class="chat">${bar()}
  <main class="log" aria-label=${say("conversation")} aria-busy=${talk.live !== null} @scroll=${(e) => { scrolled(e.currentTarget); changed(); }}>
    <div>${talk.turns.length ? talk.turns.map(turn) : empty()}</div>${popover()}</main>
  <div class="below"><div>${talk.failure ? notice(talk.failure, talk, null, edit) : nothing}${field()}</div></div>
  ${isOpen ? panel(talk.model?.command ?? "byhand chat MODEL", changed, close) : nothing}</div>
  <div class="unseen spoken" role="log" aria-live="polite">${talk.live && !spoken().length ? say("writing") : spoken().map((sentence) => html`<span>${sentence}</span>`)}</div>
  <div class="unseen" aria-live="polite">${heard()}</div>`;

addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  if (talk.live) talk.live.stop.abort();
  else if (leave()) changed();
  else if (isOpen) close();
});
addEventListener("pointerdown", (event) => {
  if (!(/** @type {Element} */ (event.target)).closest(".answer, .popover") && leave()) changed();
});
addEventListener("resize", () => leave() && changed());
draw();
talk.meet();
begin();
