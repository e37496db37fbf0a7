/** The model as a flow: its stream as the trunk, one block open, the others folded with their heads as thumbnails. */
import { html, nothing, svg } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { change, go } from "./navigate.js";
import { differences } from "./compare.js";
import { numeric, shown, signed } from "./numbers.js";
import { blockOf } from "./pass.js";
import { word } from "./view.js";
import { theme } from "./colours.js";
import { thumbnail } from "./paint.js";
import { say } from "./words.js";
import { isNarrow, isWide } from "./screen.js";

/**
 * A row of the map: places beside each other, or a folded branch of a closed block.
 * @typedef {{kind: "trunk" | "in" | "fold", names: string[], block: number | null, opens: boolean, closes: boolean, state: string, heads: boolean, mlp: boolean}} Row
 */

const X = 22, B = 46; // of the trunk and of a branch
let wanted = 0;

/** @returns {Row[]} */
function rowsOf() {
  const { pass } = now, open = S.head[0];
  const rows = /** @type {Row[]} */ ([]);
  let state = "";
  const add = (/** @type {Partial<Row> & {names: string[]}} */ row) => rows.push({ kind: "trunk", block: null, opens: false, closes: false, heads: false, mlp: false, state, ...row });
  for (const { block, places, branches } of pass.stretches) {
    if (block === null) {
      for (const name of places) { state = pass.stream.has(name) || rows.length < 2 ? name : state; add({ names: [name], state }); }
      continue;
    }
    for (const { rows: inside, out, trunk } of branches) {
      const heads = inside.flat().some((name) => pass.isAttention(name));
      if (block !== open && inside.length) add({ kind: "fold", names: [out], block, heads, mlp: inside.flat().some((name) => /\.mlp\./.test(name)) });
      if (block === open) inside.forEach((names, k) => add({ kind: "in", names, block, opens: k === 0, closes: k === inside.length - 1, heads: names.some((name) => pass.isAttention(name)) }));
      state = trunk;
      if (block === open) add({ names: [trunk], block });
    }
  }
  return rows;
}

/** What the bars show: how long they are, and what they say. @param {Row[]} rows */
function meters(rows) {
  const { data, pass } = now, metric = S.back ? "size" : S.metric;
  if (metric === "share") {
    const found = data.shares(S.t, S.tok, S.against)?.parts ?? [], most = Math.max(...found.map(({ value }) => Math.abs(numeric(value))), 1e-9);
    return rows.map(({ names: [name], kind }) => {
      const branch = pass.stretches.flatMap(({ branches }) => branches).find(({ out }) => out === name), group = /^blocks\.\d+\.\w+\./.exec(name)?.[0];
      const embedded = pass.data.made[name]?.equation === "add_positional" ? "wpe" : name, isPart = branch || kind === "trunk";
      const parts = isPart ? found.filter((part) => part.name === embedded || (branch && group && part.name.startsWith(group))) : [];
      const sum = parts.reduce((all, { value }) => all + numeric(value), 0);
      return parts.length ? { width: Math.abs(sum) / most, sum, title: say("shareAt", shown(sum, 3), pass.text(S.tok)) } : null;
    });
  }
  if (metric === "differs" && now.other) {
    const of = differences()?.of, most = Math.max(...[...(of?.values() ?? [])].map((x) => x ?? 0), 1e-30);
    return rows.map(({ names }) => {
      const found = names.map((name) => of?.get(name)).filter((x) => x !== undefined), x = Math.max(...found.map((each) => each ?? most));
      return found.length ? { width: x / most, sum: null, title: say("largest", shown(x, 3)) } : null;
    });
  }
  const norms = data.norms(S.back), sizes = rows.map(({ names }) => Math.max(...names.map((name) => numeric(norms?.[name]?.[S.t] ?? 0))));
  const most = Math.max(...sizes.filter((size, k) => Number.isFinite(size) && rows[k].names[0] !== "logits"), 1e-30);
  return sizes.map((size) => (size ? { width: Math.min(1, size / most), sum: null, title: say("lengthAt", shown(size, 3), S.t) } : null));
}

/** @param {Row[]} rows @param {number} high */
function lines(rows, high) {
  const norms = now.data.norms(S.back), y = (/** @type {number} */ k) => (k + 0.5) * high, end = rows.findLastIndex(({ names, kind }) => kind === "fold" || now.pass.stream.has(names[0])) + 1;
  const size = (/** @type {string} */ name) => numeric(norms?.[name]?.[S.t] ?? 0), most = Math.max(...rows.map(({ state }) => size(state)).filter(Number.isFinite), 1e-30);
  const line = (/** @type {string} */ d, /** @type {number} */ wide) => svg`<path class="line" d=${d} stroke-width=${wide} />`;
  return rows.map(({ kind, names, opens, closes, state }, k) => {
    const isHere = names.includes(S.at), before = k ? rows[k - 1].state : "";
    const trunk = k > 0 && k <= end ? line(`M${X} ${y(k - 1)}V${y(k)}`, 2 + 7 * Math.sqrt(Math.min(1, size(before || state) / most))) : k > end ? line(`M${X} ${y(k - 1)}V${y(k)}`, 1.5) : nothing;
    const branch = kind === "fold" ? line(`M${X} ${y(k) - high / 2}C${B} ${y(k) - high / 2} ${B} ${y(k) + high / 2} ${X} ${y(k) + high / 2}`, 1.5) : nothing;
    const away = kind === "in" ? line(opens ? `M${X} ${y(k) - high * 0.6}C${X + 4} ${y(k) - 2} ${B} ${y(k) - 8} ${B} ${y(k)}` : `M${B} ${y(k - 1)}V${y(k)}`, 1.5) : nothing;
    const home = kind === "in" && closes ? line(`M${B} ${y(k)}C${B} ${y(k) + 8} ${X + 4} ${y(k) + 2} ${X} ${y(k) + high * 0.75}`, 1.5) : nothing;
    const dot = kind === "fold" ? nothing : kind === "in" ? svg`<circle class="dot ${isHere ? "here" : ""}" cx=${B} cy=${y(k)} r=${isHere ? 4.5 : 2.5} />` : svg`<circle class="state ${isHere ? "here" : ""}" cx=${X} cy=${y(k)} r=${isHere ? 6 : 4} />`;
    return [trunk, branch, away, home, dot];
  }).concat([[svg`<path class="flowline" d=${`M${X} ${y(Math.min(1, rows.length - 1))}V${y(end)}`} />`]]);
}

/** A block's heads. @param {number} block @param {string} weights */
function thumbs(block, weights) {
  const count = now.pass.headsOf(weights), size = Math.max(5, Math.min(17, Math.floor(78 / (count > 10 ? Math.ceil(count / 2) : count)) - 2));
  return html`<span class="thumbs">${Array.from({ length: count }, (_, h) => html`<button tabindex="-1" aria-pressed=${block === S.head[0] && h === S.head[1]} title=${say("blockHead", block, h)} aria-label=${say("headLabel", block, h)}
    @click=${(e) => { e.stopPropagation(); go({ name: weights, index: [0, h, S.t, Math.min(S.t, S.at === weights ? S.i[3] : Math.max(0, S.t - 1))], back: S.back }); }}>
    <canvas data-weights=${weights} data-head=${h} width="1" height="1" .style=${`width:${size}px;height:${size}px`}></canvas></button>`)}</span>`;
}

/** @param {Row} row @param {{width: number, sum: number | null, title: string} | null} meter @param {number} high @param {{first: string | null, of: Map<string, number | null>} | null} differ @param {boolean} isStop  whether the tab key stops here */
function rowOf({ kind, names, block, heads, mlp }, meter, high, differ, isStop) {
  const weights = block === null ? undefined : now.pass.weightsOf(block), isOpen = block === S.head[0];
  const bar = !meter ? html`<span></span>` : meter.sum === null ? html`<span class="meter" title=${meter.title} .style=${`--w:${(100 * meter.width).toFixed(1)}%`}></span>`
    : html`<span class="meter two ${meter.sum < 0 ? "m" : ""}" title=${meter.title}><i .style=${`width:${S.cover ? 0 : (100 * meter.width).toFixed(1)}%`}></i><small>${S.cover ? "" : signed(Number(meter.sum.toFixed(2)), 3)}</small></span>`;
  const said = (/** @type {string} */ name) => (kind === "fold" ? (heads ? say("attentionN", block ?? 0) : mlp ? say("mlpN", block ?? 0) : `${word(name)} ${block}`) : word(name));
  const mark = (/** @type {string} */ name) => (differ?.of.has(name) ? (differ.first === name || (kind === "fold" && blockOf(differ.first ?? "") === block) ? "first" : "differs") : "");
  const place = (/** @type {string} */ name, /** @type {number} */ k) => html`<button class="n ${mark(name)}" title=${name} aria-current=${name === S.at ? "true" : "false"} tabindex=${isStop && (name === S.at || (k === 0 && !names.includes(S.at))) ? 0 : -1}
    @click=${(e) => { e.stopPropagation(); go({ name, index: [], back: S.back }); }}>${said(name)}</button>`;
  return html`<div class="node ${kind} ${isOpen ? "ob" : ""}" .style=${`height:${high}px`} @click=${() => go({ name: names[0], index: [], back: S.back })}>
    <span class="names">${names.map(place)}</span>${heads && weights ? thumbs(/** @type {number} */ (block), weights) : html`<span></span>`}${bar}</div>`;
}

export function map() {
  const rows = rowsOf(), high = isNarrow() ? 34 : isWide() ? 25 : 22, bars = meters(rows), differ = now.other ? differences() : null;
  const stop = Math.max(0, rows.findIndex(({ names }) => names.includes(S.at)));
  const kinds = ["size", "share", ...(now.other ? ["differs"] : [])], next = kinds[(kinds.indexOf(S.metric) + 1) % kinds.length];
  const said = S.metric === "share" ? say("shareOf", now.pass.text(S.tok)) : S.metric === "differs" && now.other ? say("differs") : say("length");
  return html`<div class="h">${S.back ? say("fromLoss") : say("fromText")}<span class="grow"></span>
      ${S.back ? html`<span class="cap">${say("gradientLength")}</span>` : html`<button class="button quiet metric" title=${say("metric")} @click=${() => change({ metric: next })}>${said} ⇄</button>`}</div>
    <div class="flow"><svg class="lines" width="70" height=${rows.length * high} aria-hidden="true">${lines(rows, high)}</svg>${rows.map((row, k) => rowOf(row, bars[k], high, differ, k === stop))}</div>`;
}

/** Fetch and draw the thumbnails that are seen. */
export function thumbnails() {
  cancelAnimationFrame(wanted);
  wanted = requestAnimationFrame(() => {
    const box = document.querySelector(".map")?.getBoundingClientRect();
    for (const canvas of /** @type {NodeListOf<HTMLCanvasElement & {drawn?: string}>} */ (document.querySelectorAll("[data-weights]"))) {
      const { top, bottom } = canvas.getBoundingClientRect(), { weights = "", head = "0" } = canvas.dataset;
      if (!box || !bottom || bottom < box.top || top > box.bottom) continue;
      const matrix = now.data.matrix(weights, S.back, Number(head)), key = `${matrix.key}/${theme()}`;
      if (canvas.drawn !== key && thumbnail(canvas, matrix, S.back ? "gradient" : "attention")) canvas.drawn = key;
    }
  });
}
