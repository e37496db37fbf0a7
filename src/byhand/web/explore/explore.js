/** The explorer: one screen with one chosen number, and everything else an answer to a question about it. */
import { html, nothing, render } from "../vendor/lit-html.js";
import { S, here, now, opened, readPlace, readQuestion } from "./state.js";
import { bar, keys, showKeys, trouble, ways } from "./bar.js";
import { backTo, change, flip, layer, page, step, toHead, toPosition } from "./navigate.js";
import { changed } from "./change.js";
import { comparing } from "./compare.js";
import { edit, text } from "./text.js";
import { focus } from "../fields.js";
import { enter, paintAll } from "./matrices.js";
import { equation } from "./equation.js";
import { fillFormulas } from "./mathml.js";
import { light, over } from "./hover.js";
import { load, renew, session } from "./session.js";
import { map, thumbnails } from "./map.js";
import { side } from "./side.js";
import { arrive, findTour, toStop, toggleTour, tour, writing } from "./tour.js";
import { isNarrow } from "./screen.js";
import { switchTheme } from "../theme.js";
import { training } from "./train.js";
import { view } from "./view.js";
import { say } from "./words.js";

const app = /** @type {HTMLElement} */ (document.querySelector("#app"));
const PATIENCE = 80; // milliseconds that what was shown stays, so that a number and its arithmetic come together
let isDue = false, isAsking = false, was = "";

/** Draw before the next frame, whatever has changed by then. @param {boolean} [isMoved]  to another number */
page.draw = (isMoved = false) => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(async () => {
    if (isMoved && now.pass) await Promise.race([fetched(), new Promise((done) => setTimeout(done, PATIENCE))]);
    isDue = false;
    draw();
  });
};

/** Until what another number needs has come. */
function fetched() {
  const { data, pass } = now, of = `${pass.id}/`;
  opened();
  for (const m of view().mats) if (m.rows * m.cols <= 1 << 17) m.matrix.want(0, m.rows - 1, 0, m.cols - 1);
  return session.fetched.settled((key) => key.startsWith(of) && /\/answer\?|\/\d+,\d+$/.test(key));
}

function screen() {
  if (!now.pass) return html`${bar()}<main class="empty">${trouble()}</main>`;
  const shown = view(), only = isNarrow() ? S.tab : "eq", top = html`<h1 class="unseen">${here()}</h1>`, tabs = [["map", "tabMap"], ["eq", "tabEquation"], ["next", "tabNext"], ["code", "tabCode"]];
  return html`<div class="app" data-tab=${S.tab} aria-busy=${session.isLoading}>${bar()}
    <div class="map" role=${only === "map" ? "main" : "navigation"} aria-label=${say("model")} @scroll=${thumbnails}>${only === "map" ? html`${top}<div class="row wrap ways">${ways()}</div>` : nothing}${map()}</div>
    <section class="text" aria-label=${say("text")}>${text()}</section>
    <main class="eq" id="eq">${trouble()}${writing()}${training()}${changed()}${comparing()}${equation(shown)}</main>
    <div class="side" role=${only === "next" || only === "code" ? "main" : "complementary"}>${only === "next" || only === "code" ? top : nothing}${side(shown)}</div>
    <nav class="tabs">${tabs.map(([tab, word]) => html`<button aria-pressed=${S.tab === tab} @click=${() => change({ tab })}>${say(word)}</button>`)}</nav></div>${tour()}`;
}

function draw() {
  renew();
  document.documentElement.toggleAttribute("data-back", S.back);
  const had = document.activeElement;
  render(html`${screen()}${keys()}<div class="unseen" aria-live="polite">${now.pass ? heard() : nothing}</div>`, app);
  if (!now.pass) return;
  session.fetched.drawn();
  fillFormulas(app);
  const at = `${now.pass.id} ${here()}`;
  if (at !== was) {
    over.cell = null;
    app.querySelector(".map [aria-current=true]")?.scrollIntoView({ block: "nearest" });
  }
  was = at;
  light(over.cell);
  paintAll();
  thumbnails();
  askTexts();
  const cell = app.querySelector(".cell"), eq = app.querySelector("#eq");
  if (page.steady !== null && cell && eq) {
    eq.scrollTop += cell.getBoundingClientRect().top - page.steady;
    if (!(had instanceof HTMLInputElement)) /** @type {HTMLElement | null} */ (cell.querySelector(".name"))?.focus({ preventScroll: true });
    page.steady = null;
  } else if (had instanceof HTMLElement && had !== document.body && !had.isConnected) /** @type {HTMLElement | null} */ (cell?.querySelector(".name"))?.focus({ preventScroll: true });
  const chip = /** @type {HTMLElement | null} */ (app.querySelector(".chips [aria-pressed=true]")), band = /** @type {HTMLElement | null} */ (app.querySelector(".text"));
  if (chip && band && band.scrollWidth > band.clientWidth && band.dataset.t !== `${S.t} ${now.pass.id}`) band.scrollLeft = chip.offsetLeft - band.clientWidth * 0.7;
  if (band) band.dataset.t = `${S.t} ${now.pass.id}`;
  document.title = `${here()} · byhand`;
}

/** The chosen number, for those who hear it. */
function heard() {
  const value = opened()?.value;
  return value === undefined || S.cover ? here() : `${here()} = ${Number(value).toPrecision(4)}`;
}

/** Ask for the texts of tokens that were shown without them. */
async function askTexts() {
  const { pass } = now, ids = [...pass.unknown].slice(0, 4096);
  if (!ids.length || isAsking) return;
  isAsking = true;
  const texts = await session.server.texts(pass.id, ids).catch(() => ({}));
  isAsking = false;
  for (const id of ids) pass.unknown.delete(id);
  if (!Object.keys(texts).length) return;
  Object.assign(pass.data.texts, texts);
  page.draw();
}

/** @type {Record<string, (event: KeyboardEvent) => unknown>} */
const KEYS = {
  ArrowRight: ({ shiftKey }) => (shiftKey ? layer(1) : step(1)), ArrowLeft: ({ shiftKey }) => (shiftKey ? layer(-1) : step(-1)),
  ArrowUp: () => toPosition(S.t - 1), ArrowDown: () => toPosition(S.t + 1), " ": () => flip(), Enter: enter, b: () => backTo(),
  c: () => change({ cover: !S.cover, tried: "" }), l: () => change({ lens: !S.lens }), m: () => change({ metric: S.metric === "size" ? "share" : "size" }),
  z: () => { const key = `${S.back ? "d " : ""}${S.at}`; change({ zoom: S.zoom === key ? "" : key }); },
  t: toggleTour, n: () => S.tour && toStop(S.tour + 1), e: edit, "/": () => focus("#find"),
  "?": showKeys, d: () => { switchTheme(); page.draw(); },
  Escape: () => (S.tour ? toStop(0) : S.zoom ? change({ zoom: "" }) : S.trail.length && backTo()),
};
addEventListener("keydown", (event) => {
  const at = /** @type {Element} */ (event.target);
  if (!now.pass || event.ctrlKey || event.metaKey || event.altKey || at.matches?.("input:not([type=range]), textarea, select, dialog, dialog *")) return;
  const isRange = at.matches?.("input[type=range]") && event.key.startsWith("Arrow"), isControl = at.matches?.("button, summary") && [" ", "Enter"].includes(event.key);
  const isScrolled = at.matches?.(".code") && ["ArrowUp", "ArrowDown", " "].includes(event.key);
  if (isRange || isControl || isScrolled) return;
  const act = /^[1-9]$/.test(event.key) ? () => toHead(Number(event.key) - 1) : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
});
addEventListener("mouseover", (event) => { // a symbol in a formula lights its matrix
  const said = /** @type {Element} */ (event.target).closest?.(".half mi")?.textContent, mats = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".mat"))];
  const has = (/** @type {HTMLElement} */ m) => m.querySelector(".sym")?.textContent?.replace("∂", "") === said, isAny = said && mats.some(has);
  for (const m of mats) m.classList.toggle("dimmed", Boolean(isAny && !has(m)));
});
const moved = () => { readQuestion(); load(() => { readPlace(); if (S.tour) findTour(); page.draw(true); }); };
addEventListener("popstate", moved);
addEventListener("hashchange", moved);
addEventListener("resize", () => page.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.draw());
readQuestion();
draw();
load(() => { readPlace(); arrive(); });
document.fonts.ready.then(() => page.draw());
