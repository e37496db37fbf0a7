/** Numbers as the pages print them, and as readers write them. */

const NOISE = 1e-10; // printed as 0: rounding residue, which differs between machines
const ROUGH = 1e-8; // below it three digits are printed

/** What a page rounds to: decimals, or 0 for six digits. */
export const decimals = { places: 0 };
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const odd = (/** @type {number} */ x) => (Number.isNaN(x) ? "NaN" : Number.isFinite(x) ? "" : x > 0 ? "∞" : "−∞");

/** A power of ten: 10⁻⁵. @param {number | string} exponent */
export const powerOfTen = (exponent) => `10${[...String(exponent)].map((c) => (c === "-" ? "⁻" : RAISED[Number(c)])).join("")}`;

const SEEN = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };
/** White space that can be seen. @param {string} text */
export const visible = (text) => text.replace(/[ \n\t\r]/g, (space) => SEEN[space]);

/** A number with a real minus, and a power of ten only where it must be: 2.5·10⁻⁵. @param {number} x @param {number} digits */
export function number(x, digits) {
  const size = Math.abs(x), [plain, power] = (size && (size < 1e-4 || size >= 1e6) ? x.toExponential(digits - 1) : String(Number(x.toPrecision(digits)))).replace("+", "").split("e");
  return odd(x) || plain.replace("-", "−") + (power ? `·${powerOfTen(power)}` : "");
}

/**
 * Write a number as the tables print it, with six significant digits or the page's decimals, no trailing zeros, and a real minus sign.
 * @param {number} value
 * @returns {string}
 */
export const written = (value, digits = 6) => {
  if (decimals.places && Number.isFinite(value)) value = Number(value.toFixed(decimals.places));
  const size = Math.abs(value);
  if (size < NOISE || !Number.isFinite(value)) return odd(value) || "0";
  const [mantissa, power] = value.toExponential((size < ROUGH ? 3 : digits) - 1).split("e");
  const exponent = Number(power);
  const plain = exponent < -4 || exponent >= digits ? mantissa : value.toFixed(Math.max(0, digits - 1 - exponent));
  const short = plain.includes(".") ? plain.replace(/\.?0+$/, "") : plain;
  return (plain === mantissa && exponent !== 0 ? `${short}e${exponent}` : short).replace(/-/g, "−");
};

const SIGNS = { "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "，": ",", "。": ".", "：": ":", "（": "(", "）": ")" };
const TEN = /[·×]\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/; // as the pages write it
const power = (/** @type {string} */ _, /** @type {string} */ raised) => `e${[...raised].map((c) => (c === "⁻" ? "-" : RAISED.indexOf(c))).join("")}`;
const TOKEN = /\s*(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|sqrt|exp|ln|log|√|e\^|[-+*/()])/y;

/**
 * Read a number as people write it: 0.5, 0,5, 1/2, √2/2, exp(-1), −∞; null for anything else.
 * @param {string} text
 * @returns {number|null}
 */
export const read = (text) => {
  let plain = text.slice(-100).replace(TEN, power).normalize("NFKC").replace(/[−–×·÷，。：（）]/g, (sign) => SIGNS[sign]);
  plain = plain.slice(plain.lastIndexOf("=") + 1).trim().replace(/(\d),(\d)/g, "$1.$2").replace(/:/g, "/");
  if (/^[-+]?(∞|inf)$/.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < plain.length) {
    const found = TOKEN.exec(plain);
    if (!found) return null;
    tokens.push(found[1]);
  }
  const functions = { sqrt: Math.sqrt, "√": Math.sqrt, exp: Math.exp, "e^": Math.exp, ln: Math.log, log: Math.log };
  /** @returns {number} */
  const factor = () => {
    const token = tokens.shift() ?? "";
    if (token === "-") return -factor();
    if (token === "+") return factor();
    if (token in functions) return functions[token](factor());
    if (token === "(") {
      const inner = sum();
      return tokens.shift() === ")" ? inner : NaN;
    }
    return token === "" ? NaN : Number(token);
  };
  const product = () => {
    let value = factor();
    while (["*", "/", "√", "sqrt"].includes(tokens[0])) {
      if (tokens[0] === "/") tokens.shift(), (value /= factor());
      else if (tokens[0] === "*") tokens.shift(), (value *= factor());
      else value *= factor(); // 2√2
    }
    return value;
  };
  const sum = () => {
    let value = product();
    while (tokens[0] === "+" || tokens[0] === "-") value += tokens.shift() === "+" ? product() : -product();
    return value;
  };
  const value = sum();
  return tokens.length || !Number.isFinite(value) ? null : value;
};
