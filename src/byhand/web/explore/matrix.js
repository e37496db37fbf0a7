/** A matrix of a pass, of which only those tiles are fetched that are looked at. */

/** @typedef {{r: number, c: number, rows: number, cols: number, data: Float32Array}} Tile */

const WIDE = 4096, LARGE = 1 << 18; // columns and numbers of a tile

export class Matrix {
  tiles = /** @type {Map<string, Tile>} */ (new Map());
  /** largest size of a number that has come */
  most = 0;

  /**
   * @param {string} key
   * @param {number} rows
   * @param {number} cols
   * @param {(r0: number, r1: number, c0: number, c1: number) => Tile | undefined} load  first and last row and column
   */
  constructor(key, rows, cols, load) {
    this.key = key;
    this.rows = rows;
    this.cols = cols;
    this.load = load;
    this.wide = Math.min(cols, WIDE);
    this.high = Math.max(1, Math.min(rows, Math.floor(LARGE / this.wide)));
  }

  /** A power of ten that keeps small numbers readable. */
  get unit() { return this.most > 0 && this.most < 0.05 ? 10 ** Math.floor(Math.log10(this.most)) : 1; }

  /** Whether all numbers of a window are here; those that are not are asked for. @param {number} r0 @param {number} r1 @param {number} c0 @param {number} c1 */
  want(r0, r1, c0, c1) {
    let whole = true;
    for (let i = Math.floor(r0 / this.high); i * this.high <= Math.min(r1, this.rows - 1); i++)
      for (let j = Math.floor(c0 / this.wide); j * this.wide <= Math.min(c1, this.cols - 1); j++) whole = Boolean(this.#tile(i, j)) && whole;
    return whole;
  }

  /** @param {number} r @param {number} c @returns {number | undefined} */
  value(r, c) {
    const tile = this.#tile(Math.floor(r / this.high), Math.floor(c / this.wide));
    return tile?.data[(r - tile.r) * tile.cols + c - tile.c];
  }

  /** @param {number} r @returns {Float32Array | undefined} a row, if all of it is here */
  row(r) {
    if (!this.want(r, r, 0, this.cols - 1)) return undefined;
    const found = new Float32Array(this.cols);
    for (let c = 0; c < this.cols; c += this.wide) {
      const tile = /** @type {Tile} */ (this.#tile(Math.floor(r / this.high), c / this.wide));
      found.set(tile.data.subarray((r - tile.r) * tile.cols, (r - tile.r + 1) * tile.cols), c);
    }
    return found;
  }

  /** @param {number} i @param {number} j */
  #tile(i, j) {
    const key = `${i},${j}`, had = this.tiles.get(key);
    if (had) return had;
    const r = i * this.high, c = j * this.wide;
    const tile = this.load(r, Math.min(this.rows, r + this.high) - 1, c, Math.min(this.cols, c + this.wide) - 1);
    if (!tile) return undefined;
    this.tiles.set(key, tile);
    for (const x of tile.data) if (Number.isFinite(x) && Math.abs(x) > this.most) this.most = Math.abs(x);
    return tile;
  }
}
