/** Beside the equation: the next token, what added to its logit, and the code. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { change, go, page } from "./navigate.js";
import { isStill } from "./still.js";
import { knob } from "../fields.js";
import { bar2, covered } from "./terms.js";
import { drawn, ranked, softmax } from "./drawing.js";
import { numeric, shown } from "./numbers.js";
import { blockOf } from "./pass.js";
import { say } from "./words.js";
import { isTall } from "./screen.js";

const EVERY = 41; // the end of top-k's slider, which cuts nothing

/** What follows from a position's logits, until others are looked at. @type {{row: Float32Array | undefined, order: Uint32Array, p: Float64Array}} */
let known = { row: undefined, order: new Uint32Array(), p: new Float64Array() };
let at = "", areFiles = false;
/** Pages of equations, and whether they are there. @type {Map<string, boolean>} */
const links = new Map();

function logits() {
  const { pass, data } = now, key = `${pass.id}/${S.t}`;
  if (key !== at || !known.row) {
    const row = data.matrix("logits", false).row(S.t);
    if (!row) return at.startsWith(pass.id) ? known : null; // what was there stays while it comes
    known = { row, order: ranked(row), p: softmax(row) };
    at = key;
  }
  return known;
}

function knobs() {
  const set = (/** @type {string} */ key) => (/** @type {string} */ x) => change({ [key]: key === "k" && Number(x) >= EVERY ? 0 : Number(x) });
  return html`<div class="knobs">${knob("knob-T", say("temperature"), [0, 2, 0.05], S.T, S.T.toFixed(2), set("T"))}
    ${knob("knob-k", say("topk"), [1, EVERY, 1], S.k || EVERY, S.k ? String(S.k) : say("all"), set("k"))}
    ${knob("knob-p", say("topp"), [0.05, 1, 0.01], S.p, S.p.toFixed(2), set("p"))}</div>`;
}

function nextToken() {
  const found = logits(), { pass } = now, title = say("nexts")[pass.model.unit];
  if (!found?.row) return html`<section class="s-next" aria-busy="true"><div class="h">${title}</div></section>`;
  const { row, order, p } = found, q = drawn(row, order, S.T, S.k, S.p), rows = [...order.subarray(0, isTall() ? 8 : 6)];
  if (!rows.includes(S.tok) && S.tok < row.length) rows[rows.length - 1] = S.tok;
  return html`<section class="s-next"><div class="h">${title}<span class="grow"></span><span class="cap" title=${say("legendTitle")}>${say("legend")}</span></div>
    <div class="nexts">${rows.map((v) => html`<button class="next ${q[v] ? "" : "cut"}" aria-pressed=${v === S.tok} title=${say("logitOf", shown(row[v], 3))} data-token=${v} @click=${() => go({ name: "logits", index: [0, S.t, v], back: S.back })}>
      <span class="g">${pass.text(v)}</span><span class="p"><i .style=${`width:${(100 * q[v]).toFixed(2)}%`}></i><u .style=${`width:${(100 * p[v]).toFixed(2)}%`}></u></span><span class="v">${S.cover ? "···" : q[v] ? `${(100 * q[v]).toFixed(1)}%` : say("cut")}</span></button>`)}</div>
    ${knobs()}</section>`;
}

/** A part of the model, as the list calls it. @param {string} name */
function partWord(name) {
  const b = blockOf(name), head = /\.head\.(\d+)$/.exec(name);
  if (b === null) return say(name === "wpe" ? "itsPosition" : name === "bias" ? "outputBias" : "tokenItself");
  return head ? say("headN", b, Number(head[1])) : /\.attn\.|ln_1/.test(name) ? say(now.pass.isParameter(name) ? "attentionBias" : "attentionOf", b) : say("mlpOf", b);
}
/** Where one goes to see a part. @param {string} name */
function placeOf(name) {
  const { pass } = now, b = blockOf(name), head = /\.head\.(\d+)$/.exec(name);
  if (head && b !== null) return go({ name: pass.weightsOf(b) ?? "", index: [0, Number(head[1]), S.t, Math.max(0, S.t - 1)], back: false });
  return go({ name: name === "bias" ? "logits" : pass.has(name) && !pass.isParameter(name) ? name : pass.uses.get(name)?.[0].results[0] ?? "logits", index: [], back: false });
}

function added() {
  const { pass, data } = now, found = data.shares(S.t, S.tok, S.against), order = logits()?.order ?? [];
  if (S.back || data.noShares(S.t, S.tok, S.against)) return nothing;
  const others = [...new Set([...order.slice(0, 8), ...(S.against === null ? [] : [S.against])])].filter((v) => v !== S.tok);
  const choice = html`<select class="box" aria-label=${say("against")} .value=${String(S.against ?? "")} @change=${(e) => { const { value } = e.target; change({ against: value === "" ? null : Number(value) }); }}>
    <option value="" ?selected=${S.against === null}>${say("nobody")}</option>${others.map((v) => html`<option value=${v} ?selected=${v === S.against}>${pass.text(v)}</option>`)}</select>`;
  const title = S.against === null ? say("added", pass.text(S.tok)) : say("addedAgainst", pass.text(S.tok), pass.text(S.against));
  const parts = [...(found?.parts ?? []), ...(found && numeric(found.bias) ? [{ name: "bias", value: found.bias }] : [])].map(({ name, value }) => ({ name, value: numeric(value) })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const most = Math.abs(parts[0]?.value ?? 1) || 1;
  return html`<section class="s-who" aria-busy=${!found}><div class="h"><span class="name">${title}</span><span class="grow"></span><span class="cap">${found ? (S.cover ? covered(0, 1) : say(S.against === null ? "logit" : "by", shown(found.total, 3))) : nothing}</span></div>
    <div class="row cap"><span>${say("against")}</span>${choice}</div>
    ${S.cover ? nothing : parts.slice(0, isTall() ? 10 : 5).map(({ name, value }) => html`<button class="who" title=${name} @click=${() => placeOf(name)}><span>${partWord(name)}</span>
      ${bar2(value, most)}<span class="v ${value < 0 ? "down" : "up"}">${shown(value, 3)}</span></button>`)}</section>`;
}

/** Comments and words of Python. @param {string} line */
const tint = (line) => line.split(/(#.*$|"""[^"]*(?:"""|$)|\b(?:def|return|if|else|for|in|is|not|and|or|None)\b)/).map((part) => (/^(#|""")/.test(part) ? html`<i>${part}</i>` : /^(def|return|if|else|for|in|is|not|and|or|None)$/.test(part) ? html`<b>${part}</b>` : part));

/** An equation's page: a link where this page stands beside it on a site. @param {string} path */
function pageOf(path) {
  const url = new URL(`../equations/${path.split("/").at(-1)?.replace(/md$/, "html")}`, document.baseURI).href;
  if (isStill && areFiles && !links.has(url)) {
    links.set(url, false);
    fetch(url, { method: "HEAD" }).then(({ ok }) => { links.set(url, ok); page.draw(); }, () => {});
  }
  return links.get(url) ? html`<a href=${url}>${path}</a>` : path;
}

/** @param {import("./view.js").View} view */
function code({ equation, use }) {
  if (now.pass.updated(S.at)) return nothing;
  if (!equation) return html`<section class="s-code"><div class="h">${say("code")}</div><p class="cap">${say("noCode")}</p></section>`;
  const isBack = Boolean(use), shownHalf = isBack ? equation.derivative_lines : equation.forward_lines, halves = [equation.forward_lines, equation.derivative_lines];
  return html`<section class="s-code"><div class="h">${say(isBack ? "derivative" : "code")}<span class="cap grow file">${equation.file.split("/").at(-1)}:${shownHalf?.line ?? ""}</span>
      <button class="button quiet where" aria-expanded=${areFiles} aria-controls="files" @click=${() => { areFiles = !areFiles; page.draw(); }}>${say("files")} ${areFiles ? "▴" : "▾"}</button></div>
    <dl class="files" id="files" ?hidden=${!areFiles}><dt>${say("code")}</dt><dd class="path">${equation.file}:${shownHalf?.line ?? ""}</dd>${equation.test ? html`<dt>${say("test")}</dt><dd class="path">${equation.test}</dd>` : nothing}${equation.page ? html`<dt>${say("page")}</dt><dd class="path">${pageOf(equation.page)}</dd>` : nothing}</dl>
    <div class="code" tabindex="0" role="region" aria-label=${say("code")}>${halves.map((lines, k) => (lines ? html`${k && halves[0] ? html`<div data-n="⋮"></div>` : nothing}${lines.text.map((line, n) => html`<div class=${lines === shownHalf ? "on" : ""} data-n=${lines.line + n} .style=${`--i:${line.length - line.trimStart().length}`}>${tint(line.trimStart())}</div>`)}` : nothing))}</div></section>`;
}

/** @param {import("./view.js").View} view */
export const side = (view) => html`${nextToken()}${added()}${code(view)}`;
