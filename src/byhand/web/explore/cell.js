/** The opened number: its name and the way to it, its arithmetic, what it may be changed to, and its answer by hand. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, address, now } from "./state.js";
import { backTo, change, page } from "./navigate.js";
import { expression, isLong, longest, sumOf, tree } from "./terms.js";
import { label, numeric, parse, short, shown } from "./numbers.js";
import { changing } from "./change.js";
import { isStill } from "./still.js";
import { spoken } from "./view.js";
import { verdict } from "../mistakes.js";
import { say } from "./words.js";

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
export function cell(view) {
  const { data } = now, key = `${now.pass.id} ${label(S.at, S.i, S.back)}`, got = data.answer(S.at, S.i, S.back, S.terms), refused = data.refusal(S.at, S.i, S.back, S.terms);
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
