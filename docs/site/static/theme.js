"use strict";
/** Dark or light on the first page, as the system has it or as it was chosen; the book's pages keep the same choice. */
{
  const root = document.documentElement;
  const kept = (...value) => {
    try {
      return value.length ? localStorage.setItem("theme", value[0]) : localStorage.getItem("theme");
    } catch {
      return null; // a window that must not remember
    }
  };
  const first = kept();
  if (first === "dark" || first === "light") root.dataset.theme = first;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("button.theme")) return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    kept((root.dataset.theme = dark ? "light" : "dark"));
  });
}
