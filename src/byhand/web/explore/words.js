/** What the explorer says, in two languages. */
import { language, speaking } from "../language.js";

/** Places by what their names end in; what is not here is called by its equation's title. @type {Record<string, [string, string]>} */
const PLACES = {
  tok: ["embedding", "词元嵌入"], x: ["+ position", "+ 位置"], ln_1: ["norm", "归一化"], ln_2: ["norm", "归一化"], ln_f: ["final norm", "末层归一化"],
  ln_1_out: ["norm of it", "再归一化"], ln_2_out: ["norm of it", "再归一化"], logits: ["logits", "logits"], uncapped: ["uncapped logits", "未压缩的 logits"], loss: ["loss", "损失"],
  x_mid: ["stream", "残差流"], x_out: ["stream", "残差流"], "attn.qkv": ["x W", "x W"], "attn.q": ["q", "q"], "attn.k": ["k", "k"], "attn.v": ["v", "v"],
  "attn.q_normed": ["q normed", "q 归一"], "attn.k_normed": ["k normed", "k 归一"], "attn.q_turned": ["q turned", "q 旋转"], "attn.k_turned": ["k turned", "k 旋转"],
  "attn.keys": ["keys", "键"], "attn.values": ["values", "值"], "attn.scores": ["scores", "分数"], "attn.weights": ["weights", "权重"],
  "attn.mixed": ["mixed values", "混合值"], "attn.merged": ["heads side by side", "各头并排"], "attn.out": ["attention out", "注意力输出"],
  "mlp.pre": ["up", "升维"], "mlp.up": ["up", "升维"], "mlp.gate": ["gate", "门"], "mlp.act": ["activation", "激活"], "mlp.out": ["MLP out", "前馈输出"],
  "lm_head.w": ["output matrix", "输出矩阵"], "lm_head.b": ["output bias", "输出偏置"], wte: ["token table", "词元表"], wpe: ["position table", "位置表"],
};
const SUFFIXES = { _adapted: ["+ LoRA", "+ LoRA"], _low: ["A", "A"] };

/** @param {string} tail @returns {string | undefined} */
export function placeWord(tail) {
  const at = language === "zh" ? 1 : 0;
  if (PLACES[tail]) return PLACES[tail][at];
  for (const [suffix, said] of Object.entries(SUFFIXES)) {
    const base = tail.endsWith(suffix) && PLACES[tail.slice(0, -suffix.length)];
    if (base) return `${base[at]} ${said[at]}`;
  }
  return undefined;
}

const WORDS = {
  en: {
    other: "中文", otherTitle: "Chinese", theme: "Dark or light (d)", keys: "Keys", close: "Close", retry: "Try again", key: "This server needs its API key.", keyName: "API key", unlock: "Use it",
    lost: "The server does not answer. What is here stays.", busy: "The server is busy.", full: "The text is too long.", failed: (why) => `The server says: ${why}`,
    about: (name, step, size, loss) => `${name}${step} · ${size} parameters · loss ${loss}`, step: (n) => ` · step ${n}`, loading: "Computing the pass …",
    find: "Find a place   /", findLabel: "Find a place", forward: "Forward", backward: "Backward", flipKey: "Forward or backward (space)", cover: "Cover numbers", coverShort: "Cover", coverTitle: "Cover the numbers and fill them in (c)", tour: "Tour",
    model: "The model", text: "The text", fromText: "From text to loss", fromLoss: "From loss to text", length: "length", gradientLength: "gradient’s length", shareOf: (t) => `share of “${t}”`, differs: "difference", metric: "What the bars show (m)",
    attentionN: (b) => `attention ${b}`, mlpN: (b) => `MLP ${b}`, headLabel: (b, h) => `attention of block ${b}, head ${h}`, lengthAt: (x, t) => `length ${x} at position ${t}`, shareAt: (x, t) => `${x} of the logit of “${t}”`, block: (b) => `block ${b}`, blockHead: (b, h) => `block ${b}, head ${h}`,
    afterEach: "after each block", lensTitle: "The next token, as each half block would say it (l)", lensLabel: "The likeliest next token after each half block", plusAttention: (b) => `+ attention ${b}`, plusMlp: (b) => `+ MLP ${b}`, start: "embedding",
    chip: (t, id, next) => `position ${t}, token ${id}; next is ${next}`, trueNext: "the token that follows in the text", stage: (v, p, y, q, n) => `${v} ${p}; the true ${y} has ${q}, place ${n}`, stageOnly: (v, p) => `${v} ${p}`,
    head: "head", usedBy: "used by", backwards: (title) => `${title}, backwards`, parameter: "A parameter", made: "How it was made", asks: "What the loss asks", asksBy: (n) => `What the loss asks, by ${n} uses`, nudged: "nudged", nudge: "Nudge the number and compute the loss again", askGradient: "Click for its gradient: the way back takes a while in a model of this size.", agree: (n) => `${n} digits agree`, noGradient: "It has no gradient.", learned: "Learned by training, not computed by an equation.",
    read: "Point at a cell to see what made it; click to open it.", matrix: (name, r, c) => `${name}, ${r} by ${c}; arrows move, Enter opens`, numbers: "Numbers in the cells (z)", whole: "whole", numbersTimes: (p) => `numbers × ${p}`, aParameter: "a parameter", masked: (c, r) => `‹${c}› is masked for ‹${r}›`, covered: "covered", falls: "falls", rises: "rises",
    backDoor: "Back through the last door (b)", doors: "The doors you came through", link: "link", linkTitle: "Copy the address of this number", copied: "copied", sumOf: (n) => `= a sum of ${n} terms, the largest first`, of: (what, n) => `${what} of ${n}`, open: (n) => `Open the ${n} terms`, below: "Written out below", smaller: (n) => `${n} smaller ones`, largestOf: (n) => `${n} smaller ones, the largest`, together: "together", more: "more", asAbove: "as above", kept: (what) => `kept by ${what}`,
    isLoss: "the derivative of the loss with respect to itself: where the way back begins", isParameter: "a parameter: learned, not computed", isGiven: "given with the text", isZero: "0: no use of it reaches the loss", isMasked: "masked: no position sees it", isCancelled: "what is left of addends that cancel, up to rounding", pending: "…",
    yours: "Your number", right: "Right, to the digits you gave.", sign: "The size is right; the sign is turned.", place: "One decimal place off.", inverse: "That is its inverse: over and under the line are exchanged.", exp: "That is exp of it: one exp too many.", half: "That is half of it, or twice.", square: "That is its square.", notYet: (x) => `Not yet: ${x} from it.`,
    nexts: { byte: "Next byte", token: "Next token", word: "Next word" }, legend: "▭ model  ▬ drawn from", legendTitle: "The outline is the model’s own probability; filled is what the next token is drawn from, after the three settings.", cut: "cut", logitOf: (x) => `logit ${x}; click to ask for it`, temperature: "temperature", topk: "top-k", topp: "top-p", all: "all",
    added: (t) => `What added to “${t}”`, addedAgainst: (t, u) => `“${t}” rather than “${u}”`, logit: (x) => `logit ${x}`, by: (x) => `by ${x}`, against: "against", nobody: "nothing else", tokenItself: "the token itself", itsPosition: "its position", outputBias: "output bias", attentionBias: (b) => `block ${b} attention bias`, attentionOf: (b) => `block ${b} attention`, headN: (b, h) => `block ${b} head ${h}`, mlpOf: (b) => `block ${b} MLP`,
    code: "The code", derivative: "The derivative", files: "files", test: "test", page: "page", noCode: "A parameter: made by training, not by an equation.", tabMap: "Map", tabEquation: "Equation", tabNext: "Next", tabCode: "Code",
    tourNext: "Next →", tourBack: "Back", done: "Done", leaveTour: "Leave the tour", tourOpen: "Open …", tourOwn: "your own", tourWrite: "Write one", writeTitle: "A tour of your own", writeHow: "Go to a number, add it, write a sentence.", writeAdd: "Add the number shown", writeTry: "Try it", writeSave: "Save as a file", writeUp: "One up", writeOut: "Take it out", tours: ["A GPT in three minutes", "Where the gradient goes", "Why it said that"], tourBad: "This file is not a tour: a list of {address, en, zh}.",
    edit: "Change the text", textLabel: "Text", nextLabel: "what follows", use: "Compute", cancel: "Cancel", change: "Try another value", value: "value", off: "switch head off", isOff: "head off", unmask: "without the mask", changes: "Changed", undo: "Undo", lossWas: "loss", foretold: "the gradient predicted", foretoldTitle: "As if the loss went on straight along its slope: true for small changes", toChange: "change a weight →", along: "the loss along this number", compare: "Compare", compareWith: "Compare with", otherText: "another text", unchanged: "the model unchanged", theirs: "the port’s arrays", differsFirst: (n) => `The first that differs: ${n}`, same: "Nothing differs.", largest: (x) => `largest difference ${x}`, update: "The update of a parameter", train: "Train", trainText: "A text to learn from", trainFile: "From a file …", trainMinutes: "minutes", trainOr: "or", trainSteps: "steps", trainGo: "Go", trainStep: (n, all) => `step ${n} of ${all}`, trainPause: "Pause", trainOn: "Train on", trainBack: "‹ One back", trainOne: "One step ›", trainLeast: "at least 256 characters", trainLook: "Look at it now", trainSample: "Let it write", trainWatch: "Watch this weight", trainWhy: "Why it moved", trainEnd: "Save and end", trainNorm: "gradient’s length", trainSaved: (folder) => `saved in ${folder}`, leave: "Leave",
    keysList: [["← →", "the equation before, the next one"], ["shift ← →", "the same place, a block before or after"], ["↑ ↓", "a position of the text before or after"], ["1 … 9", "a head"], ["space", "forward or backward"], ["enter, arrows, enter", "into the matrix, to a cell, open it; esc leaves the matrix"], ["b, esc", "back through the last door"], ["z l m", "numbers in the cells; after each block; what the map’s bars show"], ["c t / e d", "cover the numbers; tour; find a place; change the text; dark or light"]],
  },
  zh: {
    other: "English", otherTitle: "英文", theme: "深色或浅色（d）", keys: "按键", close: "关闭", retry: "重试", key: "这台服务器需要 API 密钥。", keyName: "API 密钥", unlock: "使用",
    lost: "服务器没有回应。已有的内容仍可查看。", busy: "服务器正忙。", full: "文本太长。", failed: (why) => `服务器回应：${why}`,
    about: (name, step, size, loss) => `${name}${step} · ${size} 个参数 · 损失 ${loss}`, step: (n) => ` · 第 ${n} 步`, loading: "正在计算……",
    find: "查找位置   /", findLabel: "查找位置", forward: "前向", backward: "反向", flipKey: "前向或反向（空格）", cover: "遮住数字", coverShort: "遮住", coverTitle: "遮住数字，自己填（c）", tour: "导览",
    model: "模型", text: "文本", fromText: "从文本到损失", fromLoss: "从损失到文本", length: "长度", gradientLength: "梯度长度", shareOf: (t) => `对“${t}”的贡献`, differs: "差异", metric: "条形表示什么（m）",
    attentionN: (b) => `注意力 ${b}`, mlpN: (b) => `前馈 ${b}`, headLabel: (b, h) => `第 ${b} 块第 ${h} 头的注意力`, lengthAt: (x, t) => `位置 ${t} 处长度 ${x}`, shareAt: (x, t) => `“${t}”的 logit 中的 ${x}`, block: (b) => `第 ${b} 块`, blockHead: (b, h) => `第 ${b} 块 第 ${h} 头`,
    afterEach: "每块之后", lensTitle: "在每个半块之后，模型会说下一个词元是什么（l）", lensLabel: "每个半块之后最可能的下一个词元", plusAttention: (b) => `+ 注意力 ${b}`, plusMlp: (b) => `+ 前馈 ${b}`, start: "嵌入",
    chip: (t, id, next) => `位置 ${t}，词元 ${id}；后面是 ${next}`, trueNext: "文本中接下来的词元", stage: (v, p, y, q, n) => `${v} ${p}；真正的 ${y} 为 ${q}，排第 ${n}`, stageOnly: (v, p) => `${v} ${p}`,
    head: "头", usedBy: "用于", backwards: (title) => `${title}，反向`, parameter: "参数", made: "怎样算出", asks: "损失要它怎样", asksBy: (n) => `损失要它怎样（${n} 处用到）`, nudged: "微调验证", nudge: "微调这个数，重新计算损失", askGradient: "点击查看梯度：模型较大，反向需要一会儿。", agree: (n) => `${n} 位一致`, noGradient: "它没有梯度。", learned: "由训练学到，不是由公式算出。",
    read: "指向一格，看它由什么算出；点击打开。", matrix: (name, r, c) => `${name}，${r} 乘 ${c}；方向键移动，回车打开`, numbers: "在格子里显示数字（z）", whole: "整体", numbersTimes: (p) => `数字 × ${p}`, aParameter: "参数", masked: (c, r) => `‹${c}› 对 ‹${r}› 被遮住`, covered: "已遮住", falls: "下降", rises: "上升",
    backDoor: "返回上一个数（b）", doors: "走过的数", link: "链接", linkTitle: "复制这个数的地址", copied: "已复制", sumOf: (n) => `= ${n} 项之和，大的在前`, of: (what, n) => `${n} 项的 ${what}`, open: (n) => `展开这 ${n} 项`, below: "见下方展开", smaller: (n) => `其余 ${n} 个较小的`, largestOf: (n) => `其余 ${n} 个中最大的`, together: "合计", more: "更多", asAbove: "同上", kept: (what) => `由 ${what} 保留`,
    isLoss: "损失对自身的导数：反向从这里开始", isParameter: "参数：学到的，不是算出的", isGiven: "随文本给出", isZero: "0：它不影响损失", isMasked: "被遮住：没有位置看得到它", isCancelled: "相消之后剩下的舍入误差", pending: "……",
    yours: "你的答案", right: "对，到你给出的位数为止。", sign: "大小对了，符号反了。", place: "差了一位小数。", inverse: "这是它的倒数：分子分母颠倒了。", exp: "这是它的 exp：多取了一次 exp。", half: "差了一倍。", square: "这是它的平方。", notYet: (x) => `还不对：差 ${x}。`,
    nexts: { byte: "下一个字节", token: "下一个词元", word: "下一个词" }, legend: "▭ 模型  ▬ 抽取", legendTitle: "外框是模型自己的概率；填充是经过三项设置后实际抽取用的概率。", cut: "剔除", logitOf: (x) => `logit ${x}；点击查看`, temperature: "温度", topk: "top-k", topp: "top-p", all: "全部",
    added: (t) => `什么推高了“${t}”`, addedAgainst: (t, u) => `“${t}”而不是“${u}”`, logit: (x) => `logit ${x}`, by: (x) => `相差 ${x}`, against: "对比", nobody: "不对比", tokenItself: "词元本身", itsPosition: "它的位置", outputBias: "输出偏置", attentionBias: (b) => `第 ${b} 块注意力偏置`, attentionOf: (b) => `第 ${b} 块 注意力`, headN: (b, h) => `第 ${b} 块 第 ${h} 头`, mlpOf: (b) => `第 ${b} 块 前馈`,
    code: "代码", derivative: "导数", files: "文件", test: "测试", page: "页面", noCode: "参数：由训练得到，不是由公式算出。", tabMap: "地图", tabEquation: "公式", tabNext: "下一个", tabCode: "代码",
    tourNext: "下一站 →", tourBack: "上一站", done: "完成", leaveTour: "离开导览", tourOpen: "打开……", tourOwn: "自己的", tourWrite: "自己写", writeTitle: "自己的导览", writeHow: "找到一个数，加进来，写一句话。", writeAdd: "加入当前这个数", writeTry: "试一遍", writeSave: "存为文件", writeUp: "上移", writeOut: "去掉", tours: ["三分钟看懂 GPT", "梯度去了哪里", "它为什么这么说"], tourBad: "这个文件不是导览：应为 {address, en, zh} 的列表。",
    edit: "修改文本", textLabel: "文本", nextLabel: "接下来是", use: "计算", cancel: "取消", change: "换一个值试试", value: "值", off: "关闭这个头", isOff: "头已关闭", unmask: "去掉掩码", changes: "已改动", undo: "撤销", lossWas: "损失", foretold: "梯度预测", foretoldTitle: "假设损失沿斜率直线变化：只对小的改动准确", toChange: "改一个权重 →", along: "损失随这个数的变化", compare: "对比", compareWith: "与什么对比", otherText: "另一段文本", unchanged: "未改动的模型", theirs: "移植版的数组", differsFirst: (n) => `最先不同之处：${n}`, same: "没有不同。", largest: (x) => `最大差异 ${x}`, update: "参数的更新", train: "训练", trainText: "用来学习的文本", trainFile: "从文件读取……", trainMinutes: "分钟", trainOr: "或", trainSteps: "步", trainGo: "开始", trainStep: (n, all) => `第 ${n} 步，共 ${all} 步`, trainPause: "暂停", trainOn: "继续训练", trainBack: "‹ 退一步", trainOne: "走一步 ›", trainLeast: "至少 256 个字符", trainLook: "看看现在的模型", trainSample: "让它写", trainWatch: "跟踪这个权重", trainWhy: "它为什么变", trainEnd: "保存并结束", trainNorm: "梯度范数", trainSaved: (folder) => `已保存到 ${folder}`, leave: "离开",
    keysList: [["← →", "上一个、下一个公式"], ["shift ← →", "前一块、后一块的同一位置"], ["↑ ↓", "文本中前一个、后一个位置"], ["1 … 9", "第几个头"], ["空格", "前向或反向"], ["回车、方向键、回车", "进入矩阵，移到一格，打开它；Esc 离开矩阵"], ["b、esc", "返回上一个数"], ["z l m", "格子里的数字；每块之后；地图条形的含义"], ["c t / e d", "遮住数字；导览；查找；修改文本；深色或浅色"]],
  },
};

export const say = speaking(WORDS);
/** A text of the server in the language of the page. @param {{en: string, zh: string} | undefined} both */
export const inLanguage = (both) => both?.[language] ?? both?.en ?? "";
