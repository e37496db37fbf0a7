/** The text as chips, arcs of attention above them, and below, in the same columns, what each half block would say next. */
import { html, nothing, svg } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { ask } from "./session.js";
import { blockOf } from "./pass.js";
import { change, go, page, toPosition } from "./navigate.js";
import { numeric, shown } from "./numbers.js";
import { isStill } from "./still.js";
import { focus, sent } from "../fields.js";
import { say } from "./words.js";
import { isNarrow, isWide } from "./screen.js";

const LABEL = 96, HIGH = 46, MOST = 132; // of the first column; of the arcs; of a chip
let isEditing = false;

/** Columns as wide as their tokens, in CSS pixels. */
function columns() {
  const { pass } = now, least = isWide() ? 32 : isNarrow() ? 26 : 22;
  const wide = (/** @type {string} */ text) => [...text].reduce((sum, c) => sum + (c > "⺀" ? 14 : 8.2), 0);
  return [...pass.tokens, pass.target(pass.last)].map((id) => Math.round(Math.min(MOST, Math.max(least, wide(pass.text(id)) + 12))));
}

/** @param {number[]} wide */
function arcs(wide) {
  const { pass, data } = now, [block, head] = S.head, weights = pass.weightsOf(block);
  const ends = wide.map((_, t) => LABEL + wide.slice(0, t).reduce((a, b) => a + b, 0) + wide[t] / 2), total = LABEL + wide.reduce((a, b) => a + b, 0);
  const row = weights ? data.matrix(weights, S.back, head).row(S.t) : undefined, seen = [...(row?.subarray(0, S.t + 1) ?? [])], most = Math.max(...seen.map(Math.abs), 1e-30);
  const paths = seen.map((w, s) => {
    const f = Math.min(1, Math.abs(w) / (S.back ? most : 1));
    if (!(f >= (S.back ? 0.12 : 0.02))) return nothing;
    const from = ends[S.t], to = ends[s], top = HIGH - Math.min(HIGH - 4, 14 + 0.095 * (from - to)) - 8;
    const d = s === S.t ? `M${to - 4} ${HIGH}C${to - 9} ${HIGH - 16} ${to + 9} ${HIGH - 16} ${to + 4} ${HIGH}` : `M${from} ${HIGH}C${from} ${top} ${to} ${top} ${to} ${HIGH}`;
    return svg`<path class=${S.back ? (w < 0 ? "falls" : "rises") : ""} d=${d} stroke-width=${0.8 + 6 * f} opacity=${0.25 + 0.75 * Math.sqrt(f)} />`;
  });
  return html`<svg class="arcs" width=${total} height=${HIGH} aria-hidden="true">${paths}</svg>`;
}

function lens() {
  const { pass, data } = now, stages = S.lens ? data.stages() : null;
  if (!S.lens) return nothing;
  const name = (/** @type {string} */ at, /** @type {number} */ k) => { const b = blockOf(at); return b === null ? say("start") : say(k % 2 ? "plusAttention" : "plusMlp", b); };
  return html`<div class="lens" role="group" aria-label=${say("lensLabel")} aria-busy=${!stages}>${(stages ?? []).map((stage, k) => html`<div class="cols"><span class="cap">${name(stage.name, k)}</span>${stage.top.map((best, t) => {
    const [v, chance] = best[0], p = numeric(chance), true_ = stage.true[t], target = pass.target(t);
    const said = true_ ? say("stage", pass.text(v), shown(p, 3), pass.text(target), shown(true_[0], 3), true_[1]) : say("stageOnly", pass.text(v), shown(p, 3));
    return html`<button class="${v === target ? "hit" : ""} ${t === S.t ? "t" : ""} ${p > 0.5 ? "dark" : ""}" tabindex="-1" .style=${`--p:${Math.round(p > 0.5 ? 60 + 50 * (p - 0.5) : 68 * p)}%`} title=${said} aria-label=${S.cover ? say("covered") : said}
      @click=${() => go({ name: stage.name, index: [0, t, 0], back: S.back })}>${S.cover ? "·" : pass.text(v)}</button>`;
  })}</div>`)}</div>`;
}

function close() {
  isEditing = false;
  page.draw();
  focus(".edits", 1);
}
/** Begin to change the text. */
export function edit() {
  if (isStill) return;
  isEditing = true;
  change({ tab: "eq" });
  focus("#prompt", 2);
}

function editor() {
  const submit = sent(({ prompt, next }) => {
    close();
    ask({ prompt, next });
  });
  const keyed = (e) => {
    const isSent = e.key === "Enter" && !e.shiftKey && !e.isComposing;
    if (isSent || e.key === "Escape") e.preventDefault();
    if (e.key === "Escape") close();
    if (!isSent) return;
    e.target.form?.requestSubmit();
  };
  return html`<form class="editor" @submit=${submit}><label class="grow"><span class="cap">${say("textLabel")}</span><textarea id="prompt" name="prompt" rows="1" class="box mono" .value=${now.pass.data.prompt} @keydown=${keyed}></textarea></label>
    <label><span class="cap">${say("nextLabel")}</span><input class="box mono" name="next" autocomplete="off" .value=${now.pass.data.next ?? ""}></label>
    <button class="button">${say("use")}</button><button type="button" class="button quiet" @click=${close}>${say("cancel")}</button></form>`;
}

export function text() {
  const { pass } = now, wide = columns(), [block, head] = S.head;
  if (isEditing) return editor();
  return html`<div class="strip" .style=${`--cols:${LABEL}px ${wide.map((w) => `${w}px`).join(" ")} 36px`}>
    <button class="button quiet lensed" aria-pressed=${S.lens} title=${say("lensTitle")} @click=${() => change({ lens: !S.lens })}>${say("afterEach")} ${S.lens ? "▴" : "▾"}</button>${arcs(wide)}
    <div class="cols chips" role="group" aria-label=${say("text")}><span class="cap att">${pass.weightsOf(block) ? say("blockHead", block, head) : ""}</span>${pass.tokens.map((id, t) => html`<button class="chip" tabindex=${t === S.t ? 0 : -1} aria-pressed=${t === S.t}
      title=${say("chip", t, id, pass.text(pass.target(t)))} @click=${() => toPosition(t)}>${pass.text(id)}</button>`)}<span class="chip after" title=${say("trueNext")}>${pass.text(pass.target(pass.last))}</span>
      ${isStill ? nothing : html`<button class="button quiet edits" title="${say("edit")} (e)" aria-label=${say("edit")} @click=${edit}>✎</button>`}</div>${lens()}</div>`;
}
