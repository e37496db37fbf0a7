/** What the chat page says, in two languages. */
import { speaking } from "./language.js";

const WORDS = {
  en: {
    other: "中文", settings: "Settings", theme: "Dark or light", fresh: "New chat", close: "Close", conversation: "Conversation",
    ask: "Ask something", stop: "Stop (Esc)", send: "Send (Enter)", again: "Regenerate", copy: "Copy",
    earlier: "Earlier version", later: "Later version", version: "version",
    title: "Ask a model that you can take apart",
    below: "Point at any token to see what else the model might have said.",
    tries: ["What is a gradient, in two sentences?", "Write three names for a small black cat.", "Why is the sky blue?"],
    temperature: "temperature", top_k: "top-k", top_p: "top-p", min_p: "min-p", max_tokens: "longest", seed: "seed",
    all: "all", system: "System message", shade: "Color by probability: darker is more surprising", same: "The same in a terminal",
    answer: "Answer; the left and right arrow keys go from token to token", you: "You", writing: "writing",
    tokens: (n) => `${n} token${n === 1 ? "" : "s"}`, speed: (n) => `${n}/s`, bits: (n) => `${n} bits a token`,
    surprise: (n) => `${n} bits`, part: (i, n) => `byte ${i} of ${n}`, ends: "ends the answer",
    stopped: "stopped", length: "longest answer reached", context: "context full",
    retry: "Try again", busy: "The server is busy: too many answers wait.",
    lost: "The connection to the server was lost.", failed: (why) => `The server says: ${why}`,
    full: "The conversation no longer fits into the model's context.", forget: "Forget the oldest half and try again",
    long: "This question alone is longer than the model's context.", edit: "Edit the question",
    key: "This server needs its API key.", keyName: "API key", unlock: "Use it",
    reloaded: (version) => `The model was reloaded: this answer is by ${version}.`,
  },
  zh: {
    other: "English", settings: "设置", theme: "深色或浅色", fresh: "新对话", close: "关闭", conversation: "对话",
    ask: "问点什么", stop: "停止（Esc）", send: "发送（Enter）", again: "重新生成", copy: "复制",
    earlier: "上一个版本", later: "下一个版本", version: "版本",
    title: "向一个可以拆开来看的模型提问",
    below: "把指针放在任一词元上，看看模型还可能说什么。",
    tries: ["用两句话解释什么是梯度。", "给一只小黑猫起三个名字。", "天空为什么是蓝色的？"],
    temperature: "温度", top_k: "top-k", top_p: "top-p", min_p: "min-p", max_tokens: "最长", seed: "种子",
    all: "全部", system: "系统消息", shade: "按概率着色：越深越意外", same: "在终端里这样写",
    answer: "回答；用左右方向键逐个查看词元", you: "你", writing: "正在写",
    tokens: (n) => `${n} 个词元`, speed: (n) => `每秒 ${n} 个`, bits: (n) => `平均 ${n} 比特`,
    surprise: (n) => `${n} 比特`, part: (i, n) => `字节 ${i}/${n}`, ends: "结束回答",
    stopped: "已停止", length: "已达最长回答", context: "上下文已满",
    retry: "重试", busy: "服务器正忙：等待的回答太多。",
    lost: "与服务器的连接断开了。", failed: (why) => `服务器回应：${why}`,
    full: "对话已超出模型的上下文。", forget: "忘掉较早的一半并重试",
    long: "单是这个问题就超出了模型的上下文。", edit: "修改问题",
    key: "这台服务器需要 API 密钥。", keyName: "API 密钥", unlock: "使用",
    reloaded: (version) => `模型已重新加载：这个回答来自 ${version}。`,
  },
};

export const say = speaking(WORDS);
