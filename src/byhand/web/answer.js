/** An answer: its tokens, shaded by surprise; the one that is pointed at; its versions and what may be done with it. */
import { html, nothing } from "./vendor/lit-html.js";
import { notice } from "./notice.js";
import { copying, settings } from "./settings.js";
import { number } from "./numbers.js";
import { bits, named, percent } from "./tokens.js";
import { say } from "./words.js";

/** @typedef {import("./talk.js").Version} Version */

/** The token that is pointed at, in its answer's element. @type {{version: Version, k: number, element: Element, pinned: boolean} | null} */
let at = null;

const WIDTH = 248, HEIGHT = 270, MARGIN = 8; // of the popover, with the room for the field
const DARKEST = 24; // percent of ink: text stays readable on it

/** Point at nothing. @returns {boolean} whether something was pointed at */
export function leave() {
  const was = at !== null;
  at = null;
  return was;
}

/** The number of the token that is pointed at in an answer. @param {Version} version */
export const pointed = (version) => (at?.version === version ? at.k : null);

/** @param {Version} version @param {number} k */
const pieceOf = (version, k) => version.pieces.list.findIndex(({ first, count }) => k < first + count);

/** Scrolling carries the popover along as long as its token is chosen and to be seen. @param {Element} log */
export function scrolled(log) {
  const box = at?.pinned && at.element.children[pieceOf(at.version, at.k)]?.getBoundingClientRect(), view = log.getBoundingClientRect();
  if (!box || box.bottom < view.top || box.top > view.bottom) leave();
}

/** @param {KeyboardEvent} event @param {Version} version @param {() => void} changed */
function walk(event, version, changed) {
  const end = version.pieces.list.at(-1), last = end ? end.first + end.count - 1 : -1, k = at?.version === version ? at.k : null;
  const to = { ArrowRight: (k ?? -1) + 1, ArrowLeft: (k ?? last + 1) - 1, Home: 0, End: last }[event.key];
  if (to === undefined || last < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const element = /** @type {HTMLElement} */ (event.currentTarget);
  at = { version, k: Math.max(0, Math.min(last, to)), element, pinned: true };
  element.children[pieceOf(version, at.k)].scrollIntoView({ block: "nearest" });
  changed();
}

/**
 * @param {import("./talk.js").Turn} turn
 * @param {import("./talk.js").Talk} talk
 * @param {() => void} changed
 * @param {(question: string) => void} edit
 */
export function answer(turn, talk, changed, edit) {
  const version = turn.versions[turn.shown], isLive = talk.live?.version === version;
  /** @type {(event: any) => HTMLElement | null} */
  const found = (event) => event.target.closest("[data-first]");
  const own = (event) => /** @type {HTMLElement} */ (event.currentTarget);
  const hover = (event) => {
    const span = found(event);
    if (!span || at?.pinned) return;
    at = { version, k: Number(span.dataset.first), element: own(event), pinned: false };
    changed();
  };
  const pin = (event) => {
    const span = found(event), k = Number(span?.dataset.first);
    if (!span || !getSelection()?.isCollapsed) return;
    if (at?.pinned && at.version === version && at.k === k) at = null;
    else at = { version, k, element: own(event), pinned: true };
    changed();
  };
  const out = () => {
    if (!at?.pinned && leave()) changed();
  };
  const span = (/** @type {import("./tokens.js").Piece} */ piece) => {
    const tokens = version.tokens.slice(piece.first, piece.first + piece.count);
    const surprise = tokens.reduce((sum, token) => sum + bits(token.logprob), 0);
    const isAt = at?.version === version && at.k >= piece.first && at.k < piece.first + piece.count;
    return html`<span class=${`${isAt ? "at" : ""}${piece.ends ? " end" : ""}`} data-first=${piece.first}
      .style=${`--u:${Math.min(DARKEST, surprise * 4).toFixed(0)}`}>${piece.text}</span>`;
  };
  return html`<div class="answer ${settings.shaded ? "shaded" : ""}" ?hidden=${version.failure && !version.tokens.length} tabindex="0" role="group" aria-label=${say("answer")}
      @keydown=${(e) => walk(e, version, changed)} @mouseover=${hover} @mouseleave=${out} @click=${pin}
    >${version.pieces.list.map(span)}${isLive ? html`<i class="caret"></i>` : nothing}</div>
    ${version.reloaded ? html`<p class="small dim">${say("reloaded", version.by)}</p>` : nothing}
    ${version.failure ? notice(version.failure, talk, turn, edit) : nothing}
    ${isLive ? html`<div class="under">${say("tokens", version.tokens.length)}</div>` : under(turn, talk, changed)}`;
}

/** @param {import("./talk.js").Turn} turn @param {import("./talk.js").Talk} talk @param {() => void} changed */
function under(turn, talk, changed) {
  const version = turn.versions[turn.shown], count = turn.versions.length;
  const show = (/** @type {number} */ by) => () => {
    turn.shown += by;
    leave();
    changed();
  };
  const step = (/** @type {number} */ by, /** @type {string} */ sign, /** @type {string} */ label, /** @type {boolean} */ isLast) =>
    html`<button class="button quiet" aria-label=${label} ?disabled=${isLast} @click=${show(by)}>${sign}</button>`;
  const all = version.tokens.reduce((sum, token) => sum + bits(token.logprob), 0);
  const isFull = version.finish === "length" && version.used >= (talk.model?.max_model_len ?? Infinity);
  const said = [
    isFull ? say("context") : version.finish === "stop" ? "" : say(version.finish),
    say("tokens", version.tokens.length),
    version.tokens.length ? say("speed", (version.tokens.length / version.seconds).toFixed(0)) : "",
    version.tokens.length ? say("bits", number(all / version.tokens.length, 2)) : "",
  ];
  const isNone = version.failure && !version.tokens.length;
  return html`<div class="under">
    ${count > 1 ? html`${step(-1, "‹", say("earlier"), !turn.shown)}<span aria-label=${say("version")}>${turn.shown + 1} / ${count}</span>
      ${step(1, "›", say("later"), turn.shown + 1 === count)}` : nothing}
    ${isNone ? nothing : html`<button class="button quiet again" ?disabled=${talk.live} @click=${() => { leave(); talk.write(turn); }}>↻ ${say("again")}</button>
      ${copying(() => version.text)}<span class="grow"></span><span>${said.filter(Boolean).join(" · ")}</span>`}</div>`;
}

/** What else the model might have said. */
export function popover() {
  if (!at) return nothing;
  const { version, k, element } = at, token = version.tokens[k], top = token.top_logprobs ?? [];
  const box = element.children[pieceOf(version, k)]?.getClientRects()[0];
  if (!box) return nothing;
  const x = Math.max(MARGIN, Math.min(innerWidth - WIDTH - MARGIN, box.left - 12));
  const isLow = box.bottom + HEIGHT > innerHeight && box.top > HEIGHT, y = isLow ? box.top - MARGIN : box.bottom + MARGIN;
  const isToken = (/** @type {import("./tokens.js").Token} */ each) => each.token === token.token && each.logprob === token.logprob;
  const rows = top.some(isToken) ? top : [...top, token];
  const { first, count } = version.pieces.list[pieceOf(version, k)];
  const part = count > 1 ? say("part", k - first + 1, count) : token.bytes?.length === 0 ? say("ends") : "";
  return html`<div class="popover ${isLow ? "low" : ""}" .style=${`left:${x}px;top:${y}px`}>
    <div class="row"><b class="code grow">${named(token)}</b><span class="small">${percent(token.logprob)}</span></div>
    <div class="row small dim"><span class="grow">${part}</span><span>ln p ${number(token.logprob, 4)} · ${say("surprise", number(bits(token.logprob), 2))}</span></div>
    ${rows.map((each) => html`<div class="next ${isToken(each) ? "at" : ""}" title=${`ln p ${number(each.logprob, 6)}`}>
      <span class="code">${named(each)}</span><span class="bar"><i .style=${`width:${(100 * Math.exp(each.logprob)).toFixed(2)}%`}></i></span>
      <span>${percent(each.logprob)}</span></div>`)}</div>`;
}

/** The same in words, for those who hear it. */
export function heard() {
  if (!at?.pinned) return "";
  const token = at.version.tokens[at.k];
  return `${named(token)}: ${percent(token.logprob)}, ${say("surprise", number(bits(token.logprob), 2))}`;
}
