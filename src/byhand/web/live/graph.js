/**
 * A lesson's numbers and how each is made. No equation stands here: only operations, applied as the exported programs
 * say. A program is a form's number and the cells that it reads; a form [reads, constants, operations, labels].
 */

const NOTHING = 1e-12; // of a sum's largest part; a smaller sum is rounding residue

/** @type {Record<string, (parts: number[]) => number>} */
export const OPERATIONS = {
  sum: (parts) => exactSum(parts),
  product: (parts) => parts.reduce((a, b) => a * b, 1),
  ratio: ([a, b]) => a / b,
  negative: ([a]) => -a,
  max: (parts) => Math.max(...parts),
  exp: ([a]) => Math.exp(a),
  log: ([a]) => Math.log(a),
  sqrt: ([a]) => Math.sqrt(a),
  square: ([a]) => a * a,
  tanh: ([a]) => Math.tanh(a),
  erf: ([a]) => erf(a),
  cos: ([a]) => Math.cos(a),
  sin: ([a]) => Math.sin(a),
  positive: ([a]) => (a <= 0 ? 0 : a), // NaN stays NaN
  step: ([a]) => (a > 0 ? 1 : 0),
  kept: ([a, rank, most]) => (rank <= most ? a : -Infinity),
  draw: ([u, ...p]) => {
    let sum = 0;
    const sums = p.map((x) => (sum += x));
    const above = sums.findIndex((x) => x > u * sum);
    return above >= 0 ? above : sums.findIndex((x) => x >= sum);
  },
};

/**
 * The error function: 2/√π exp(−x²) (x + 2x³/3 + 4x⁵/15 + …), without a difference; beyond 6 it is 1 or −1.
 * @param {number} x
 */
function erf(x) {
  if (!(Math.abs(x) < 6)) return Math.sign(x);
  let [sum, term] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= (2 * x * x) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/**
 * Add numbers and round once (Shewchuk 1997, as Python's math.fsum); 0 for what is only rounding residue.
 * @param {number[]} parts
 */
function exactSum(parts) {
  if (!parts.every(Number.isFinite)) return parts.reduce((a, b) => a + b, 0);
  /** @type {number[]} */
  const partials = [];
  for (let x of parts) {
    let kept = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low !== 0) partials[kept++] = low;
      x = high;
    }
    partials.length = kept;
    partials.push(x);
  }
  let at = partials.length - 1;
  let high = at >= 0 ? partials[at] : 0;
  let low = 0;
  while (at > 0 && low === 0) {
    const x = high;
    high = x + partials[--at];
    low = partials[at] - (high - x);
  }
  if (at > 0 && low !== 0 && Math.sign(low) === Math.sign(partials[at - 1])) {
    const twice = low * 2; // halfway between two numbers: the rest decides
    const up = high + twice;
    if (twice === up - high) high = up;
  }
  return Math.abs(high) < NOTHING * Math.max(0, ...parts.map(Math.abs)) ? 0 : high;
}

/** @typedef {{words: string, low: number, high: number, step: number, bound: boolean}} Setting */
/** @typedef {{name: string, shape: number[], first: number, kind: string, setting: Setting|undefined}} Cells */

export class Graph {
  /** as it was exported: forms and programs, steps, losses with their gradients, what switches choose, words of mistakes @type {any} */
  forms; programs; steps; losses; choices; words; largest;

  /** @param {any} data what docs/build/live exports */
  constructor(data) {
    Object.assign(this, data);
    const number = (/** @type {number|string} */ x) => Number(x);
    /** @type {Cells[]} */
    this.arrays = data.arrays.map(([name, shape, first, kind, facts]) => {
      const [words, low, high, step, bound] = facts ?? [];
      return { name, shape, first, kind, setting: facts && { words, low, high, step, bound } };
    });
    for (const step of this.steps) step.numbers.forEach((/** @type {any[]} */ one) => (one[1] = number(one[1])));
    this.lesson = Float64Array.from(data.values, number);
    this.values = Float64Array.from(this.lesson);
    this.name = data.lesson;
    this.owner = new Int32Array(this.values.length);
    this.arrays.forEach((array, which) => {
      const size = array.shape.reduce((a, b) => a * b, 1);
      this.owner.fill(which, array.first, array.first + size);
    });
  }

  /**
   * The values of a program's registers: its cells, its constants, then its operations in their order.
   * @param {number} cell
   * @param {(cell: number) => number} [read]
   * @returns {number[]}
   */
  registers(cell, read = (source) => this.values[source]) {
    const [which, ...cells] = this.programs[cell];
    const [, constants, operations] = this.forms[which];
    const registers = [...cells.map(read), ...constants.map(Number)];
    for (const [op, ...parts] of operations) {
      registers.push(OPERATIONS[op](parts.map((/** @type {number} */ part) => registers[part])));
    }
    return registers;
  }

  /** Work every number that is not given, in order; `values` is what it was worked from. */
  work(values = this.values) {
    this.values = values;
    for (const [cell, forms] of this.choices) {
      const [, programs] = forms.find((/** @type {[number, any]} */ [value]) => value === values[cell]) ?? [];
      Object.assign(this.programs, programs);
    }
    this.programs.forEach((/** @type {number[]|null} */ program, /** @type {number} */ cell) => {
      if (program) values[cell] = /** @type {number} */ (this.registers(cell).at(-1));
    });
    return values;
  }

  /** @param {number} cell */
  array(cell) {
    return this.arrays[this.owner[cell]];
  }

  /**
   * A cell's name: S[0,1].
   * @param {number} cell
   */
  label(cell) {
    const { name, shape, first } = this.array(cell);
    let rest = cell - first;
    const index = shape.slice().reverse().map((length) => {
      const at = rest % length;
      rest = (rest - at) / length;
      return at;
    });
    return index.length ? `${name}[${index.reverse().join(",")}]` : name;
  }
}
