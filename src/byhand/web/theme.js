/** Dark or light: as the system has it, or as it was switched to. */
import { given, kept, regive } from "./language.js";

const root = document.documentElement;

export const isDark = () =>
  getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

const theme = (/** @type {string | null} */ found) => found && (root.dataset.theme = found);

export function switchTheme() {
  const to = isDark() ? "light" : "dark";
  theme(to);
  kept.set("theme", to);
  regive("theme", to);
}

const asked = given("theme");
theme(asked === "dark" || asked === "light" ? asked : kept.get("theme"));
