/** The language of the pages, and what a browser remembers of them. */

const TAGS = { en: "en", zh: "zh-CN" };

/** What the browser remembers; nothing in a window that must not. @param {() => Storage} storage @param {string} [own]  before each name */
export const memory = (storage, own = "byhand.") => ({
  /** @param {string} name @returns {string | null} */
  get(name) { try { return storage().getItem(own + name); } catch { return null; } },
  /** @param {string} name @param {string | null} value  null: nothing */
  set(name, value) { try { if (value === null) storage().removeItem(own + name); else storage().setItem(own + name, value); } catch { /* a private window */ } },
});
export const kept = memory(() => localStorage), keptHere = memory(() => sessionStorage); // keptHere: in this tab

/** What a link asks for, such as a teacher's `?lang=zh&theme=dark`: for this page, not to be remembered. @param {string} name */
export const given = (name) => new URLSearchParams(location.search).get(name);
/** Let the address say what was switched to, if it says anything of it. @param {string} name @param {string} value */
export function regive(name, value) {
  if (given(name) === null) return;
  const url = new URL(location.href);
  url.searchParams.set(name, value);
  history.replaceState(null, "", url);
}

const root = document.documentElement, isBilingual = "bilingual" in root.dataset; // a page of the book has its own
const first = isBilingual ? (given("lang") ?? kept.get("language") ?? navigator.language) : root.lang;
/** @type {"en" | "zh"} */
export let language = first.startsWith("zh") ? "zh" : "en";
if (isBilingual) root.lang = TAGS[language];

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
  root.lang = TAGS[language];
  kept.set("language", language);
  regive("lang", language);
}
