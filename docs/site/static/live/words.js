"use strict";
/** What the page says, in the languages of the site. {} stand for what is filled in. */
const live = {};
live.WORDS = {
  en: {
    list: ", ", semicolon: "; ",
    bar: "The numbers of this page",
    hint: "Point at a number, or tab to it: its arithmetic appears here. Numbers with a dotted line can be changed.",
    hintFixed: "Point at a number, or tab to it: its arithmetic appears here.",
    given: "{} is given. Press Enter to change it.",
    fixed: "{} is given.",
    index: "{} is given. It is a name and no quantity: with another one other numbers would be read, so it cannot be changed here.",
    copied: "{} = {}, read from {}",
    change: "new value of {}",
    noNumber: "{} is no number. Write 0.5, 1/2 or √2.",
    large: "That is too large. Write a number up to {}.",
    between: "{} goes from {} to {}.", whole: "{} is a whole number from {} to {}.",
    on: "{} on", off: "{} off",
    kept: "if {} ≤ {} then {}, else −∞",
    draw: "the first running sum above {}, of {}",
    changed: "Changed: {}",
    numbers: "Numbers that follow, marked: {}. Text and pictures stay.",
    foretold: "the gradient foretold {} = {}",
    reset: "Back to the lesson's numbers",
    step: "Step {} of {}: {}",
    previous: "Previous step", next: "Next step",
    blanks: "Hide results",
    blank: "{}: your number",
    right: "✓ {} = {}",
    carried: "✓ {} follows from your earlier numbers (the lesson has {}).",
    wrong: "✗ {} is not {}. Try again, or press Enter on an empty blank to see the arithmetic.",
    mistake: "✗ {} is not {}. It looks as if you {}.",
    general: "✗ {} is not {}: {}.",
    sign: "the sign is turned round", reciprocal: "that is the reciprocal",
    point: "the decimal point is one place off", rounded: "rounded too far, give three digits",
    done: "{} of {} right",
    map: "The steps of this lesson",
  },
  zh: {
    list: "、", semicolon: "；",
    bar: "本页的数",
    hint: "指向一个数，或用 Tab 键移到它：这里显示它的算式。带虚线的数可以改。",
    hintFixed: "指向一个数，或用 Tab 键移到它：这里显示它的算式。",
    given: "{} 是已知数。按回车可以改它。",
    fixed: "{} 是已知数。",
    index: "{} 是已知的编号，不是数量：换一个编号，读取的就是另外的数，所以这里不能改。",
    copied: "{} = {}，取自 {}",
    change: "{} 的新值",
    noNumber: "{} 不是数。请写 0.5、1/2 或 √2。",
    large: "这个数太大，请写不超过 {} 的数。",
    between: "{} 的范围是 {} 到 {}。", whole: "{} 是 {} 到 {} 之间的整数。",
    on: "{}：开", off: "{}：关",
    kept: "若 {} ≤ {} 则 {}，否则 −∞",
    draw: "第一个大于 {} 的累计和，依次为 {}",
    changed: "已改：{}",
    numbers: "随之改变的数：{} 个，已标出；正文和图不变。",
    foretold: "按梯度预计为 {} = {}",
    reset: "恢复原来的数",
    step: "第 {} 步，共 {} 步：{}",
    previous: "上一步", next: "下一步",
    blanks: "隐藏结果",
    blank: "{}：填入你算的数",
    right: "✓ {} = {}",
    carried: "✓ {} 由你前面的数算得没错（原题是 {}）。",
    wrong: "✗ {} 不是 {}。再试一次；在空格里直接按回车可看算式。",
    mistake: "✗ {} 不是 {}。看起来是：{}。",
    general: "✗ {} 不是 {}：{}。",
    sign: "正负号反了", reciprocal: "取成了倒数",
    point: "小数点错了一位", rounded: "舍入过多，请保留三位有效数字",
    done: "{} / {} 个正确",
    map: "这道例题的各步",
  },
};

/**
 * Say something in the page's language.
 * @param {string} key
 * @param {...(string|number)} parts what stands for each {}
 */
live.say = (key, ...parts) => {
  const lang = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  return live.WORDS[lang][key].replace(/\{\}/g, () => String(parts.shift()));
};
