/** Makes a page of lessons answer back; without it, or if its data is damaged, the page is whole, and still. */
import { listen, placeBar } from "./bar.js";
import { listenToBlanks } from "./blanks.js";
import { change, changeAll, listenToChanges, restore } from "./changes.js";
import { listenToExercises } from "./exercises.js";
import { build, live } from "./grids.js";
import { listenToSettings } from "./settings.js";
import { listenToSteps } from "./steps.js";
import { read } from "../numbers.js";

Object.assign(window, { live: Object.assign(live, { change, changeAll, read, restore }) }); // for a page's own scripts
if (document.querySelector("script.live-data")) {
  try {
    Object.assign(live, build());
    placeBar();
    listen();
    listenToSteps();
    const resumeBlanks = listenToBlanks();
    listenToChanges();
    listenToSettings();
    listenToExercises();
    resumeBlanks();
  } catch (error) {
    document.documentElement.classList.remove("live");
    document.querySelectorAll(".live-lines, .live-bar, .live-setting, .live-try, .live-spot").forEach((made) => made.remove());
    document.querySelectorAll("tr.live-row").forEach((row) => row.removeAttribute("tabindex"));
    live.views.length = 0;
    throw error;
  }
}
