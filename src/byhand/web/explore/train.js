/** Train in front of you: a text, a time, go; its losses, a weight's path and why it moved; pause, one step, back. */
import { html, nothing, svg } from "../vendor/lit-html.js";
import { S, now } from "./state.js";
import { begin, end, find, run, tell } from "./training.js";
import { go, page } from "./navigate.js";
import { label, numeric, shown } from "./numbers.js";
import { plot } from "./plot.js";
import { leaveTraining, present } from "./session.js";
import { say } from "./words.js";
import { icon, sent } from "../fields.js";

const BOX = { wide: 300, high: 90, pad: 6 }; // of a curve
const PROMPT = "The ";
let hasAsked = false, wasComplete = false;

/** A curve over the steps. @param {[number, number][]} points @param {string} said @param {[number, number][]} [dots] */
function curve(points, said, dots = []) {
  const real = points.filter(([, y]) => Number.isFinite(y)), last = real.at(-1), value = last ? shown(last[1], 5) : "";
  if (!real.length && !dots.length) return nothing;
  const { X, Y, path } = plot(real, BOX, dots);
  const dot = (/** @type {number[]} */ [x, y], kind = "was", r = 2.5) => svg`<circle class=${kind} cx=${X(x)} cy=${Y(y)} r=${r} />`;
  return html`<figure class="graph"><figcaption class="cap">${said} <b>${value}</b></figcaption>
    <svg viewBox="0 0 ${BOX.wide} ${BOX.high}" role="img" aria-label=${`${said} ${value}`}>
      <path d=${path} />${dots.map((each) => dot(each))}${last ? dot(last, "is", 3.5) : nothing}</svg></figure>`;
}

const submit = sent(({ text, minutes, steps, preset }) =>
  begin(Number(minutes) > 0 ? { text, minutes: Number(minutes) } : { text, steps: Number(steps) || 500, preset }));
/** Fill the text's field from a file. @param {{target: any}} event */
async function pick({ target: { form, files } }) {
  if (files[0]) form.text.value = await files[0].text();
}

const form = () => html`<form class="begins" @submit=${submit}>
  <label class="grow"><span class="cap">${say("trainText")}</span>
    <textarea class="box mono" name="text" rows="3" required minlength="256" placeholder=${say("trainLeast")}></textarea></label>
  <div class="row wrap"><label class="button quiet file-of">${say("trainFile")}<input class="unseen" type="file" accept="text/*,.txt,.md" @change=${pick}></label>
    <label class="row"><span class="cap">${say("trainMinutes")}</span>
      <input class="box short" name="minutes" type="number" min="0" max="600" step="any"></label><span class="cap">${say("trainOr")}</span>
    <label class="row"><span class="cap">${say("trainSteps")}</span>
      <input class="box short" name="steps" type="number" min="1" max="100000" value="500"></label>
    <select class="box" name="preset" aria-label="preset">${["tiny", "nano", "modern"].map((name) => html`<option>${name}</option>`)}</select>
    <button class="button" ?disabled=${run.isBusy}>${say(run.isBusy ? "pending" : "trainGo")}</button></div></form>`;

/** Look at the model as it is now, over the text that is shown. */
function look() {
  const prompt = now.pass.data.prompt || PROMPT, next = now.pass.data.next ?? "";
  present(() => passOf("/pass", { prompt, next }, { prompt, next }));
}
/** Open the last update of the weight that is watched. @param {{name: string, index: number[]}} watched */
function why({ name, index }) {
  present(() => passOf("/why", {}, { prompt: "", next: "" }), { name: `${name}.update`, index });
}
/** A pass of the run, over a text; null if it has none. @param {string} path @param {object} asked @param {object} text */
async function passOf(path, asked, text) {
  const found = await tell(path, asked);
  return found?.id ? { ...found, ...text } : null;
}
async function sample() {
  const found = await tell("/sample", { prompt: now.pass.data.prompt || PROMPT });
  if (found?.text) [run.text] = [found.text];
  page.draw();
}

/** @param {import("./training.js").State} state */
function panel(state) {
  const button = (/** @type {string} */ word, /** @type {() => unknown} */ act, off = false) =>
    html`<button class="button" ?disabled=${off || run.isBusy} @click=${act}>${say(word)}</button>`;
  const { watched, running, complete, step, steps, back } = state, own = watched && label(watched.name, watched.index), at = label(S.at, S.i);
  const along = (/** @type {"loss" | "val_loss" | "grad_norm"} */ key) => run.seen
    .filter((each) => each[key] !== null).map((each) => /** @type {[number, number]} */ ([each.step, numeric(each[key])]));
  return html`<div class="row wrap"><span>${say("trainStep", step, steps)}</span>
      ${running ? button("trainPause", () => tell("/go", { running: false })) : button("trainOn", () => tell("/go", { running: true }), complete)}
      ${button("trainBack", () => tell("/step", { by: -1 }), !back)}${button("trainOne", () => tell("/step", { by: 1 }), complete)}
      ${button("trainLook", look)}${button("trainSample", sample)}
      ${now.pass.isParameter(S.at) && own !== at ? button("trainWatch", () => tell("/watch", { target: at })) : nothing}
      ${watched ? button("trainWhy", () => why(watched), !step) : nothing}<span class="grow"></span>${button("trainEnd", end)}</div>
    <div class="graphs">${curve(along("loss"), say("lossWas"), along("val_loss"))}${curve(along("grad_norm"), say("trainNorm"))}
      ${own ? html`<button class="watched" title=${own} @click=${() => go(own)}>${curve(state.path, own)}</button>` : nothing}</div>
    ${run.text ? html`<pre class="sampled" tabindex="0">${run.text}</pre>` : nothing}${state.failed ? html`<p role="alert">${state.failed}</p>` : nothing}`;
}

export function training() {
  if (!S.panel.train) return nothing;
  if (run.state?.complete && !wasComplete && !now.pass.isTrained) look();
  wasComplete = run.state?.complete ?? false;
  if (!hasAsked) { hasAsked = true; find(); }
  const saved = run.saved && html`<span class="cap">${say("trainSaved", run.saved)}</span><code class="path">byhand explore ${run.saved}</code>`;
  return html`<section class="strip-of train" aria-label=${say("train")}><div class="row"><b class="grow">${say("train")}</b>${saved}
      ${icon("✕", say("close"), toggleTrain)}</div>
    ${run.state ? panel(run.state) : form()}${run.failure ? html`<p role="alert" class="wrong">${run.failure}</p>` : nothing}</section>`;
}

/** Open the panel, or leave it for the model that the address names. */
export function toggleTrain() {
  S.panel.train = !S.panel.train;
  if (!S.panel.train) leaveTraining();
  page.draw();
}
