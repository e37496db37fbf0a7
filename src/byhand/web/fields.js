/** Forms, sliders and the focus, as the chat and the explorer have them. */
import { html } from "./vendor/lit-html.js";

/** What becomes of a form that is sent, by the names of its fields. @param {(given: Record<string, any>) => unknown} act */
export const sent = (act) => (event) => {
  event.preventDefault();
  act(Object.fromEntries(new FormData(event.target)));
};

/** Give something the focus, once it has been drawn. @param {string} selector @param {number} [frames]  until then */
export const focus = (selector, frames = 0) => {
  if (frames) requestAnimationFrame(() => focus(selector, frames - 1));
  else /** @type {HTMLElement | null} */ (document.querySelector(selector))?.focus();
};

/** A button with a sign. @param {string} sign @param {string} said @param {() => unknown} act @param {boolean} [isOff] @param {string} [title] */
export const icon = (sign, said, act, isOff = false, title = said) =>
  html`<button class="button quiet" aria-label=${said} title=${title} ?disabled=${isOff} @click=${act}>${sign}</button>`;

/** The question for the server's key. @param {(name: string) => string} say @param {(key: string) => unknown} use */
export const askKey = (say, use) => html`<form class="notice" role="alert" @submit=${sent(({ key }) => use(key))}><span>${say("key")}</span>
  <input class="box" type="password" name="key" autocomplete="off" required aria-label=${say("keyName")}>
  <button class="button">${say("unlock")}</button></form>`;

/**
 * A setting's slider.
 * @param {string} id @param {string} said @param {number[]} range  least, most, step
 * @param {number} value @param {string} text  what the value is called @param {(x: string) => unknown} set
 */
export const knob = (id, said, [least, most, step], value, text, set) => html`<label for=${id}>${said}</label>
  <input id=${id} type="range" min=${least} max=${most} step=${step} aria-valuetext=${text} .value=${String(value)}
    @input=${(e) => set(e.target.value)}><output for=${id}>${text}</output>`;
