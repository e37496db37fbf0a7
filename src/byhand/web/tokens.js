/** Tokens as people read them: bytes become characters, log-probabilities percents and bits. */
import { number, visible } from "./numbers.js";

/**
 * A token as the API gives it; the one that ends an answer has no bytes.
 * @typedef {{token: string, logprob: number, bytes: number[] | null, top_logprobs?: Token[]}} Token
 * One or more tokens that make whole characters; `first` is the number of the first one.
 * @typedef {{text: string, first: number, count: number, ends?: boolean}} Piece
 */

const strict = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const hex = (/** @type {number} */ byte) => `⟨${byte.toString(16).padStart(2, "0")}⟩`;
const lengthOf = (/** @type {number} */ byte) => (byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4);

/** @param {number[]} bytes @returns {string | null} their text, null if they are not whole UTF-8 */
function decoded(bytes) {
  try { return strict().decode(Uint8Array.from(bytes)); } catch { return null; }
}

const bytesOf = (/** @type {Token[]} */ tokens) => tokens.flatMap((token) => token.bytes ?? []);

/** Whether more bytes can still make these whole. @param {number[]} bytes */
function isOpen(bytes) {
  try { strict().decode(Uint8Array.from(bytes), { stream: true }); return true; } catch { return false; }
}

/** The text of bytes; one that belongs to no whole character is ⟨e4⟩. @param {number[]} bytes */
function spelled(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const one = decoded(bytes.slice(at, at + lengthOf(bytes[at])));
    text += one ?? hex(bytes[at]);
    at += one === null ? 1 : lengthOf(bytes[at]);
  }
  return text;
}

/** What a token is called: its text, with white space that can be seen. @param {Token} token */
export function named(token) {
  return visible(token.bytes?.length ? spelled(token.bytes) : token.token);
}

/** An answer that grows, cut into pieces of whole characters. */
export class Pieces {
  list = /** @type {Piece[]} */ ([]);
  /** @type {Token[]} those of a character whose last byte has not come */
  #open = [];
  #given = 0;
  #length = 0;

  /** @param {Token} token @param {string} text  the answer's own, which may lack the space that it begins with */
  add(token, text) {
    if (token.bytes?.length === 0) {
      this.#giveAll();
      this.list.push({ text: "", first: this.#given++, count: 1, ends: true });
      return;
    }
    this.#open.push(token);
    while (this.#open.length && !isOpen(bytesOf(this.#open))) this.#give(1);
    const whole = decoded(bytesOf(this.#open));
    if (this.#open.length && whole !== null) this.#give(this.#open.length, text.startsWith(whole) ? whole : whole.trimStart());
  }

  /** Nothing follows. @param {string} text  the answer's own, which may lack the end of the last token */
  end(text) {
    this.#giveAll();
    for (const piece of this.list.toReversed()) {
      const excess = Math.min(this.#length - text.length, piece.text.length);
      if (excess <= 0) return;
      piece.text = piece.text.slice(0, -excess);
      this.#length -= excess;
    }
  }

  #giveAll() {
    while (this.#open.length) this.#give(1);
  }

  /** @param {number} count  of open tokens @param {string} [whole]  of the first piece, its text */
  #give(count, whole) {
    const bytes = bytesOf(this.#open.splice(0, count));
    const text = (this.#length ? decoded(bytes) : whole) ?? spelled(bytes);
    this.list.push({ text, first: this.#given, count });
    this.#given += count;
    this.#length += decoded(bytes) === null ? new TextDecoder().decode(Uint8Array.from(bytes)).length : text.length;
  }
}

/** @param {number} logprob */
export const bits = (logprob) => Math.max(0, -logprob / Math.LN2);

/** A probability: 56.0%, 5.2%, 0.75%. @param {number} logprob */
export function percent(logprob) {
  const p = 100 * Math.exp(logprob);
  return `${p >= 1 ? p.toFixed(1) : number(p, 2)}%`;
}
