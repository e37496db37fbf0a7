/** Formulas: MathML of the server becomes elements, each text parsed once. Styles are those of the page. */

const parsed = /** @type {Map<string, Element[]>} */ (new Map());

/** @param {string} text  one or more <math> */
function formulas(text) {
  const had = parsed.get(text);
  if (had) return had;
  const found = [...new DOMParser().parseFromString(text.replace(/ style="[^"]*"/g, ""), "text/html").querySelectorAll("math")];
  parsed.set(text, found);
  return found;
}

/** The letters of a formula. @param {string} text */
export const plain = (text) => formulas(text).map((each) => each.textContent ?? "").join(" ");

/** Fill what was drawn with a `data-math`. @param {ParentNode} root */
export function fillFormulas(root) {
  for (const element of /** @type {NodeListOf<HTMLElement & {filled?: string}>} */ (root.querySelectorAll("[data-math]"))) {
    const text = /** @type {string} */ (element.dataset.math);
    if (element.filled === text) continue;
    element.replaceChildren(...formulas(text).map((each) => document.importNode(each, true)));
    element.filled = text;
  }
}
