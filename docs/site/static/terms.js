"use strict";
/** Shows the definition of a term beside it: under the mouse, with the focus, or touched. Escape hides it. */
{
  const tip = document.createElement("div");
  tip.className = "term-tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // readers hear the description of the term itself

  let shown = null;
  const hide = () => (tip.hidden = !(shown = null));
  const show = (term) => {
    shown = term;
    tip.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent;
    tip.hidden = false;
    const [first] = term.getClientRects(); // of a term that breaks, the first line
    const left = Math.min(first.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const above = first.top - tip.offsetHeight - 4;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 0 ? above : first.bottom + 4}px`;
  };
  const term = (event) => event.target.closest?.(".term");
  for (const name of ["mouseover", "focusin", "click"]) {
    document.addEventListener(name, (event) => term(event) && show(term(event)));
  }
  document.addEventListener("mouseout", (event) => term(event) && term(event) !== document.activeElement && hide());
  document.addEventListener("focusout", (event) => term(event) && hide());
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", () => shown && show(shown), { passive: true });
  document.body.append(tip);
}
