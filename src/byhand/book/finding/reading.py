"""Guides and lessons as answers: the questions that lead to each. A guide not named here is found by its title."""

import ast
from functools import cache
from pathlib import Path

from byhand.book.finding import source
from byhand.book.finding.finding import Finding, split
from byhand.book.words.language import PAGE, Words
from byhand.book.words.tables import cells

FOLDER = "docs/guides"
LESSONS = "book/lessons/examples"

# file of a guide | questions, separated by commas; an indented line continues the one above it
GUIDES = """
learn-by-hand | worked example on paper, by hand, pen and paper, calculate a GPT by hand,
    compute a transformer by hand, GPT on paper, step by step, 手算, 手算 GPT, 手算 Transformer, 纸上的 GPT,
    用纸笔计算, 一步一步算
matrix-core | 2x2 example, self-attention by hand, how do transformers work, how does a transformer work,
    how does attention work, why each step matters, 2×2 例子, 矩阵核心, 手算注意力, 注意力是怎么工作的,
    Transformer 原理, 注意力原理
training-and-generation | what happens in a training step, how does training work, how does generation work,
    training versus inference, from training to generation, how to run, 训练一步发生了什么, 训练时发生了什么,
    推理时发生了什么, 训练和推理的区别, 训练的流程
autograd-and-memory | how does backward work, how does backpropagation work, how does autograd work,
    how backpropagation works, how are arrays stored, 自动微分, 反向传播的原理, 自动求导, 反向传播是怎么工作的,
    内存布局, 自动微分的原理
multi-head-attention | why several heads, why multiple heads, how does multi-head attention work, one head or many,
    为什么要多个头, 为什么需要多头, 多头注意力的原理
kv-cache | how does the KV cache work, why is a KV cache faster, why cache keys and values, KV缓存为什么能加速,
    为什么要缓存键和值, KV 缓存的原理
classifier | digit classifier, letter classifier, classify digits, recognise digits, image classifier,
    handwritten digits, MNIST, two-layer network, network without attention, a model of my own, XOR, 数字分类器,
    字母分类器, 识别数字, 数字识别, 图像分类, 手写数字, 两层网络
attention-index | index of an attention score, attention as loops, offset of a score, 注意力的下标, 注意力循环
equation-to-code | all equations, list of equations, map of equations, math to code, 所有公式, 公式列表, 公式对照代码
structures-to-math | classes and their mathematics, what does each class stand for, tour of the classes,
    类和公式的对应
reading-order | where to start, how to read the code, which file first, set a breakpoint, debugger, 从哪里开始,
    怎么读代码, 代码阅读顺序, 先看哪个文件, 断点
design-choices | design choices, design decisions, why these choices, why this initialisation, what do others do,
    设计选择, 为什么这样设计, 为什么这样初始化, 其他模型怎么做
fast-runtime | why is the loops runtime fast, how are kernels fused, how does compiling work, kernel fusion,
    为什么快, 内核融合, 怎样编译, 编译型运行时的原理
glossary | list of terms, terminology, glossary, 术语表, 术语, 名词解释, 中英对照
"""

# lesson of `byhand work` | questions, separated by commas
ASKED_OF_LESSONS = """
paper-gpt | work a GPT by hand, exercise, practise, quiz, 练习, 习题
matrix-core | 2x2 attention exercise, 2×2 练习
classifier | digit classifier on paper, 纸上的分类器
"""


def questions(table: str) -> dict[str, str]:
    """Return the questions of each row by its name."""
    return {name: asked for _, (name, asked) in cells(table)}


@cache
def guides() -> tuple[Finding, ...]:
    """Return the guides; without pages, in an installed package, a file's name replaces the title."""
    asked, root = questions(GUIDES), source.repository()
    if root is None:
        return tuple(_guide(stem, Words(stem.replace("-", " "), stem), said) for stem, said in asked.items())
    found = []
    for path in sorted((root / FOLDER).glob("*.zh-CN.md")):
        stem = path.name.removesuffix(PAGE.zh)
        en, zh = (_heading(path.with_name(stem + ending)) for ending in (PAGE.en, PAGE.zh))
        found.append(_guide(stem, Words(en, zh), asked.get(stem, "")))
    return tuple(found)


def _guide(stem: str, title: Words, asked: str) -> Finding:
    folder, _, kind = FOLDER.partition("/")
    return Finding(name=f"{kind}/{stem}", title=title, kind="guide", asked=split(asked), pages=folder)


def _heading(path: Path) -> str:
    """Return the first heading of a page."""
    with path.open(encoding="utf-8") as page:
        return next((line[2:].strip() for line in page if line.startswith("# ")), path.stem)


@cache
def lessons() -> tuple[Finding, ...]:
    """Return the worked examples; their titles are parsed from the source, since importing it would import NumPy."""
    asked = questions(ASKED_OF_LESSONS)
    titles = source.statement(source.PACKAGE / LESSONS / "__init__.py", "TITLES").value
    found = []
    for key, words in zip(titles.keys, titles.values, strict=True):
        name, (en, zh) = ast.literal_eval(key), map(ast.literal_eval, words.args[:2])
        found.append(
            Finding(
                name=f"work {name}",
                title=Words(en, zh),
                kind="lesson",
                code=(source.PACKAGE / LESSONS / f"{name.replace('-', '_')}.py", "lesson"),
                asked=split(asked.get(name, "")),
            )
        )
    return tuple(found)
