/** What went wrong, in one line, with a button that goes on from there. */
import { askKey } from "./fields.js";
import { html } from "./vendor/lit-html.js";
import { say } from "./words.js";

/** @typedef {import("./talk.js").Turn} Turn */

/**
 * @param {import("./api.js").Failure} failure
 * @param {import("./talk.js").Talk} talk
 * @param {Turn | null} turn  whose answer failed; null: the server was asked which model it has
 * @param {(question: string) => void} edit  put a question back
 */
export function notice(failure, talk, turn, edit) {
  if (failure.kind === "key") return askKey(say, (key) => talk.unlock(key));
  let said = say(failure.kind, failure.message), does = say("retry");
  /** @type {() => unknown} */
  let act = () => (turn ? talk.write(turn) : talk.meet());
  if (failure.kind === "full" && turn) {
    const isAlone = talk.isAlone(turn);
    if (isAlone) said = say("long");
    does = say(isAlone ? "edit" : "forget");
    act = () => (isAlone ? edit(talk.take(turn)) : talk.forget(turn));
  }
  const wait = failure.until - performance.now();
  if (wait > 0) setTimeout(talk.changed, wait);
  return html`<p class="notice" role="alert"><span>${said}</span><button class="button" ?disabled=${wait > 0} @click=${act}>${does}</button></p>`;
}
