/** Dark or light: as the system has it, or as it was switched to. */
import { given, memory, regive } from "./language.js";

const { documentElement } = document, chosen = memory(() => localStorage, ""); // as the book's pages keep it

export const isDark = () =>
  getComputedStyle(documentElement).colorScheme === "dark" || (!documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

const theme = (/** @type {string | null} */ found) => found && (documentElement.dataset.theme = found);

export function switchTheme() {
  const to = isDark() ? "light" : "dark";
  theme(to);
  chosen.set("theme", to);
  regive("theme", to);
}

const asked = given("theme");
theme([asked, chosen.get("theme")].find((each) => each === "dark" || each === "light") ?? null);
