"use strict";
/** Makes a page of lessons answer back; without it, or if its data is damaged, the page is whole, and still. */
if (document.querySelector("script.live-data")) {
  try {
    const { graphs, sections } = live.build();
    live.graphs = graphs;
    live.sections = sections;
    live.placeBar();
    live.listen();
    live.listenToSteps();
    live.listenToBlanks();
    live.listenToChanges();
    live.listenToSettings();
    live.resumeBlanks();
  } catch (error) {
    document.documentElement.classList.remove("live");
    document.querySelectorAll(".live-lines, .live-bar, .live-setting, .live-spot").forEach((made) => made.remove());
    document.querySelectorAll("tr.live-row").forEach((row) => row.removeAttribute("tabindex"));
    live.views.length = 0;
    throw error;
  }
}
