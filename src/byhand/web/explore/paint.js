/** Heat maps on canvases: one pixel for each number, scaled by the browser; grid and numbers where cells are large enough. */
import { brief } from "./numbers.js";
import { colour, ink, onto, theme } from "./colours.js";

/**
 * The part of a matrix that its window shows: size of a cell, where the window begins, and its size, in CSS pixels.
 * @typedef {{cw: number, ch: number, x: number, y: number, w: number, h: number}} Window
 * @typedef {import("./matrix.js").Matrix} Matrix @typedef {import("./colours.js").Kind} Kind
 */

const pictures = /** @type {Map<string, HTMLCanvasElement>} */ (new Map());
const MOST = 400; // pictures that are kept

/** @param {Matrix} matrix @param {import("./matrix.js").Tile} tile @param {Kind} kind */
function picture(matrix, tile, kind) {
  const by = theme(), most = kind === "attention" ? 1 : matrix.most, key = `${matrix.key}/${tile.r},${tile.c}/${kind}/${by}/${most}`;
  const had = pictures.get(key);
  if (had) return had;
  const canvas = document.createElement("canvas"), rows = tile.data.length / tile.cols;
  [canvas.width, canvas.height] = [tile.cols, rows];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), image = context.createImageData(tile.cols, rows);
  tile.data.forEach((x, i) => {
    const [r, g, b] = colour(kind, x, most, by);
    image.data[4 * i] = r; image.data[4 * i + 1] = g; image.data[4 * i + 2] = b; image.data[4 * i + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  pictures.set(key, canvas);
  if (pictures.size > MOST) pictures.delete(/** @type {string} */ (pictures.keys().next().value));
  return canvas;
}

/** Draw a whole small matrix, as a head's thumbnail. @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {Kind} kind */
export function thumbnail(canvas, matrix, kind) {
  if (!matrix.want(0, matrix.rows - 1, 0, matrix.cols - 1)) return false;
  [canvas.width, canvas.height] = [matrix.cols, matrix.rows];
  for (const tile of matrix.tiles.values()) canvas.getContext("2d")?.drawImage(picture(matrix, tile, kind), tile.c, tile.r);
  return true;
}

/** A canvas of a size in CSS pixels, empty. @param {HTMLCanvasElement} canvas @param {number} w @param {number} h */
export function fit(canvas, w, h) {
  const k = devicePixelRatio || 1, wide = Math.round(w * k), high = Math.round(h * k);
  if (canvas.width !== wide || canvas.height !== high) {
    [canvas.width, canvas.height] = [wide, high];
    [canvas.style.width, canvas.style.height] = [`${w}px`, `${h}px`];
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(k, 0, 0, k, 0, 0);
  context.clearRect(0, 0, w, h);
  return context;
}

/** First and last row and column that a window shows. @param {Matrix} matrix @param {Window} view */
export function seen(matrix, { cw, ch, x, y, w, h }) {
  return {
    r0: Math.floor(y / ch), r1: Math.min(matrix.rows, Math.ceil((y + h) / ch)) - 1,
    c0: Math.floor(x / cw), c1: Math.min(matrix.cols, Math.ceil((x + w) / cw)) - 1,
  };
}

/**
 * @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {Kind} kind @param {Window} view
 * @param {{mask: ((r: number, c: number) => boolean) | null, hide: boolean}} how
 */
export function paint(canvas, matrix, kind, view, { mask, hide }) {
  const context = fit(canvas, view.w, view.h), { cw, ch, x, y, w, h } = view, { r0, r1, c0, c1 } = seen(matrix, view);
  const whole = matrix.want(r0, r1, c0, c1), line = ink("--line-2"), panel = ink("--panel");
  context.fillStyle = ink("--sunk");
  context.fillRect(0, 0, Math.min(w, matrix.cols * cw - x), Math.min(h, matrix.rows * ch - y));
  context.imageSmoothingEnabled = false;
  if (!hide) {
    for (const tile of matrix.tiles.values()) {
      const rows = tile.data.length / tile.cols;
      if (tile.r <= r1 && tile.r + rows > r0 && tile.c <= c1 && tile.c + tile.cols > c0)
        context.drawImage(picture(matrix, tile, kind), tile.c * cw - x, tile.r * ch - y, tile.cols * cw, rows * ch);
    }
  }
  if (mask) { // what the mask forbids is not a small number, it is no number
    context.strokeStyle = line;
    context.fillStyle = panel;
    context.beginPath();
    for (let r = r0; r <= r1; r++) for (let c = c0; c <= c1; c++) if (mask(r, c)) {
      const left = Math.round(c * cw - x), top = Math.round(r * ch - y);
      context.fillRect(left, top, Math.round((c + 1) * cw - x) - left + 1, Math.round((r + 1) * ch - y) - top + 1);
      if (ch <= 7) continue;
      context.moveTo((c + 0.4) * cw - x, (r + 0.6) * ch - y);
      context.lineTo((c + 0.6) * cw - x, (r + 0.4) * ch - y);
    }
    context.stroke();
  }
  if (cw >= 7 && ch >= 7) { // a hairline between cells
    context.strokeStyle = panel;
    context.lineWidth = 1;
    context.beginPath();
    for (let c = c0; c <= c1 + 1; c++) { context.moveTo(Math.round(c * cw - x) + 0.5, 0); context.lineTo(Math.round(c * cw - x) + 0.5, h); }
    for (let r = r0; r <= r1 + 1; r++) { context.moveTo(0, Math.round(r * ch - y) + 0.5); context.lineTo(w, Math.round(r * ch - y) + 0.5); }
    context.stroke();
  }
  if (cw >= 38 && ch >= 15) {
    context.font = `500 11px ${getComputedStyle(document.body).fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const most = kind === "attention" ? 1 : matrix.most, unit = matrix.unit;
    for (let r = r0; r <= r1; r++) for (let c = c0; c <= c1; c++) {
      const v = matrix.value(r, c);
      if (mask?.(r, c) || v === undefined) continue;
      context.fillStyle = hide ? line : onto(colour(kind, v, most));
      context.fillText(hide ? "·  ·" : brief(v / unit), (c + 0.5) * cw - x, (r + 0.5) * ch - y + 0.5);
    }
  }
  return whole;
}
