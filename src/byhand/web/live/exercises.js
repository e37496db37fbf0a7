/** Exercises: the button below a command sets the numbers that the command sets, says what became of the loss, and sets them back. */
import { changeAll, changedCells, outcome, restore } from "./changes.js";
import { live, make } from "./grids.js";
import { say } from "./words.js";

export const listenToExercises = () => {
  for (const place of /** @type {any} */ (document.querySelectorAll(".live-try"))) {
    const own = live.graphs.find(({ name }) => name === place.dataset.lesson);
    const cells = JSON.parse(place.dataset.cells);
    const [button, said] = [make("button", { type: "button" }), make("output")];
    const isSet = () => cells.every(([cell, value]) => own.values[cell] === value) && changedCells(own)[0].length === cells.length;
    const show = (graph) => {
      if (graph !== own) return;
      button.textContent = say(isSet() ? "back" : "try");
      said.textContent = isSet() ? outcome(graph) : "";
    };
    button.addEventListener("click", () => {
      const wasSet = isSet();
      restore();
      if (!wasSet) changeAll(own, cells);
    });
    live.followers.push(show);
    place.append(button, said);
    show(own);
  }
};
