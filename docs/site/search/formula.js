"use strict";
/** Formulas as token lists, and how alike two are, as byhand/book/finding/formula.py has it. */
{
  const { signs, commands, aliases, patterns, alike, different, longestFactor, otherLetters } = whereIndex;
  const OPERATIONS = new Set(whereIndex.operations), LAYOUT = new RegExp(`^(?:${patterns.layout})$`, "u");
  const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);
  const w = "[\\p{L}\\p{N}_]", edge = `(?:(?<=${w})(?!${w})|(?<!${w})(?=${w}))`;
  const re = (pattern) => new RegExp(pattern.replaceAll("\\w", w).replaceAll("\\b", edge), "gu");

  const command = (name) => (LAYOUT.test(name) ? "" : (own(commands, name) ?? name));
  const subscript = (text) => {
    const word = text.replace(/[^A-Za-z0-9]/gu, "");
    const running = /^[\s\d:,+\-a-zA-Z]*$/u.test(text) && text.split(/[,+\-:]/u).every((part) => part.trim().length <= 1);
    return running && !/^[A-Z]$/u.test(text.trim()) ? " " : `${word.toLowerCase()} `;
  };

  const BEFORE = [
    [re("<-|:="), " = "],
    [re("\\\\mathrel\\s*\\{([+\\-])\\}\\s*="), "$1="],
    [re("((?:\\w|[.\\\\\\{\\}\\[\\]])+)\\s*([+\\-])="), "$1 = $1 $2"],
    [re("(?:σ|\\\\sigma)\\s*(?=\\(|\\\\left)"), " sigmoid "],
  ];
  const AFTER = [
    [re("\\\\[,;!: ]|\\\\\\\\|&|\\$|~"), " "],
    [re("(\\w+)\\.(mean|std|var|sum|max|exp|log|sqrt|softmax)\\("), " $2 $1 ("],
    [re("\\.T\\b"), "^T"],
    [re("(?<![A-Za-z\\\\])e\\s*\\^"), " exp "],
    [re("\\\\([A-Za-z]+)"), (_, name) => ` ${command(name)} `],
    [re("sum\\s*_\\s*(\\{[^\\{\\}]*\\}|\\w)\\s*\\^\\s*(\\{[^\\{\\}]*\\}|\\w)"), "sum "],
    [re("\\[\\s*[a-z]\\s*(,\\s*[a-z:]\\s*)*\\]"), " "],
    [re("\\^\\s*\\{\\s*(\\w+)\\s*\\}"), "^$1"],
    [re("_\\s*\\{([^\\{\\}]*)\\}"), (_, text) => subscript(text)],
    [re("_([A-Za-z0-9]+)"), (_, text) => subscript(text)],
    [re("\\b[ABKPQSVWXY]{2,3}\\b"), (found) => [...found].join(" ")],
    [re("\\b([abce-z])([A-Z]\\d?)\\b"), "$1 $2"],
  ];
  const TOKEN = /\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z][A-Za-z0-9]*|[<>]=|[=+\-^<>]/gu;

  where.formulaTokens = (given) => {
    let text = given;
    for (const [pattern, by] of BEFORE) text = text.replace(pattern, by);
    for (const [sign, word] of signs) text = text.replaceAll(sign, () => word);
    for (const [pattern, by] of AFTER) text = text.replace(pattern, by);
    return (text.match(TOKEN) ?? []).map((token) => own(aliases, token.toLowerCase()) ?? token);
  };

  where.compact = (text) => text.replace(/[\s{}$]/gu, "");

  const counted = (tokens) => {
    const counts = new Map();
    for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
    return counts;
  };
  const pairs = (tokens) => tokens.slice(1).map((token, k) => `${tokens[k]} ${token}`);
  const common = (a, b) => [...a].reduce((sum, [token, n]) => sum + Math.min(n, b.get(token) ?? 0), 0);
  const shares = (a, b) => {
    const both = a.length + b.length;
    const singles = common(counted(a), counted(b)), neighbours = common(counted(pairs(a)), counted(pairs(b)));
    return [(2 * singles) / both, (2 * neighbours) / Math.max(both - 2, 1)];
  };
  const holds = (formula, part) => formula.some((_, i) => part.every((token, k) => formula[i + k] === token));

  const overlap = (query, formula) => {
    const [singles, neighbours] = shares(query, formula);
    if (query.length < 2) return singles;
    const whole = 0.5 * singles + 0.5 * neighbours, both = query.length + formula.length;
    if (Math.round(singles * both) === 2 * query.length && holds(formula, query)) {
      return Math.max(whole, 0.8 + (0.2 * query.length) / formula.length);
    }
    return whole;
  };

  /** A formula with its letters and factors numbered as they appear; 1 - b is a factor too. */
  const structure = (tokens) => {
    const numbers = new Map(), found = [];
    for (let token of tokens) {
      const kept = OPERATIONS.has(token.toLowerCase()) || (token.length > longestFactor && token[0] === "0") || found.at(-1) === "^";
      if (!kept && found.at(-2) === "1" && found.at(-1) === "-") {
        found.splice(-2);
        token = `1-${token}`;
      }
      if (!kept && !numbers.has(token)) numbers.set(token, `#${numbers.size}`);
      found.push(kept ? token.toLowerCase() : numbers.get(token));
    }
    return found;
  };
  const operations = (structured) => new Set(structured.filter((token) => token[0] !== "#")).size;
  const lower = (tokens) => tokens.map((token) => token.toLowerCase());

  where.similarity = (query, formula) => {
    const low = overlap(lower(query), lower(formula));
    let other = 0;
    const long = query.length / formula.length;
    if (0.5 < long && long < 2) {
      const a = structure(query), b = structure(formula);
      if (Math.min(operations(a), operations(b)) >= different) {
        const [singles, neighbours] = shares(a, b);
        other = otherLetters * (0.2 * singles + 0.8 * neighbours);
      }
    }
    if (Math.max(low, 0.3 * low + other) <= alike) return alike;
    const written = 0.4 * overlap(query, formula) + 0.6 * low;
    return Math.max(written, 0.3 * written + other);
  };
}
