/** Plots: points in a box, and the path through them. */

/**
 * @param {number[][]} points  each [x, y] @param {{wide: number, high: number, pad: number}} box
 * @param {number[][]} [others]  which are to be seen too
 */
export function plot(points, { wide, high, pad }, others = []) {
  const all = [...points, ...others], xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const [x0, x1, least, most] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const X = (/** @type {number} */ x) => pad + ((x - x0) / (x1 - x0 || 1)) * (wide - 2 * pad);
  const Y = (/** @type {number} */ y) => high - pad - ((y - least) / (most - least || 1e-9)) * (high - 2 * pad);
  const path = points.length ? `M${points.map(([x, y]) => `${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("L")}` : "";
  return { X, Y, x0, x1, path };
}
