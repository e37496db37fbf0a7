/** The conversation: questions, the versions of each answer, and the one that is being written. */
import { answer, failureOf, model } from "./api.js";
import { asked, settings, suggest } from "./settings.js";
import { Pieces } from "./tokens.js";
import { keptHere } from "./language.js";

/**
 * A version of an answer.
 * @typedef {{
 *   text: string, tokens: import("./tokens.js").Token[], pieces: Pieces, began: number, seconds: number,
 *   finish: string, used: number, by: string, reloaded: boolean, failure: import("./api.js").Failure | null,
 * }} Version
 * @typedef {{question: string, versions: Version[], shown: number}} Turn
 */

export class Talk {
  turns = /** @type {Turn[]} */ ([]);
  live = /** @type {{turn: Turn, version: Version, stop: AbortController} | null} */ (null);
  /** @type {Version | null} the one that was begun last */
  latest = null;
  model = /** @type {import("./api.js").Model | null} */ (null);
  /** @type {import("./api.js").Failure | null} of the page itself */
  failure = null;
  key = keptHere.get("key") ?? "";
  /** how many of the oldest turns the model no longer reads */
  #forgotten = 0;
  #checkpoint = "";

  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
  }

  /** Ask which model it is. */
  async meet() {
    const { key } = this;
    try {
      const found = await model(key);
      if (found.id !== this.model?.id) suggest(found);
      if (!this.#checkpoint) this.#checkpoint = found.version;
      [this.model, this.failure] = [found, null];
    } catch (found) {
      if (key === this.key) this.failure = failureOf(found); // another key may have been given by then
    }
    this.changed();
  }

  /** @param {string} key */
  async unlock(key) {
    this.key = key;
    keptHere.set("key", key);
    await this.meet();
    const turn = this.turns.at(-1);
    if (!this.failure && turn?.versions[turn.shown].failure) this.write(turn);
  }

  /** @param {string} question */
  ask(question) {
    this.turns.push({ question, versions: [], shown: 0 });
    return this.write(/** @type {Turn} */ (this.turns.at(-1)));
  }

  /** Forget the older half of what the model reads before a turn, and ask again. @param {Turn} turn */
  forget(turn) {
    this.#forgotten += Math.ceil((this.turns.indexOf(turn) - this.#forgotten) / 2);
    return this.write(turn);
  }

  /** Whether nothing is left to forget. @param {Turn} turn */
  isAlone(turn) { return this.turns.indexOf(turn) <= this.#forgotten; }

  /** Begin anew. */
  clear() {
    this.live?.stop.abort();
    [this.turns, this.#forgotten, this.latest] = [[], 0, null];
    this.changed();
  }

  /** Take back a question. @param {Turn} turn @returns {string} */
  take(turn) {
    this.turns = this.turns.filter((each) => each !== turn);
    this.changed();
    return turn.question;
  }

  /** Write a version of an answer; one without a token gives way to it. @param {Turn} turn */
  async write(turn) {
    if (this.live) return;
    turn.versions = turn.versions.filter((each) => each.tokens.length || !each.failure);
    /** @type {Version} */
    const version = {
      text: "", tokens: [], pieces: new Pieces(), began: performance.now(), seconds: 0,
      finish: "", used: 0, by: "", reloaded: false, failure: null,
    };
    turn.shown = turn.versions.push(version) - 1;
    const stop = new AbortController(), before = this.turns.indexOf(turn) + turn.shown;
    this.live = { turn, version, stop };
    this.latest = version;
    this.changed();
    try {
      for await (const part of answer({ messages: this.#messages(turn), ...asked(before) }, this.key, stop.signal)) this.#take(version, part);
    } catch (found) {
      if (stop.signal.aborted) version.finish = "stopped";
      else version.failure = failureOf(found);
    }
    version.seconds = (performance.now() - version.began) / 1000;
    version.pieces.end(version.text);
    if (this.live?.version === version) this.live = null;
    this.changed();
  }

  /** @param {Version} version @param {import("./api.js").Part} part */
  #take(version, part) {
    version.text += part.text;
    for (const token of part.tokens) {
      version.tokens.push(token);
      version.pieces.add(token, version.text);
    }
    version.finish = part.finish ?? version.finish;
    version.used = part.used ?? version.used;
    version.by = part.version;
    version.reloaded ||= this.#checkpoint !== "" && part.version !== this.#checkpoint;
    this.#checkpoint = part.version;
    this.changed();
  }

  /** What the model reads before a turn's answer. @param {Turn} turn */
  #messages(turn) {
    const read = this.turns.slice(this.#forgotten, this.turns.indexOf(turn));
    const answered = read.map((each) => ({ question: each.question, text: each.versions[each.shown].text })).filter((each) => each.text);
    return [
      ...(settings.system ? [{ role: "system", content: settings.system }] : []),
      ...answered.flatMap(({ question, text }) => [{ role: "user", content: question }, { role: "assistant", content: text }]),
      { role: "user", content: turn.question },
    ];
  }
}
