/** The matrices beside an equation: where they stand, what is painted on them, and what pointing and keys do. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now, opened } from "./state.js";
import { change, go } from "./navigate.js";
import { fit, paint, seen } from "./paint.js";
import { ink } from "./colours.js";
import { hasText, light, over } from "./hover.js";
import { indexIn, madeFrom, spoken, word } from "./view.js";
import { powerOfTen } from "../numbers.js";
import { tailOf } from "./pass.js";
import { say } from "./words.js";
import { isNarrow, isPhone, isTall } from "./screen.js";

/** @typedef {import("./view.js").Mat} Mat @typedef {Mat & import("./paint.js").Window} Placed */

const ROOM = 1000; // CSS pixels from which parameters are shown too
const ZOOM = { cw: 46, ch: 19 }; // of a cell with a number
const roomOf = () => (document.querySelector("#eq")?.clientWidth ?? innerWidth) - (isNarrow() ? 24 : 48);

/** Whether a matrix is shown; one that is not is a door to its place. @param {Mat} m */
const isShown = (m) => m.slot === "out" || (!m.isVector && (!m.isParameter || roomOf() >= ROOM));
const isScalar = (/** @type {Mat} */ m) => !now.pass.shape(m.name).length || now.pass.updated(m.name) !== "";

let placed = /** @type {Placed[]} */ ([]);

/** @param {Mat[]} mats */
function lay(mats) {
  const real = mats.filter((m) => isShown(m) && !isScalar(m)), isSmall = isPhone(), stubs = Number(mats.some((m) => !isShown(m)));
  const room = roomOf(), high = isSmall ? 200 : isTall() ? 300 : 200, between = Math.max(0, real.length - 1) * 46;
  const each = isSmall ? room : Math.max(80, (room - stubs * 164 - between) / real.length);
  const squares = real.filter((m) => m.mask).length, spare = real.length > 1 && squares === 1 && !isSmall ? Math.max(0, each - high) / (real.length - 1) : 0;
  placed = real.map((m) => {
    const isZoomed = S.zoom === m.key, most = m.mask && spare ? Math.min(each, high + 8) : each + (m.mask ? 0 : spare);
    let cw = most / m.cols, ch = Math.min(28, high / m.rows);
    if (m.mask) cw = ch = Math.min(cw, high / m.rows, 46);
    else cw = cw >= ZOOM.cw ? ZOOM.cw : Math.min(14, cw);
    if (isZoomed || (cw >= 38 && high / m.rows >= ZOOM.ch)) [cw, ch] = [ZOOM.cw, ZOOM.ch];
    [cw, ch] = [Math.max(1, cw), Math.max(1, ch)];
    return { ...m, cw, ch, x: 0, y: 0, w: Math.min(most, cw * m.cols), h: Math.min(high + (isZoomed ? 40 : 0), ch * m.rows) };
  });
  over.mats = placed;
}

const viewOf = (/** @type {number} */ k) => /** @type {HTMLElement | null} */ (document.querySelector(`[data-mat="${k}"]`));
const canvasOf = (/** @type {HTMLElement} */ element, /** @type {string} */ which) => /** @type {HTMLCanvasElement} */ (element.querySelector(which));

export function paintAll() {
  placed.forEach((m, k) => {
    const element = viewOf(k);
    if (!element) return;
    const key = [m.matrix.key, m.w, m.h, m.cw, m.ch].join("|");
    if (element.dataset.key !== key) {
      Object.assign(element.style, { width: `${m.w}px`, height: `${m.h}px` });
      Object.assign(/** @type {HTMLElement} */ (element.querySelector(".room")).style, { width: `${m.cw * m.cols}px`, height: `${m.ch * m.rows}px` });
      const at = m.slot === "out" ? cellOf(m) : { r: hasText(m) ? S.t : 0, c: 0 };
      scroll(m, element, (at.c + 0.5) * m.cw - m.w / 2, (at.r + 0.5) * m.ch - m.h / 2);
      element.dataset.key = key;
    } else if (m.slot === "out" && element.dataset.at !== String(S.i)) follow(m, element, cellOf(m));
    if (m.slot === "out") element.dataset.at = String(S.i);
    [m.x, m.y] = [element.scrollLeft, element.scrollTop];
    for (const canvas of element.querySelectorAll("canvas")) canvas.style.transform = `translate(${m.x}px, ${m.y}px)`;
    const whole = paint(canvasOf(element, ".base"), m.matrix, m.kind, m, { mask: m.mask, hide: S.cover && m.slot === "out" });
    element.setAttribute("aria-busy", String(!whole));
  });
  paintOver();
}

/** Scroll a window, but not past its matrix: the canvases, which are moved along, would let it. @param {Placed} m @param {HTMLElement} element @param {number} x @param {number} y */
function scroll(m, element, x, y) {
  element.scrollLeft = Math.max(0, Math.min(m.cw * m.cols - m.w, x));
  element.scrollTop = Math.max(0, Math.min(m.ch * m.rows - m.h, y));
}

/** Scroll a window so that a cell is seen. @param {Placed} m @param {HTMLElement} element @param {{r: number, c: number}} cell */
function follow(m, element, { r, c }) {
  const x = c * m.cw, y = r * m.ch;
  const isWide = x < element.scrollLeft || x + m.cw > element.scrollLeft + m.w, isHigh = y < element.scrollTop || y + m.ch > element.scrollTop + m.h;
  if (isWide || isHigh) scroll(m, element, isWide ? x - m.w / 2 : element.scrollLeft, isHigh ? y - m.h / 2 : element.scrollTop);
}

const cellOf = (/** @type {Mat} */ m) => ({ r: m.isVector ? 0 : S.i.at(-2) ?? 0, c: S.i.at(-1) ?? 0 });

/** What the chosen number reads of a matrix, by its answer, where no rule is known. @param {Mat} m */
function sources(m) {
  const inputs = opened()?.inputs ?? [];
  const read = inputs.filter((/** @type {any} */ each) => each.name === m.name && each.gradient === m.back && now.data.headOf(m.name, each.index) === m.head);
  if (!read.length) return null;
  const r = read.map((/** @type {any} */ { index }) => (index.length > 1 ? index.at(-2) : 0)), c = read.map((/** @type {any} */ { index }) => index.at(-1) ?? 0);
  return { r0: Math.min(...r), r1: Math.max(...r), c0: Math.min(...c), c1: Math.max(...c) };
}

function paintOver() {
  const [panel, soft, strong, yellow] = ["--panel", "--ink-2", "--ink", "--chosen"].map(ink), mono = getComputedStyle(document.documentElement).getPropertyValue("--mono");
  const out = placed.find((m) => m.slot === "out"), hover = over.cell;
  const isOut = hover && hover.key === out?.key, chosen = out && cellOf(out), at = out && (isOut ? hover : chosen);
  const index = at && out ? indexIn(out, at.r, at.c) : S.i;
  placed.forEach((m, k) => {
    const element = viewOf(k);
    if (!element) return;
    const g = fit(canvasOf(element, ".over"), m.w, m.h);
    const box = (/** @type {number} */ r, /** @type {number} */ c, /** @type {number} */ rows, /** @type {number} */ cols, /** @type {number} */ pad, /** @type {string} */ stroke, /** @type {number} */ width) => {
      g.strokeStyle = stroke; g.lineWidth = width; g.strokeRect(c * m.cw - m.x - pad, r * m.ch - m.y - pad, cols * m.cw + 2 * pad, rows * m.ch + 2 * pad);
    };
    const texts = now.pass.tokens.map((token) => now.pass.text(token));
    if (m.mask && m.ch >= 7.5 && m.cw < 30) {
      g.font = `500 ${Math.min(11, m.ch)}px ${mono}`; g.fillStyle = soft; g.textBaseline = "middle";
      texts.forEach((text, r) => (r + 1) * m.cw - m.x + 8 < m.w && g.fillText(text.slice(0, 8), (r + 1) * m.cw + 2 - m.x, (r + 0.5) * m.ch + 0.5 - m.y));
    }
    if (m.cw > 30) tags(g, m, texts, panel, soft, mono);
    const from = m.slot === "in" && at ? (madeFrom(m, index) ?? (isOut ? null : sources(m))) : null;
    if (from) {
      const rows = from.r1 - from.r0 + 1, cols = from.c1 - from.c0 + 1;
      if (isOut) {
        g.fillStyle = panel; g.globalAlpha = 0.55; g.beginPath(); g.rect(0, 0, m.w, m.h);
        g.rect(from.c0 * m.cw - m.x, from.r0 * m.ch - m.y, cols * m.cw, rows * m.ch); g.fill("evenodd"); g.globalAlpha = 1;
      }
      box(from.r0, from.c0, rows, cols, 0.5, strong, 1.5);
    }
    if (m.slot === "out" && chosen) { box(chosen.r, chosen.c, 1, 1, 1, strong, 4.5); box(chosen.r, chosen.c, 1, 1, 1, yellow, 2.5); }
    if (hover?.key === m.key) { box(hover.r, hover.c, 1, 1, 1, panel, 3.5); box(hover.r, hover.c, 1, 1, 1, strong, 2); }
  });
}
over.paint = paintOver;

/** Numbers need to say whose they are: positions on the left, columns above. @param {CanvasRenderingContext2D} g @param {Placed} m @param {string[]} texts @param {string} panel @param {string} soft @param {string} mono */
function tags(g, m, texts, panel, soft, mono) {
  const { r0, r1, c0, c1 } = seen(m.matrix, m), tag = (/** @type {string | number} */ text, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ w, /** @type {number} */ h) => {
    g.fillStyle = panel; g.fillRect(x, y, w, h); g.fillStyle = soft; g.fillText(String(text).slice(0, 7), x + w / 2, y + h / 2 + 0.5);
  };
  if (S.zoom !== m.key) return;
  g.font = `500 10.5px ${mono}`; g.textAlign = "center"; g.textBaseline = "middle";
  for (let r = r0; r <= r1; r++) tag(hasText(m) ? `${r} ${texts[r].slice(0, 3)}` : r, 0, r * m.ch - m.y, 32, m.ch);
  for (let c = c0; c <= c1; c++) tag(m.mask ? `${c} ${texts[c].slice(0, 4)}` : c, c * m.cw - m.x, 0, m.cw, 15);
  tag("", 0, 0, 32, 15);
}

/** @param {MouseEvent} event */
function cellAt(event) {
  const element = /** @type {HTMLElement} */ (event.currentTarget), m = placed[Number(element.dataset.mat)], box = element.getBoundingClientRect();
  const clamp = (/** @type {number} */ x, /** @type {number} */ most) => Math.max(0, Math.min(most - 1, Math.floor(x)));
  return { m, key: m.key, c: clamp((event.clientX - box.left + m.x) / m.cw, m.cols), r: clamp((event.clientY - box.top + m.y) / m.ch, m.rows) };
}
let moved = /** @type {{key: string, r: number, c: number} | null} */ (null);
/** @param {MouseEvent} event */
function pointed(event) {
  const { key, r, c } = cellAt(event);
  if (!moved) requestAnimationFrame(() => { if (moved) light(moved); moved = null; });
  moved = { key, r, c };
}
const open = (/** @type {Mat} */ m, /** @type {number} */ r, /** @type {number} */ c) => go({ name: m.name, index: indexIn(m, r, c), back: m.back }, m.slot !== "out");

/** @param {KeyboardEvent} event */
function keyed(event) {
  const element = /** @type {HTMLElement} */ (event.currentTarget), m = placed[Number(element.dataset.mat)];
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const at = over.cell?.key === m.key ? over.cell : m.slot === "out" ? cellOf(m) : { r: hasText(m) ? S.t : 0, c: 0 };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (by) {
    const to = { key: m.key, r: Math.max(0, Math.min(m.rows - 1, at.r + by[0])), c: Math.max(0, Math.min(m.cols - 1, at.c + by[1])) };
    follow(m, element, to);
    light(to);
  } else if (event.key === "Enter") open(m, at.r, at.c);
  else if (event.key === "Escape") { light(null); element.blur(); } else return;
  event.preventDefault();
  event.stopPropagation();
}

/** @param {Mat[]} mats */
export function matrices(mats) {
  lay(mats);
  /** parameters without a picture stand below each other @type {Mat[][]} */
  const groups = [];
  for (const m of mats) {
    if (isScalar(m)) continue;
    const last = groups.at(-1);
    if (!isShown(m) && last && !isShown(last[0])) last.push(m);
    else groups.push([m]);
  }
  const zoom = (/** @type {Mat} */ m) => change({ zoom: S.zoom === m.key ? "" : m.key });
  return html`<div class="mats">${groups.map((group, n) => html`${n ? html`<span class="op">${group[0].slot === "out" ? "→" : "·"}</span>` : nothing}
    ${isShown(group[0]) ? figure(group[0], zoom) : html`<div class="stubs">${group.map((m) => html`<button class="stub" title=${m.key} @click=${() => go({ name: m.name, index: [], back: m.back })}>
      <span class="sym" data-math=${m.symbol}></span> ${tailOf(m.name)}<br><span class="faint">${now.pass.shape(m.name).join(" × ")}${m.isParameter ? `, ${say("aParameter")}` : ""}</span></button>`)}</div>`}`)}</div>`;
}

/** @param {Mat} m @param {(m: Mat) => void} zoom */
function figure(m, zoom) {
  const k = placed.findIndex((each) => each.key === m.key && each.slot === m.slot), isZoomed = S.zoom === m.key;
  return html`<figure class="mat"><div class="h"><span class="sym" data-math=${m.symbol}></span><span class="cap grow">${word(m.name)} <span class="faint">${m.rows}×${m.cols}</span>
      ${placed[k].cw > 38 && m.matrix.unit !== 1 ? html`<span class="faint"> · ${say("numbersTimes", powerOfTen(Math.round(Math.log10(m.matrix.unit))))}</span>` : nothing}</span>
      <button class="button quiet zoom" title=${say("numbers")} aria-label="${isZoomed ? say("whole") : "123"}: ${say("numbers")}, ${spoken(m.name)}" aria-pressed=${isZoomed} @click=${() => zoom(m)}>${isZoomed ? say("whole") : "123"}</button></div>
    <div class="view" tabindex="0" role="application" aria-label=${say("matrix", spoken(m.name), m.rows, m.cols)} data-mat=${k}
      @mousemove=${pointed} @mouseleave=${() => { moved = null; light(null); }} @click=${(e) => { const { m: on, r, c } = cellAt(e); open(on, r, c); }} @keydown=${keyed} @scroll=${paintAll}>
      <div class="room"></div><canvas class="base"></canvas><canvas class="over"></canvas></div></figure>`;
}
/** Into the matrix of the chosen number. */
export const enter = () => viewOf(placed.findIndex((m) => m.slot === "out"))?.focus();
