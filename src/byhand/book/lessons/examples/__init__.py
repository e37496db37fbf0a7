"""Worked examples to do on paper, one file each: `lesson(array)` computes all of it from the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.equations import of_equations
from byhand.book.lessons.changes import with_changes
from byhand.book.lessons.lesson import Content, Lesson
from byhand.book.numbers import closed_form
from byhand.book.numbers.exact import exact_array
from byhand.book.words.language import Words
from byhand.engine import registry
from byhand.errors import ByhandError, suggestion

Maker = Callable[[Any], np.ndarray]  # turns nested closed forms into an array
TITLES = {
    "nudges": Words(
        "Nudges: what a gradient is, from one number to a graph", "微扰一个数：梯度是什么，从一个数到一张图"
    ),
    "paper-gpt": Words(
        "A GPT on paper: four words to loss, every gradient, one update",
        "纸上的 GPT：从四个词到损失、全部梯度与一次更新",
    ),
    "matrix-core": Words("The 2 × 2 matrix core, trained on one row", "2 × 2 矩阵核心，用一行训练"),
    "matrix-core-rows": Words("The 2 × 2 matrix core, trained on both rows", "2 × 2 矩阵核心，用两行训练"),
    "matrix-core-exercise": Words(
        "Stand-alone exercise: from a prediction to new value weights", "独立练习：由预测求出值的新权重"
    ),
    "post-norm": Words(
        "A post-norm block with ReLU and two heads, without a mask", "后置归一化、ReLU、两个头、无掩码的块"
    ),
    "attention-index": Words("One attention score traced to flat offsets", "追踪一个注意力分数的内存偏移量"),
    "memory-layout": Words("Where an element lies in row-major memory", "元素在行主序内存中的位置"),
    "multi-head": Words("The same input through one head and through two", "同一输入经过一个头与两个头"),
    "kv-cache": Words("Three tokens with and without a KV cache", "三个词元：有与没有键值缓存"),
    "sampling": Words("Temperature and top-k on four logits", "四个 logits 上的温度与 top-k"),
    "bpe": Words("Byte-pair encoding: four merges, then a new word", "字节对编码：四次合并，再编码一个新词"),
    "cross-entropy": Words("Cross-entropy and its gradient", "交叉熵及其梯度"),
    "gelu": Words("GELU and its slope", "GELU 及其斜率"),
    "layer-norm": Words("LayerNorm and what its derivative removes", "层归一化，以及它的导数去掉了什么"),
    "adamw": Words("Two steps of AdamW", "AdamW 的两步"),
    "matmul": Words(
        "Matrix product: forward and backward, then one weight for many rows",
        "矩阵乘法：正向与反向，以及多行共用一个权重",
    ),
    "embedding": Words("Embedding: from ids to vectors and back", "嵌入：从编号到向量，再传回梯度"),
    "softmax": Words("Softmax and what its derivative removes", "Softmax，以及它的导数去掉了什么"),
    "attention": Words("Attention of one head, forward and back", "注意力：一个头，正向与反向"),
    "classifier": Words("A classifier of four tiny pictures, trained for one step", "四张小图的分类器，训练一步"),
    "rotary": Words("Rotary positions: one token at three positions", "旋转位置编码：同一词元在三个位置"),
    "residual": Words("Residual connection: why the gradient survives depth", "残差连接：梯度为何能穿过很深的网络"),
}


def make(name: str, exact: bool = False, changes: Sequence[str] = ()) -> Lesson:
    """Build a worked example, with exact forms if `exact`, and with `changes` of its numbers, such as `W_K=W_Q`.

    Raises ByhandError for a wrong name, or a change that cannot be made.
    """
    return _made(find(name), exact, tuple(changes))


@cache
def _made(name: str, exact: bool, changes: tuple[str, ...]) -> Lesson:
    with np.errstate(all="ignore"):
        if changes:
            content = _changed(name, exact, changes)
        elif name in TITLES:
            content = _file_of(name).lesson(numbers(exact))
        else:
            content = _of_entry(name, exact)
        intro, steps, given = content
        title = TITLES[name] if name in TITLES else of_equations()[name].title
        return Lesson(name, title, intro, tuple(steps), given, changes)


def _changed(name: str, exact: bool, changes: tuple[str, ...]) -> Content:
    able = {key: _file_of(key) for key in TITLES if hasattr(_file_of(key), "GIVEN")}
    if name not in able:
        raise ByhandError(f"--set cannot change {name}. Use it with {', '.join(able)}.")
    start = with_changes(able[name].GIVEN, changes, getattr(able[name], "CHOICES", {}))
    _, steps, given = able[name].lesson(numbers(exact), start)
    said = ", ".join(changes)
    return Words(f"Changed: {said}.", f"改动：{said}。"), steps, given


def _file_of(name: str) -> Any:
    return _file(name.replace("-", "_"))


def _of_entry(stem: str, exact: bool) -> Content:
    try:
        return _file("of_entry").lesson(stem, numbers(exact))
    except TypeError:
        if not exact:
            raise
        raise ByhandError(f"{stem} uses functions that have no exact form. Leave out --exact.") from None


def _file(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def find(name: str) -> str:
    """Return the name of the example with this name, title, or part of a single title, in either language.

    An equation that no example is named after has one of its entry's numbers. Raises ByhandError if there is none, or
    several.
    """
    asked = _plain(name[:80])
    if asked in TITLES:
        return asked
    titles = {(key, title): _plain(title) for key, words in TITLES.items() for title in (words.en, words.zh)}
    for fits in (str.startswith, str.__contains__):
        found = sorted({key for (key, _), title in titles.items() if len(asked) > 1 and fits(title, asked)})
        if len(found) == 1:
            return found[0]
        if found:
            raise ByhandError(f"{name[:80]!r} fits several worked examples. Use one of {', '.join(found)}.")
    for stem, entry in ENTRIES.items():
        if asked in map(_plain, (stem, registry[stem].title, entry.title_zh)):
            return stem
    raise ByhandError(f"there is no worked example or equation {name[:80]!r}. {suggestion(asked, TITLES)}")


def _plain(name: str) -> str:
    """Return a name in the form of the lessons' names: `Cross_Entropy` becomes `cross-entropy`."""
    return name.casefold().replace("_", "-").replace(" ", "-")


def numbers(exact: bool) -> Maker:
    """Return the function that makes arrays of Exacts, or of float64."""
    return (lambda nested: exact_array(closed_form.array(nested))) if exact else closed_form.array
