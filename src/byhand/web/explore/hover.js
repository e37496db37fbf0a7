/** What is pointed at: a cell of a matrix. Never in the address, never a new rendering: only upper canvases are painted. */
import { shown } from "./numbers.js";
import { S, now } from "./state.js";
import { plain } from "./mathml.js";
import { say } from "./words.js";

/** @typedef {import("./view.js").Mat} Mat @typedef {{key: string, r: number, c: number}} Cell */

/** @type {{cell: Cell | null, mats: Mat[], paint: () => void}} */
export const over = { cell: null, mats: [], paint: () => {} };

/** The token of a row of a matrix along the text, or of a column of attention. @param {number} t */
const byte = (t) => ` ‹${now.pass.text(now.pass.tokens[t])}›`;
export const hasText = (/** @type {Mat} */ m) => m.rows === now.pass.tokens.length && now.pass.isAlongText(m.name);

/** @param {Mat} m @param {Cell} cell */
function said(m, { r, c }) {
  if (m.mask?.(r, c)) return say("masked", now.pass.text(now.pass.tokens[c]), now.pass.text(now.pass.tokens[r]));
  const value = m.matrix.value(r, c), isHidden = S.cover && m.slot === "out";
  const column = m.mask ? byte(c) : m.cols === now.pass.model.vocab && now.pass.data.texts[c] ? ` ‹${now.pass.text(c)}›` : "";
  const at = m.isVector ? `${c}${column}` : `${r}${hasText(m) ? byte(r) : ""}, ${c}${column}`;
  return `${plain(m.symbol)}[${at}] = ${isHidden ? say("covered") : value === undefined ? say("pending") : shown(value, 3)}`;
}

/** @param {Cell | import("./numbers.js").There | null} there */
export function light(there) {
  if (!there) over.cell = null;
  else if ("key" in there) over.cell = there;
  else {
    const { name, back, index } = there;
    const m = over.mats.find((each) => each.name === name && each.back === back && now.data.headOf(name, index) === each.head);
    over.cell = m ? { key: m.key, r: index.length > 1 ? /** @type {number} */ (index.at(-2)) : 0, c: index.at(-1) ?? 0 } : null;
  }
  const m = over.mats.find(({ key }) => key === over.cell?.key), read = document.querySelector("#read");
  if (read) read.textContent = m && over.cell ? said(m, over.cell) : say("read");
  over.paint();
}
