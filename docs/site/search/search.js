"use strict";
/** The answers of `where` to a question, as byhand/book/finding/search.py finds them. */
{
  const { answers, weights, patterns, phrases } = whereIndex;
  const { FOUND, SPREAD, LITTLE, BEST, ALL, ALIKE, LONGEST } = weights;
  const re = (name, flags = "gu") => new RegExp(patterns[name], flags);
  const FORMULA = re("formula", "u"), IS_NAME = re("isName", "u");
  const NAMES = new Map(answers.map(([name], number) => [name, number]));
  const KNOWN = new Set(whereIndex.words);
  const formulas = whereIndex.formulas.map(([number, text, tokens]) => [number, text, tokens.split(" ").filter(Boolean)]);
  const keys = new Map(), postings = new Map();
  const add = (table, key, value) => (table.has(key) ? table.get(key).push(value) : table.set(key, [value]));
  const split = phrases.map(([number, weight, key, tokens], at) => {
    const own = tokens.split(" ").filter(Boolean);
    add(keys, key, [number, weight]);
    own.forEach((token) => add(postings, token, at));
    return own;
  });

  /** How many phrases of each answer have a token. */
  const told = (token) => {
    const counts = new Map();
    for (const at of postings.get(token) ?? []) counts.set(phrases[at][0], (counts.get(phrases[at][0]) ?? 0) + 1);
    return counts;
  };
  const rarities = new Map();
  const rarity = (token) => {
    if (!rarities.has(token)) {
      const count = told(token).size;
      const little = [...token].length === 1 || token[0] === "=" || !(count || where.isAscii(token));
      rarities.set(token, (little ? LITTLE : 1) * Math.log((answers.length + 1) / (count + 0.5)));
    }
    return rarities.get(token);
  };

  const corrected = (query) =>
    query.replace(re("latin"), (word) => {
      const own = where.tokens(word), low = word.toLowerCase();
      if (!own.length || postings.has(own[0]) || KNOWN.has(low)) return word;
      return where.close(low, whereIndex.words, 1, 0.78)[0] ?? word;
    });

  const byName = function* (given) {
    if (NAMES.has(given)) yield [NAMES.get(given), 4];
    const asked = [[given, 3], [given.split("(")[0], 2.5]];
    for (const part of given.match(re("name")) ?? []) if (IS_NAME.test(part)) asked.push([part, 1.9]);
    for (const dotted of given.match(re("dotted")) ?? []) {
      const parts = dotted.replace(/\.weight$/, "").split(".");
      for (let at = 1; at < parts.length; at++) asked.push([parts.slice(at).join("."), 1.8 - 0.1 * Number(at + 1 === parts.length)]);
      asked.push(...parts.map((part) => [part, 1.2]));
    }
    for (const [text, sure] of asked) {
      const key = where.key(text);
      if (text === given || key.length > 2) for (const [number, weight] of keys.get(key) ?? []) yield [number, sure * weight];
    }
  };

  const byWords = function* (given) {
    const asked = where.tokens(FORMULA.test(given) ? given : corrected(given)).map((token) => [token, rarity(token)]);
    const whole = asked.reduce((sum, [, weight]) => sum + weight, 0);
    const common = new Map(), best = new Map(), share = new Map();
    for (const [token, weight] of asked) {
      for (const at of postings.get(token) ?? []) common.set(at, (common.get(at) ?? 0) + weight);
      for (const [number, often] of told(token)) {
        share.set(number, (share.get(number) ?? 0) + (weight * often) / (often + 1) / whole);
      }
    }
    for (const [at, shared] of common) {
      const [number, weight] = phrases[at];
      const own = split[at].reduce((sum, token) => sum + rarity(token), 0);
      best.set(number, Math.max(best.get(number) ?? 0, (weight * 2 * shared) / (whole + own)));
    }
    for (const [number, part] of share) yield [number, BEST * best.get(number) + ALL * part];
  };

  const byFormula = function* (given) {
    const asked = FORMULA.test(given) ? where.formulaTokens(where.wide(given)) : [];
    if (!asked.length) return;
    const compact = where.compact(where.wide(given));
    for (const [number, text, tokens] of formulas) {
      const score = text === compact ? 2.5 : ALIKE * where.similarity(asked, tokens);
      if (score > 0.6) yield [number, score];
    }
  };

  /** The numbers of the answers, best first; none if nothing is near enough. @param {string} query @returns {number[]} */
  where.search = (query) => {
    const given = query.slice(0, LONGEST).trim(), score = new Map();
    for (const found of [byName, byWords, byFormula]) {
      for (const [number, one] of found(given)) score.set(number, Math.max(score.get(number) ?? 0, one));
    }
    const least = Math.max(FOUND, Math.max(0, ...score.values()) - SPREAD);
    return [...score].filter(([, one]) => one >= least).sort(([m, a], [n, b]) => b - a || m - n).map(([number]) => number);
  };
}
