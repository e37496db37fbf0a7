/** The language of the pages, and what a browser remembers of them. */

const TAGS = { en: "en", zh: "zh-CN" };

/** What the browser remembers; nothing in a window that must not. @param {() => Storage} storage */
const memory = (storage) => ({
  /** @param {string} name @returns {string | null} */
  get(name) { try { return storage().getItem(`byhand.${name}`); } catch { return null; } },
  /** @param {string} name @param {string} value */
  set(name, value) { try { storage().setItem(`byhand.${name}`, value); } catch { /* a private window */ } },
});
export const kept = memory(() => localStorage), keptHere = memory(() => sessionStorage); // keptHere: in this tab

const first = kept.get("language") ?? navigator.language;
/** @type {"en" | "zh"} */
export let language = first.startsWith("zh") ? "zh" : "en";
document.documentElement.lang = TAGS[language];

/**
 * What looks up a page's words.
 * @param {Record<"en" | "zh", Record<string, any>>} words
 * @returns {(name: string, ...values: (string | number)[]) => any}
 */
export const speaking = (words) => (name, ...values) => {
  const found = words[language][name];
  return typeof found === "function" ? found(...values) : found;
};

export function switchLanguage() {
  language = language === "en" ? "zh" : "en";
  document.documentElement.lang = TAGS[language];
  kept.set("language", language);
}
