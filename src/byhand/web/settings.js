/** How answers are drawn: the settings, their panel, and the same as a command. */
import { html, nothing } from "./vendor/lit-html.js";
import { knob } from "./fields.js";
import { kept } from "./language.js";
import { say } from "./words.js";

const USUAL = { temperature: 0.8, top_k: 0, top_p: 1, min_p: 0 }; // those of `byhand chat`
const EVERY = 101; // the slider's end, which cuts nothing
const UNCUT = 1_000_000; // more than any vocabulary has

/** @type {Record<string, number>} */
let suggested = { ...USUAL };
let context = 1024;
/** @type {Record<string, number>} */
const values = { ...USUAL, max_tokens: 300, seed: 1 };
export const settings = { system: "", shaded: kept.get("shaded") !== "no", values };

/** Begin with what the model's makers suggest. @param {import("./api.js").Model} model */
export function suggest(model) {
  const { temperature, top_k, top_p, min_p } = { ...USUAL, ...model.sampling };
  suggested = { temperature, top_k, top_p, min_p };
  context = model.max_model_len;
  Object.assign(values, suggested);
}

/** The settings of an answer. The numbers that drew others would draw much of them again, as `byhand chat` has it. @param {number} before */
export const asked = (before) => ({ ...values, seed: values.seed + before });

const quoted = (/** @type {string} */ word) => (/^[\w.\/-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** @param {string} chat  the command for a chat with the model */
function command(chat) {
  const flags = Object.keys(suggested).filter((key) => values[key] !== suggested[key]);
  const words = flags.map((key) => `--${key.replace("_", "-")} ${key === "top_k" ? values[key] || UNCUT : values[key]}`);
  if (values.max_tokens !== 300) words.push(`--max-new-tokens ${values.max_tokens}`);
  if (values.seed !== 1) words.push(`--seed ${values.seed}`);
  if (settings.system) words.push(`--system ${quoted(settings.system)}`);
  return [chat, ...words].join(" \\\n  ");
}

/** A button that copies a text, where browsers let a page: on this machine, or by HTTPS. @param {() => string} text */
export const copying = (text) =>
  navigator.clipboard ? html`<button class="button quiet" @click=${() => navigator.clipboard.writeText(text())}>${say("copy")}</button>` : nothing;

/** @param {string} chat  the command for a chat with the model @param {() => void} changed @param {() => void} close */
export function panel(chat, changed, close) {
  const set = (/** @type {string} */ key, /** @type {string} */ text) => {
    const value = Number(text);
    if (text === "" || !Number.isFinite(value)) return;
    values[key] = key === "top_k" && value >= EVERY ? 0 : value;
    changed();
  };
  const slider = (/** @type {string} */ key, /** @type {number[]} */ ...range) => {
    const isAll = key === "top_k" && !values[key];
    return knob(key, say(key), range, isAll ? EVERY : values[key], isAll ? say("all") : String(values[key]), (text) => set(key, text));
  };
  const box = (/** @type {string} */ key, /** @type {number} */ least, /** @type {number} */ most) => html`<label for=${key}>${say(key)}</label>
    <input id=${key} class="box" type="number" min=${least} max=${most} step="1" .value=${String(values[key])}
      @input=${(e) => e.target.validity.valid && set(key, e.target.value)} @change=${(e) => (e.target.value = values[key])}>`;
  return html`<aside class="settings" aria-label=${say("settings")}>
    <div class="row"><h2 class="grow">${say("settings")}</h2><button class="button quiet" aria-label=${say("close")} @click=${close}>✕</button></div>
    <div class="knobs">
      ${slider("temperature", 0, 2, 0.05)}${slider("top_k", 1, EVERY, 1)}${slider("top_p", 0.05, 1, 0.05)}${slider("min_p", 0, 0.5, 0.01)}
      ${box("max_tokens", 1, context)}${box("seed", 0, 2 ** 52)}
    </div>
    <label>${say("system")}<textarea rows="3" .value=${settings.system} @input=${(e) => { settings.system = e.target.value; changed(); }}></textarea></label>
    <label class="row"><input type="checkbox" .checked=${settings.shaded}
      @change=${(e) => { settings.shaded = e.target.checked; kept.set("shaded", settings.shaded ? "yes" : "no"); changed(); }}>${say("shade")}</label>
    <div><div class="row"><span class="grow small">${say("same")}</span>
      ${copying(() => command(chat))}</div>
      <pre tabindex="0">${command(chat)}</pre></div>
  </aside>`;
}
