/** How the next token is drawn from logits: temperature, then top-k, then top-p, as byhand samples. */

const COLDEST = 1e-6; // below it, the likeliest token

/** @param {ArrayLike<number>} z */
export function softmax(z) {
  let most = -Infinity, sum = 0;
  for (let v = 0; v < z.length; v++) if (z[v] > most) most = z[v];
  const p = new Float64Array(z.length);
  for (let v = 0; v < z.length; v++) sum += p[v] = Math.exp(z[v] - most);
  for (let v = 0; v < z.length; v++) p[v] /= sum;
  return p;
}

/** Tokens by their logits, the likeliest first; of equals, the smallest id. @param {ArrayLike<number>} z */
export const ranked = (z) => Uint32Array.from({ length: z.length }, (_, v) => v).sort((a, b) => z[b] - z[a] || a - b);

/**
 * The probabilities that the next token is drawn with; 0 for one that is cut.
 * @param {ArrayLike<number>} z @param {Uint32Array} order  of `ranked`
 * @param {number} temperature @param {number} k  0: all @param {number} p  1: all
 */
export function drawn(z, order, temperature, k, p) {
  const found = new Float64Array(z.length);
  if (temperature < COLDEST) {
    found[order[0]] = 1;
    return found;
  }
  const kept = k ? order.subarray(0, k) : order, odds = softmax(Float64Array.from(kept, (v) => z[v] / temperature));
  let before = 0, count = 0;
  while (count < kept.length && (count === 0 || before < p)) before += odds[count++];
  for (let n = 0; n < count; n++) found[kept[n]] = odds[n] / before;
  return found;
}
