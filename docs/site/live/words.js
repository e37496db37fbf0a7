"use strict";
/** What the page says, in the languages of the site. {} stand for what is filled in. */
const live = {};
live.WORDS = {
  en: {
    list: ", ", semicolon: "; ",
    bar: "The numbers of this page",
    hint: "Point at a number, or tab to it, to see its arithmetic. Numbers with a dotted underline can be changed.",
    hintFixed: "Point at a number, or tab to it, to see its arithmetic.",
    hintTouch: "Tap a number to see its arithmetic; tap a dotted one to change it.",
    hintFixedTouch: "Tap a number to see its arithmetic.",
    given: "{} is given. Click it or press Enter to change it.",
    givenTouch: "{} is given. Tap it to change it.",
    goTo: "Go to {}", covered: "This picture shows results that are hidden.",
    fixed: "{} is given.",
    index: "{} is given. It is an index, not a quantity, so it cannot be changed here.",
    copied: "{} = {}, copied from {}",
    change: "new value of {}",
    noNumber: "{} is not a number. Write 0.5, 1/2 or √2, say.",
    large: "That is too large. Write a number up to {}.",
    between: "{} must be between {} and {}.", whole: "{} must be a whole number between {} and {}.",
    on: "{} on", off: "{} off",
    kept: "if {} ≤ {} then {}, else −∞",
    draw: "the first running sum above {}, of {}",
    changed: "Changed: {}",
    numbers: "Recomputed and marked: {}. Text and pictures keep the old numbers.",
    foretold: "predicted by the gradient: {} = {}",
    reset: "Reset numbers",
    step: "Step {} of {}: {}",
    previous: "Previous step", next: "Next step",
    blanks: "Hide results",
    blank: "{}: your number",
    right: "✓ {} = {}",
    carried: "✓ {} follows from your earlier numbers (the lesson has {}).",
    wrong: "✗ {} is not {}. Try again, or press Enter on an empty blank to see the arithmetic.",
    mistake: "✗ {} is not {}. It looks as if you {}.",
    general: "✗ {} is not {}: {}.",
    sign: "the sign is flipped", reciprocal: "that is the reciprocal",
    point: "the decimal point is one place off", rounded: "rounded too far; give three digits",
    done: "{} of {} correct",
    map: "The steps of this lesson",
  },
  zh: {
    list: "、", semicolon: "；",
    bar: "本页数值",
    hint: "把指针移到一个数上，或用 Tab 键选中它，就能看到算式。带虚线的数可以修改。",
    hintFixed: "把指针移到一个数上，或用 Tab 键选中它，就能看到算式。",
    hintTouch: "点一个数，就能看到算式；带虚线的数点一下可以修改。",
    hintFixedTouch: "点一个数，就能看到算式。",
    given: "{}，已知数。点击或按回车可以修改。",
    givenTouch: "{}，已知数。点一下可以修改。",
    goTo: "转到 {}", covered: "这幅图里有已隐藏的结果。",
    fixed: "{}，已知数。",
    index: "{}，已知的编号，不是数量，这里不能修改。",
    copied: "{} = {}，取自 {}",
    change: "{} 的新值",
    noNumber: "“{}”不是数。可以写 0.5、1/2 或 √2。",
    large: "这个数太大，请写不超过 {} 的数。",
    between: "{} 须在 {} 与 {} 之间。", whole: "{} 须是 {} 到 {} 之间的整数。",
    on: "{}：开", off: "{}：关",
    kept: "若 {} ≤ {} 则 {}，否则 −∞",
    draw: "第一个大于 {} 的累计和，依次为 {}",
    changed: "已改：{}",
    numbers: "重新算出并标色的数：{} 个。正文和图仍是原来的数。",
    foretold: "按梯度预测：{} = {}",
    reset: "恢复原数",
    step: "第 {} 步，共 {} 步：{}",
    previous: "上一步", next: "下一步",
    blanks: "隐藏结果",
    blank: "{}：填入你算的数",
    right: "✓ {} = {}",
    carried: "✓ 按你前面的数，{} 算对了（原题为 {}）。",
    wrong: "✗ {} 不是 {}。再试一次；在空格里直接按回车可看算式。",
    mistake: "✗ {} 不是 {}。看起来是：{}。",
    general: "✗ {} 不是 {}：{}。",
    sign: "正负号反了", reciprocal: "取成了倒数",
    point: "小数点错了一位", rounded: "舍入过多，请保留三位有效数字",
    done: "答对 {} / {}",
    map: "这道例题的各步",
  },
};

/** Whether numbers are tapped, so that nobody can point or tab. */
live.isTouched = matchMedia("(hover: none)").matches;

/**
 * Say something in the page's language, and to somebody who taps in the words for it.
 * @param {string} key
 * @param {...(string|number)} parts what stands for each {}
 */
live.say = (key, ...parts) => {
  const lang = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  const words = live.WORDS[lang];
  return ((live.isTouched && words[`${key}Touch`]) || words[key]).replace(/\{\}/g, () => String(parts.shift()));
};
