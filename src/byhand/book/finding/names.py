"""Names in programs: what a dotted name, a call, a keyword or a flag of another program is called by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from byhand.book.finding.words import parts

CALL = "\0"  # stands for brackets and what they hold
NAME = re.compile(rf"(?<![\w.:])[A-Za-z_]\w*(?:{CALL}*(?:\.|::|->)[A-Za-z_]\w*)*{CALL}*", re.ASCII)
BETWEEN = re.compile(rf"{CALL}*(?:\.|::|->)")
# marks of such a name
ALONE = re.compile(rf"\w\w(?:\.|::|->)\w|^[A-Za-z]\.[A-Za-z]|\w_\w|[a-z][a-z][A-Z][a-z]|{CALL}")
AMONG = re.compile(r"\w\w(?:\.|::|->|_)\w\w")
OPERATOR = re.compile(r"[\\+@/^*<>√Σ∑∂·×÷]|\s[-=]\s|^\s*[-−][^-\w]|^\s*[-−]\w+[([\0]")
INSIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
KEYWORD = re.compile(r"\b([A-Za-z_]\w{3,})\s*[:=](?![=:])")
SETTINGS = re.compile(r"(?:Config|Args|Arguments|Params|Options|Trainer)\W*$")  # a call that only holds settings
WITHIN = re.compile(r"^.*?(?:里面?的?|中的|的)\s*(?=[A-Za-z_]{3})")  # config.json里的hidden_size
FLAG = re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)")
PREFIX = re.compile(r"^(?:transformer\.|model\.|self\.)*(?:(?:blocks|layers|h)\.\d+\.)?")
SUFFIX = re.compile(r"(?<=\w)\.(?:weight|bias)$")
VARIABLE = re.compile(r"^[a-z]$")  # x.view and q.view are one
GENERAL = frozenset(["weight", "bias", "forward", "apply", "call", "__call__", "__init__", "init", "initialize"])
VENDOR = re.compile(
    r"^(?:ggml|llama|llm|gguf|common|cublas|nccl)_(?:sampler_|sampling_)?(?:init_|get_|set_)?"
    r"|_(?:ext|impl|inplace|forward|backward|fwd|bwd|kernel|cuda|f32|op)$"
)
ASSIGNED = re.compile(
    r"""\s*(?:--)?([A-Za-z]\w+)["']?\s*[=:]\s*(?:-?[\d.][\de.,_-]*|True|False|None|true|false|null|["'].*["']|\[.*\]|\{.*\})\s*"""
)
PROGRAMS = frozenset(["llama.cpp", "llm.c", "llama2.c", "config.json", "train.py", "model.py"])
AROUND = (
    "pytorch torch tensorflow tf keras jax flax optax numpy np huggingface hugging face transformers hf peft nanogpt "
    "llama cpp gpt equivalent equivalents counterpart corresponds correspond called name alternative same project "
    "byhand python py main command flag function method class option argument 对应 对应于 等价 叫 等于 相当于 相当 "
    "里 中 命令 函数 参数 类 方法 选项 这里 接口 写法 怎么写 用法"
)
ABOUT = frozenset(AROUND.split())  # words around a name that ask for its counterpart
# what a name counts: a setting alone, one that is the whole question, one in a sentence, an argument
SETTING, WHOLE, AMONG_WORDS, KEYWORDS = 1.8, 1.75, 0.95, 0.9
OWNER = 1.85  # what a part of a dotted name before its end counts, if only what the model lacks is called so


def spellings(given: str) -> Iterator[tuple[list[str], float]]:
    """Yield, for each name of a program in a question, what to look up, the longest first, and what it counts."""
    given = WITHIN.sub("", given)
    yield [SUFFIX.sub("", PREFIX.sub("", given))], 1.9
    if assigned := ASSIGNED.fullmatch(given):
        yield [assigned[1]], SETTING
    outer, before = given, ""
    while outer != before:
        before, outer = outer, INSIDE.sub(CALL, outer)
    program = next(iter(re.findall(r"[\w.-]+", given)), "")
    main = "llama-cli" if "llama" in given else program
    for flag in FLAG.findall(given):
        if "-" in program and program != main:
            yield [program], SETTING  # llama-perplexity -f FILE
        yield [f"{main} {flag}", *([flag] if flag.startswith("--") else [])], WHOLE
    names = [name for name in NAME.findall(outer) if ALONE.search(name)]
    alone = len(names) == 1 and not {*parts(outer.replace(names[0], " ").lower())} - ABOUT
    names = [name for name in names if name.lower() not in PROGRAMS]
    if OPERATOR.search(outer):  # a formula
        return
    for name in names:
        pieces = BETWEEN.split(name.rstrip(CALL))
        if VARIABLE.match(pieces[0]):
            pieces[0] = "x"
        for owner in pieces[:-1]:
            yield [owner], OWNER
        if alone or AMONG.search(name):
            yield list(_shortened(pieces)), WHOLE if alone else AMONG_WORDS
    keywords = KEYWORD.findall(given)
    for keyword in keywords:
        only = len(keywords) == 1 and (not names or SETTINGS.search(names[0]))
        yield [keyword], SETTING if only else KEYWORDS


def _shortened(pieces: list[str]) -> Iterator[str]:
    """Yield a dotted name and its ends, first without general names at its end; then without a vendor's marks."""
    known = len(pieces)
    while known > 1 and pieces[known - 1] in GENERAL:
        known -= 1
    yield ".".join(pieces)
    for end in dict.fromkeys((known, len(pieces))):
        yield from (".".join(pieces[at:end]) for at in range(end))
    plain = VENDOR.sub("", pieces[known - 1])
    if plain and plain != pieces[known - 1]:
        yield plain
