/** Pictures that show arrays of a lesson: those of the current step are framed, and a click leads to an array's step. */
import { live, make } from "./grids.js";
import { say } from "./words.js";

const spots = /** @type {{graph: any, arrays: number[], spot: HTMLElement}[]} */ ([]);
const images = /** @type {{graph: any, image: HTMLImageElement}[]} */ ([]);

/**
 * Lay the places of arrays over the pictures.
 * @param {(graph: any, arrays: number[]) => (() => void)|undefined} way how to go to the step of arrays
 */
export const placeSpots = (way) => {
  for (const box of /** @type {any} */ (document.querySelectorAll(".live-picture"))) {
    const graph = live.graphs.find((one) => one.name === box.dataset.lesson);
    const image = box.querySelector("img");
    const frame = make("span", { class: "live-figure" });
    image.replaceWith(frame);
    frame.append(image);
    images.push({ graph, image });
    for (const [arrays, ...place] of JSON.parse(box.dataset.spots)) {
      const spot = make("span", { class: "live-spot", "aria-hidden": "true" });
      ["left", "top", "width", "height"].forEach((side, k) => (spot.style[side] = `${place[k]}%`));
      const go = way(graph, arrays);
      if (go) {
        spot.classList.add("live-way");
        spot.addEventListener("click", go);
      }
      spots.push({ graph, arrays, spot });
      frame.append(spot);
    }
  }
};

/** Where pictures show results: of some arrays, or, where nobody knows of which, of all; and how to cover them. */
export const pictured = () => [
  ...spots.map(({ graph, arrays, spot }) => ({ graph, arrays, cover: (isOn) => spot.classList.toggle("live-covered", isOn) })),
  ...images.map(({ graph, image }) => {
    const { alt } = image;
    const has = spots.some(({ spot }) => spot.parentElement === image.parentElement);
    return {
      graph,
      arrays: null,
      cover: (isOn) => {
        image.alt = isOn ? say("covered") : alt; // its words hold numbers
        image.classList.toggle("live-hidden", isOn && !has);
      },
    };
  }),
];

/** Frame what a step makes, and what it reads. */
export const lightSpots = (graph, { reads, makes }) => {
  for (const { spot, arrays, graph: own } of spots) {
    const shows = (wanted) => own === graph && arrays.some((array) => wanted.includes(array));
    spot.classList.toggle("live-made-here", shows(makes));
    spot.classList.toggle("live-read-here", !shows(makes) && shows(reads));
  }
};
