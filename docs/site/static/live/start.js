"use strict";
/** Makes a page of lessons answer back; without it the page is whole, and still. */
if (document.querySelector("script.live-data")) {
  const { graphs, sections } = live.build();
  live.graphs = graphs;
  live.sections = sections;
  live.placeBar();
  live.listen();
  live.listenToSteps();
  live.listenToBlanks();
  live.listenToChanges();
  live.listenToSettings();
}
