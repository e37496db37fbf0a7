/** The middle of the page: the title of the place, its two halves, the matrices, and the opened number. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { cell } from "./cell.js";
import { change, flip, page, toHead } from "./navigate.js";
import { covered } from "./terms.js";
import { inLanguage, say } from "./words.js";
import { matrices } from "./matrices.js";
import { numeric } from "./numbers.js";
import { scaleOf } from "./colours.js";
import { word } from "./view.js";

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

/** @param {import("./view.js").View} view */
export function equation(view) {
  const kind = view.mats.at(-1)?.kind ?? "value", isAttention = kind === "attention";
  return html`${title(view)}${halves(view)}${matrices(view.mats)}
    <div class="row wrap under"><div class="read grow" id="read"></div><span class="cap" aria-hidden="true">${S.back ? say("falls") : isAttention ? "0" : "−"}<span class="scale" .style=${`background:${scaleOf(kind)}`}></span>${S.back ? say("rises") : isAttention ? "1" : "+"}</span></div>
    ${cell(view)}`;
}
