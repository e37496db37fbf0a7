"use strict";
/** The words of a question as tokens, as byhand/book/finding/words.py makes them; the tables are the index's. */
const where = {};
{
  const { language, patterns, stop, longest } = whereIndex;
  const all = (name) => new RegExp(patterns[name], "gu");
  const STOP = new Set(stop), SYNONYMS = new Map(Object.entries(language.synonyms));
  const letters = [...language.simplified];
  const SIMPLIFIED = new Map(letters.filter((_, k) => k % 2 === 0).map((letter, k) => [letter, letters[2 * k + 1]]));
  const REGIONAL = new Map(Object.entries(language.regional));
  const regional = new RegExp([...REGIONAL.keys()].sort((a, b) => b.length - a.length).join("|") || "$^", "gu");

  where.isAscii = (text) => /^[\x00-\x7f]*$/.test(text);
  where.wide = (text) => text.replace(all("wide"), (found) => found.normalize("NFKC"));

  const plain = (text) => {
    const written = where.wide(text);
    if (where.isAscii(written)) return written;
    return [...written].map((letter) => SIMPLIFIED.get(letter) ?? letter).join("").replace(regional, (word) => REGIONAL.get(word));
  };

  /** All letters and digits together: what two spellings of a name have in common. */
  where.key = (text) => (plain(text).toLowerCase().match(all("word")) ?? []).join("");

  /** The tokens of a text once each, those of its meanings behind them. */
  where.tokens = (text) => {
    const written = plain(text).replace(all("hump"), " ").toLowerCase();
    const found = [], meant = [];
    for (const word of (where.isAscii(written) ? written : written.replace(all("filler"), " ")).match(all("word")) ?? []) {
      if (!where.isAscii(word)) {
        found.push(...word);
        for (let i = 0; i + 1 < word.length; i++) found.push(word.slice(i, i + 2));
        for (let i = 0; i < word.length; i++) for (let n = 2; n <= longest; n++) meant.push(word.slice(i, i + n));
      } else if (!STOP.has(word) && !/^\d$/.test(word)) {
        found.push(word.replace(all("ending"), ""));
      }
    }
    return [...new Set([...found, ...[...found, ...meant].filter((t) => SYNONYMS.has(t)).map((t) => SYNONYMS.get(t))])];
  };

  /** Twice the matching characters over all, as Python's difflib counts them: the longest block first, then beside it. */
  const ratio = (a, b) => {
    const at = new Map();
    [...b].forEach((letter, j) => at.set(letter, [...(at.get(letter) ?? []), j]));
    const matching = (alow, ahigh, blow, bhigh) => {
      let [besti, bestj, size] = [alow, blow, 0];
      let lengths = new Map();
      for (let i = alow; i < ahigh; i++) {
        const next = new Map();
        for (const j of at.get(a[i]) ?? []) {
          if (j < blow) continue;
          if (j >= bhigh) break;
          const k = (lengths.get(j - 1) ?? 0) + 1;
          next.set(j, k);
          if (k > size) [besti, bestj, size] = [i - k + 1, j - k + 1, k];
        }
        lengths = next;
      }
      return size && size + matching(alow, besti, blow, bestj) + matching(besti + size, ahigh, bestj + size, bhigh);
    };
    return a.length + b.length ? (2 * matching(0, a.length, 0, b.length)) / (a.length + b.length) : 1;
  };

  /** Whether two words have letters enough in common for a ratio: quick, and never too strict. */
  const mayBe = (a, b, cutoff) => {
    const both = a.length + b.length;
    if (2 * Math.min(a.length, b.length) < cutoff * both) return false;
    const left = new Map();
    for (const letter of b) left.set(letter, (left.get(letter) ?? 0) + 1);
    let common = 0;
    for (const letter of a) {
      const more = left.get(letter) ?? 0;
      if (more > 0) common++;
      left.set(letter, more - 1);
    }
    return 2 * common >= cutoff * both;
  };

  /** The n most similar words, best first: Python's get_close_matches. */
  where.close = (word, words, n, cutoff) =>
    words
      .filter((other) => mayBe(other, word, cutoff))
      .map((other) => [ratio(other, word), other])
      .filter(([score]) => score >= cutoff)
      .sort(([a, x], [b, y]) => b - a || (x < y ? 1 : -1))
      .slice(0, n)
      .map(([, other]) => other);
}
