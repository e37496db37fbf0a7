/** Dark or light: as the system has it, or as it was switched to. */
import { kept } from "./language.js";

const root = document.documentElement;

export const isDark = () =>
  getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

const theme = (/** @type {string | null} */ found) => found && (root.dataset.theme = found);

export const switchTheme = () => kept.set("theme", theme(isDark() ? "light" : "dark") ?? "");

theme(kept.get("theme"));
