/** Compare with another text, or with the model unchanged: the first place that differs lights. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { ask } from "./session.js";
import { change, go, page } from "./navigate.js";
import { numeric, shown, signed } from "./numbers.js";
import { spoken } from "./view.js";
import { say } from "./words.js";
import { icon, sent } from "../fields.js";

/** Where the two passes differ, by place; null is a place that only one has, or in another shape. @returns {{first: string | null, of: Map<string, number | null>} | null} */
export function differences() {
  const found = now.other && now.data.compared(now.other.id);
  if (!found) return null;
  const of = new Map(found.places.filter((each) => !each.gradient).map(({ name, difference }) => [name, difference === null ? null : numeric(difference)]));
  return { first: now.pass.data.places.find((name) => of.has(name)) ?? found.first, of };
}

const leave = () => { S.panel.compare = false; ask({ vs: "" }); };
/** @param {string} vs */
const choose = (vs) => ask({ vs }).then(() => now.other && change({ metric: "differs" }));

export function comparing() {
  const isOpen = S.panel.compare || S.vs;
  if (!isOpen) return nothing;
  const { other, otherData, data } = now, found = other && data.compared(other.id), first = differences()?.first;
  const worst = first ? found?.places.find(({ name }) => name === first) : null, isBack = worst?.gradient ?? false;
  const submit = sent(({ text: given }) => given && choose(`p:${given}`));
  const with_ = (/** @type {string} */ vs, /** @type {string} */ word) =>
    html`<button class="button" aria-pressed=${S.vs === vs} @click=${() => choose(vs)}>${say(word)}</button>`;
  const fits = other && String(other.shape(S.at)) === String(now.pass.shape(S.at)), here = data.value(S.at, false, S.i);
  const there = fits && !S.back ? otherData?.value(S.at, false, S.i) : undefined;
  const difference = first && html`<button class="differs" @click=${() => go({ name: first, index: worst?.index ?? [], back: isBack })}>
    ${say("differsFirst", `${isBack ? "∂ " : ""}${spoken(first)}`)}</button>
    ${worst?.difference ? html` <span class="dim">${say("largest", shown(worst.difference, 3))}</span>` : nothing}`;
  return html`<section class="strip-of compare" aria-label=${say("compare")}><b>${say("compareWith")}</b>
    ${S.changes.length ? with_("base", "unchanged") : nothing}${now.pass.data.theirs ? with_("theirs", "theirs") : nothing}
    <form class="row" @submit=${submit}><input class="box" name="text" placeholder=${say("otherText")} aria-label=${say("otherText")}
      .value=${S.vs.startsWith("p:") ? S.vs.slice(2) : ""}><button class="button">${say("use")}</button></form>
    <span class="grow" role="status">${!other ? nothing : !found ? say("pending") : difference ?? say("same")}</span>
    ${there !== undefined && here !== undefined
      ? html`<span>${shown(here, 5)} / ${shown(there, 5)} <span class="dim">(${signed(there - here)})</span></span>` : nothing}
    ${icon("✕", say("leave"), leave)}</section>`;
}
/** Ask what to compare with, or leave it. */
export function toggleCompare() {
  if (S.vs) return leave();
  S.panel.compare = !S.panel.compare;
  page.draw();
}
