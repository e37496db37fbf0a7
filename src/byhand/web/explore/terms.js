/** The arithmetic of a number: a tree of terms, in which every number of an array is a door. */
import { html, nothing } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { go } from "./navigate.js";
import { label, numeric, short, shown } from "./numbers.js";
import { light } from "./hover.js";
import { say } from "./words.js";

/**
 * A term as the server sends it, and as it is drawn; `again` is set if it was written before.
 * @typedef {{label: string, value: number | string, op?: string, parts?: Term[], source?: any, rest?: {count: number, value?: number | string}, id?: number, ref?: number}} Term
 * @typedef {{v: number, label: string, op: string, parts: Node[], source: any, more: number, rest: number | undefined, again: boolean}} Node
 */

const LONG = 4; // terms that stand in one line
/** @type {Record<string, string>} */
const WORDS = { exp: "exp", log: "ln", sqrt: "√", tanh: "tanh" };

/** A tree in which shared parts are known, long sums ordered, and sums of one left out. @param {Term} term @returns {Node} */
export function tree(term) {
  const { op = "", parts = [], rest } = term;
  const nodes = parts.map(tree), isLong = (op === "sum" || op === "max") && nodes.length > LONG && !rest;
  if (isLong) nodes.sort((a, b) => (op === "sum" ? Math.abs(b.v) - Math.abs(a.v) : b.v - a.v));
  if (op === "sum" && nodes.length === 1 && !rest) return nodes[0];
  return { v: numeric(term.value), label: term.label, op: nodes.length ? op : "", parts: nodes, source: term.source, more: rest?.count ?? 0, rest: rest?.value === undefined ? undefined : numeric(rest.value), again: term.ref !== undefined };
}

const countOf = (/** @type {Node} */ node) => node.parts.length + node.more;
export const isLong = (/** @type {Node | undefined} */ node) => Boolean(node) && ["sum", "max"].includes(node?.op ?? "") && countOf(/** @type {Node} */ (node)) > LONG;
/** The long sum that is written below: the outermost one, before a maximum. @param {Node} root @returns {Node | null} */
export function longest(root) {
  const level = [root];
  for (const node of level) if (!isLong(node) || node.op === "max") level.push(...node.parts);
  const found = level.filter(isLong);
  return found.find(({ op }) => op === "sum") ?? found[0] ?? null;
}

const blank = () => html`<span class="blank" role="img" aria-label=${say("covered")}></span>`;
/** @param {number} v @param {number} digits */
export const covered = (v, digits) => (S.cover ? blank() : shown(v, digits));
const sub = (/** @type {string} */ text) => (text ? html`<sub>${text}</sub>` : nothing);

/** @param {Node} node */
function door({ v, label: said, source }) {
  const there = { name: source.name, index: source.index, back: Boolean(source.gradient) }, letter = said.split("[")[0] || (there.back ? "∂" : "");
  const name = `${letter}${there.index.length ? `[${short(there.index)}]` : ""}`, target = label(there.name, there.index, there.back);
  if (!now.pass.has(there.name)) return html`<span class="const" title=${target}>${shown(v, 5)}${sub(name)}</span>`;
  return html`<button class="door ${there.back ? "g" : ""} ${v < 0 ? "m" : ""}" title=${target} data-target=${target} @click=${() => go(there, true)}
    @mouseenter=${() => light(there)} @mouseleave=${() => light(null)} @focus=${() => light(there)} @blur=${() => light(null)}>${shown(v, 5)}${sub(name)}</button>`;
}

/** @param {Node} node @param {string} path @param {string} outer @param {Node | null} below  the sum that is written below @returns {unknown} */
export function expression(node, path = "0", outer = "", below = null) {
  const { v, op, parts, source } = node;
  if (source?.name) return door(node);
  if (!op) {
    const said = node.again ? node.label || say("asAbove") : node.label, kept = source?.saved_by ? say("kept", `${source.saved_by}[${source.index}]`) : said;
    return html`<span class="const" title=${kept}>${shown(v, 5)}${sub(said.replace(/\[.*/, ""))}</span>`;
  }
  const inner = (/** @type {Node} */ each, /** @type {number | string} */ k, /** @type {string} */ around) => expression(each, `${path}.${k}`, around, below);
  const paren = (/** @type {unknown} */ text, /** @type {boolean} */ isDue) => (isDue ? html`<span class="fn">(${text})</span>` : text);
  if (isLong(node)) {
    const sign = op === "sum" ? "Σ" : "max", head = html`${say("of", sign, countOf(node))} <span class="faint">=</span> ${covered(v, 5)}${sub(node.label)}`;
    if (node === below) return html`<span class="bigsum" title=${say("below")}>${head}</span>`;
    return html`<details class="bigsum" ?open=${S.opened[path] ?? false} @toggle=${(e) => (S.opened[path] = e.target.open)}>
      <summary title=${say("open", countOf(node))}>${head} ▾</summary>${sumOf(node, path)}</details>`;
  }
  if (op === "sum") return paren(html`<span class="fn">${parts.map((each, k) => {
    const isMinus = each.op === "negative" || (!each.op && !each.source && each.v < 0);
    const term = !isMinus ? inner(each, k, "sum") : each.op ? inner(each.parts[0], `${k}.0`, "product") : expression({ ...each, v: -each.v }, `${path}.${k}`, "sum", below);
    return html`${k || isMinus ? html`<span class="op">${isMinus ? "−" : "+"}</span>` : nothing}${term}`;
  })}</span>`, outer !== "" && outer !== "fn" && outer !== "sum");
  if (op === "product") return html`<span class="fn">${parts.map((each, k) => html`${k ? html`<span class="op">×</span>` : nothing}${inner(each, k, "product")}`)}</span>`;
  if (op === "ratio") return html`<span class="frac"><span>${inner(parts[0], 0, "fn")}</span><span>${inner(parts[1], 1, "fn")}</span></span>`;
  if (op === "square") return html`<span class="fn">(${inner(parts[0], 0, "fn")})²</span>`;
  if (op === "negative") return paren(html`<span class="fn">−${inner(parts[0], 0, "product")}</span>`, outer === "product");
  return html`<span class="fn">${WORDS[op] ?? op}(${parts.map((each, k) => html`${k ? ", " : ""}${inner(each, k, "fn")}`)})</span>`;
}

/** A bar from the middle to the side of its sign. @param {number} v @param {number} most  the longest */
export function bar2(v, most) {
  const wide = S.cover || !Number.isFinite(v) ? 0 : Math.min(50, (50 * Math.abs(v)) / most);
  return html`<span class="bar2"><i class=${v < 0 ? "m" : ""} .style=${`left:${v < 0 ? 50 - wide : 50}%;width:${wide}%`}></i></span>`;
}

/** A long sum as a list, largest first. @param {Node} node @param {string} path @param {(() => void) | null} [more]  show more of them */
export function sumOf(node, path, more = null) {
  const sizes = node.parts.map((each) => Math.abs(each.v)).filter(Number.isFinite), most = Math.max(...sizes, 0) || 1;
  const bar = (/** @type {number} */ v) => html`<td class="b">${bar2(v, most)}</td>`;
  const sign = (/** @type {number} */ v) => (v < 0 ? "down" : "up"), isSum = node.op === "sum";
  return html`<table class="sum"><tbody>${node.parts.map((each, k) => html`<tr><td>${expression(each, `${path}.${k}`, "fn")}</td>
      <td class="v ${sign(each.v)}">${each.source?.name ? "" : covered(each.v, 4)}</td>${isSum ? bar(each.v) : nothing}</tr>`)}
    ${node.more ? html`<tr class="rest"><td>${say(isSum ? "smaller" : "largestOf", node.more)}${more ? html` <button class="button quiet more" @click=${more}>${say("more")}</button>` : nothing}</td>
      <td class="v">${node.rest === undefined ? "" : covered(node.rest, 4)}</td>${isSum ? bar(node.rest ?? 0) : nothing}</tr>` : nothing}
    ${isSum ? html`<tr class="tot"><td>${say("together")}</td><td class="v ${sign(node.v)}">${covered(node.v, 6)}</td><td></td></tr>` : nothing}</tbody></table>`;
}
