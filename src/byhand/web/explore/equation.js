/** The middle of the page: the title of the place, its two halves, the matrices, and the opened number with its arithmetic. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address, here, now, opened } from "./state.js";
import { backTo, change, flip, page, toHead } from "./navigate.js";
import { changing } from "./change.js";
import { covered, expression, isLong, longest, sumOf, tree } from "./terms.js";
import { inLanguage, say } from "./words.js";
import { isStill } from "./still.js";
import { label, numeric, parse, short, shown } from "./numbers.js";
import { matrices } from "./matrices.js";
import { scaleOf } from "./colours.js";
import { spoken, word } from "./view.js";
import { verdict } from "../mistakes.js";

/** How many digits two numbers share. @param {number} a @param {number} b */
const agreeing = (a, b) => Math.max(0, Math.min(9, Math.floor(-Math.log10(Math.abs((a - b) / b) + 1e-10))));

/** @param {import("./view.js").View} view */
function title({ equation, uses, use }) {
  const { pass } = now, heads = pass.headsOf(S.at), said = inLanguage(equation?.title);
  const choice = (/** @type {string} */ name, /** @type {unknown} */ buttons) => html`<span class="row"><span class="cap">${name}</span><span class="seg" role="group" aria-label=${name}>${buttons}</span></span>`;
  return html`<div class="title"><h1>${pass.updated(S.at) ? say("update") : !equation ? say("parameter") : S.back ? say("backwards", said) : said}</h1><span class="dim mono">${S.at}</span>
    ${heads > 1 ? choice(say("head"), Array.from({ length: heads }, (_, h) => html`<button aria-pressed=${h === S.i[1]} @click=${() => toHead(h)}>${h}</button>`)) : nothing}
    ${S.back && uses.length > 1 ? choice(say("usedBy"), uses.map((each, k) => html`<button aria-pressed=${each === use} @click=${() => change({ use: k }, true)}>${word(each.results[0])}</button>`)) : nothing}</div>`;
}

/** @param {import("./view.js").View} view */
function halves({ uses, use }) {
  const { pass, data } = now, equations = data.equations(), made = pass.data.made[S.at], reader = use ?? uses[0] ?? null;
  const forward = data.answer(S.at, S.i, false)?.value ?? (pass.updated(S.at) ? undefined : data.value(S.at, false, S.i)), isUpdate = pass.updated(S.at) !== "", isFrozen = pass.data.trained[S.at] === false, isAsked = !isUpdate && !isFrozen && (S.back || !data.isLarge), back = isAsked ? data.answer(S.at, S.i, true) : undefined;
  const slope = back?.value ?? undefined, refused = isFrozen || data.refusal(S.at, S.i, true), nudged = S.at === "loss" || refused || !back || (data.isLarge && !S.nudge) ? undefined : data.difference(S.at, S.i);
  const digits = nudged !== undefined && slope !== undefined && numeric(slope) ? agreeing(numeric(nudged), numeric(slope)) : 0;
  const figure = (/** @type {any} */ x) => html`<span class="fig">${x === undefined ? "–" : covered(numeric(x), 6)}</span>`;
  return html`<div class="halves ${S.back ? "back" : ""}">
    <button class="half forward" aria-pressed=${!S.back} @click=${() => flip(false)}><span class="row"><span class="cap grow">${say("made")}</span>${figure(forward)}</span>
      ${made ? html`<span class="maths" data-math=${equations?.[made.equation]?.forward ?? ""}></span>` : html`<span class="cap">${isUpdate ? nothing : say("learned")}</span>`}</button>
    <button class="half derivative" aria-pressed=${S.back} @click=${() => flip(true)}><span class="row"><span class="cap grow">${uses.length > 1 ? say("asksBy", uses.length) : say("asks")}</span>${figure(slope)}</span>
      <span class="maths" data-math=${reader ? equations?.[reader.equation]?.derivative ?? "" : ""}></span>
      ${refused ? html`<span class="cap">${say("noGradient")}</span>` : nudged !== undefined ? html`<span class="cap nudge">${say("nudged")}: ${covered(numeric(nudged), 6)} ${S.cover || !digits ? nothing : html`<b>${say("agree", digits)}</b>`}</span>` : html`<span class="cap nudge">${isUpdate ? nothing : !isAsked ? say("askGradient") : back && S.at !== "loss" && !data.isLarge && !data.hasNoDifference(S.at, S.i) ? `${say("nudged")}: ${say("pending")}` : nothing}</span>`}</button></div>
    ${data.isLarge && S.back && back && S.at !== "loss" && nudged === undefined ? html`<button class="button quiet nudges" ?disabled=${S.nudge} @click=${() => { S.nudge = true; page.draw(); }}>${say(S.nudge ? "pending" : "nudge")}</button>` : nothing}`;
}

/** The last answer that came, which stays readable while another one is computed. @type {{key: string, got: any} | null} */
let last = null;

/** @type {Record<string, string>} */
const NOTES = { loss: "isLoss", parameter: "isParameter", given: "isGiven", zero: "isZero", cancelled: "isCancelled" };

function crumbs() {
  const steps = S.trail.slice(-3), from = S.trail.length - steps.length;
  return html`<button class="button quiet back" title=${say("backDoor")} aria-label=${say("backDoor")} @click=${() => backTo()}>←</button>
    <nav class="crumbs" aria-label=${say("doors")}>${steps.map((text, n) => {
      const { name, index, back } = parse(text);
      return html`<button title=${text} @click=${() => backTo(from + n)}>${back ? "∂ " : ""}${spoken(name)}${index.length ? `[${short(index)}]` : ""}</button><span class="faint">›</span>`;
    })}</nav>`;
}

let isCopied = false;
function copy() {
  navigator.clipboard?.writeText(new URL(address(!isStill), location.href).href);
  isCopied = true;
  page.draw();
  setTimeout(() => { isCopied = false; page.draw(); }, 1500);
}

/** @param {import("./view.js").View} view */
function cell(view) {
  const { data } = now, key = `${now.pass.id} ${here()}`, got = opened(), refused = data.refusal(S.at, S.i, S.back, S.terms);
  if (got) last = { key, got };
  const isPending = !got && !refused, kept = got ?? (isPending ? last?.got : null), isSame = got || last?.key === key;
  const value = isSame && kept ? numeric(kept.value) : now.pass.updated(S.at) ? undefined : data.value(S.at, S.back, S.i), out = view.mats.at(-1);
  const root = kept?.terms ? tree(kept.terms) : null, isAll = isLong(root ?? undefined), below = root && longest(root), found = value === undefined ? null : verdict(S.tried, value);
  const input = html`<input class="try ${found?.[0] ? "good" : ""}" inputmode="text" autocomplete="off" aria-label=${say("yours")} placeholder=${say("yours")} .value=${S.tried}
    @input=${(e) => { S.tried = e.target.value; page.draw(); }}>`;
  const note = refused ? refused.message : kept?.note ? say(NOTES[kept.note.code] ?? "") ?? "" : "", isMasked = !S.back && out?.mask?.(S.i.at(-2) ?? 0, S.i.at(-1) ?? 0);
  const sign = out?.kind === "attention" ? "teal" : (value ?? 0) < 0 ? "down" : "up";
  return html`<section class="cell" aria-busy=${isPending}>
    <div class="h">${S.trail.length ? crumbs() : nothing}<span class="name mono" tabindex="-1">${S.back ? "∂loss/∂" : ""}${label(S.at, S.i)}</span><span class="grow"></span>
      <button class="button quiet" title=${say("linkTitle")} @click=${copy}>${say(isCopied ? "copied" : "link")}</button></div>
    <div class="body ${isSame || !kept ? "" : "stale"}"><div class="expr"><b class=${`figure ${sign}`}>${S.cover && value !== undefined ? input : shown(value ?? kept?.value, 7)}</b>
      ${S.cover && found ? html`<span class="said" role="status">${say(found[1], shown(found[2], 2))}</span>` : nothing}
      ${root && isAll ? html`<span class="dim">${say("sumOf", root.parts.length + root.more)}</span>`
        : root ? html`<span class="op">=</span>${expression(root, "0", "", below)}` : nothing}
      ${isMasked ? html`<span class="dim">${say("isMasked")}</span>` : nothing}
      ${note ? html`<span class="dim note">${note}</span>` : isPending && !kept ? html`<span class="dim">${say("pending")}</span>` : nothing}</div>
    ${below ? sumOf(below, "below", () => change({ terms: Math.min(4096, S.terms * 4) })) : nothing}</div>
    ${changing()}</section>`;
}

/** @param {import("./view.js").View} view */
export function equation(view) {
  const kind = view.mats.at(-1)?.kind ?? "value", isAttention = kind === "attention";
  return html`${title(view)}${halves(view)}${matrices(view.mats)}
    <div class="row wrap under"><div class="read grow" id="read"></div><span class="cap" aria-hidden="true">${S.back ? say("falls") : isAttention ? "0" : "−"}<span class="scale" .style=${`background:${scaleOf(kind)}`}></span>${S.back ? say("rises") : isAttention ? "1" : "+"}</span></div>
    ${cell(view)}`;
}
