"""Generated blocks about shapes and order: settings, parameters, the recorded graph, offsets in flat memory.

Their example model is small enough for paper: three tokens, width 4, two heads, four tokens to choose from.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from byhand.book.finding import source
from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.attention_index import PLACE, queries_and_keys
from byhand.book.lessons.examples.memory_layout import offset
from byhand.book.lessons.examples.paper_gpt import CONFIG as PAPER
from byhand.book.lessons.letters import PARAMETERS
from byhand.book.numbers import closed_form as example
from byhand.book.numbers.arithmetic import expression
from byhand.book.pages.blocks.family import PUBLISHED, TOTAL
from byhand.book.pages.blocks.markdown import Rows, block, inline, link_equation, table, table_block
from byhand.book.words.language import Words, say
from byhand.config import ModelConfig
from byhand.engine.backward import applications
from byhand.equations.split_qkv import split_qkv
from byhand.model import TinyGPT, parameter_shapes

EXAMPLE = ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2)
TOKENS, TARGETS = [[2, 1, 3]], [[1, 3, 0]]
FIRST = 4  # settings of the original program
SEED = {"wte": "wte_", "wpe": "wpe_", "lm_head.w": "w_lm_", "lm_head.b": "b_lm_"}


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> Letter:
        """Return the letter with its factor in front, unless that is 1."""
        return self if factor == 1 else Letter(f"{factor}{self}")


@table_block(
    "Parameter|Symbol|Shape|Default|Numbers|In the original program", "参数|符号|形状|默认值|个数|在原 C++ 程序中"
)
def parameters() -> Rows:
    """Every parameter of the default model: symbol, shape in letters and in numbers, how many numbers it holds."""
    config = ModelConfig()
    sizes = {"vocab_size": "V", "seq_len": "T_max", "d_model": "C", "head_width": "C", "ff_width": "F"}
    others = {
        name: getattr(config, name) for name in ("kv_heads", "gated", "layer_kinds")
    }  # with one head its width is C
    letters: Any = SimpleNamespace(**vars(config) | others | {name: Letter(letter) for name, letter in sizes.items()})
    shapes = parameter_shapes(config)
    for name, shape in parameter_shapes(letters).items():
        short = name.removeprefix("blocks.0.")
        seed = SEED.get(short, short.rpartition(".")[2])
        size, written = math.prod(shapes[name]), f"[{', '.join(map(str, shape))}]"
        yield f"`{name}`", inline(PARAMETERS[short]), written, list(shapes[name]), size, f"`{seed}`"
    yield TOTAL, "", "", "", sum(map(math.prod, shapes.values())), ""


@table_block("|Counts|Here|Default|GPT-2 (124M)", "|含义|本页|默认|GPT-2 (124M)")
def sizes() -> Rows:
    """The sizes of the paper model, the default model and GPT-2, and their meanings."""
    counted = {
        "B": Words("sequences in a batch", "一个批次中的序列数"),
        "T": Words("tokens in a sequence", "一条序列的词元数"),
        "C": Words("columns of a token's vector", "每个词元向量的列数"),
        "H": Words("attention heads", "注意力头数"),
        "D": Words("columns of a head, C / H", "每个头的列数，即 C / H"),
        "F": Words("features of the MLP", "前馈网络的特征数"),
        "L": Words("blocks", "块数"),
        "V": Words("tokens in the vocabulary", "词表中的词元数"),
    }
    shown = [
        (b, c.seq_len, c.d_model, c.n_heads, c.head_width, c.ff_width, c.n_layers, c.vocab_size)
        for b, c in ((1, PAPER), (16, ModelConfig()), (512, PUBLISHED))
    ]
    for (letter, words), *lengths in zip(counted.items(), *shown, strict=True):
        yield f"`{letter}`", words, *lengths


def _unbroken(words: list[str]) -> str:
    """Join words of Chinese: a line's end, behind a sign of its own, is no space."""
    return " ".join(words).replace("； ", "；").replace("。 ", "。").replace("， ", "，")


@block
def config(page: Path, lang: str) -> str:
    """The settings of a model: those of the original program, and folded all others."""
    head, rows = Words("Field|Default|Meaning", "字段|默认值|含义"), [*_settings()]
    summary = Words("The other settings, with their defaults", "其余设置及其默认值").said(lang)
    others = table(head, rows[FIRST:], lang)
    return f"{table(head, rows[:FIRST], lang)}\n\n<details><summary>{summary}</summary>\n\n{others}\n\n</details>"


def _settings() -> Rows:
    """Yield each setting of a model: field, default, meaning."""
    body = source.statement(source.PACKAGE / "model_config.py", "ModelConfig").body
    for field, *below in zip(body, body[1:], body[2:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            en, zh = (ast.literal_eval(words.value).split() for words in below if isinstance(words, ast.Expr))
            name = field.target.id
            default = getattr(ModelConfig(), name)
            yield f"`{name}`", "" if default == "" else f"`{default}`", Words(" ".join(en), _unbroken(zh))


@block
def graph(page: Path, lang: str) -> str:
    """Every application of an equation between the tokens and the loss of the example model, as it is recorded."""
    loss = TinyGPT(EXAMPLE, dtype="float64").loss(TOKENS, TARGETS)
    rows = []
    for number, node in enumerate(applications(loss), 1):
        symbols = zip(node.inputs, node.equation.inputs, strict=False)
        inputs = ", ".join(f"`{tensor.name or symbol.name}`" for tensor, symbol in symbols)
        shape = f"[{','.join(map(str, node.results[0][0]))}]"
        shown = f"{len(node.results)} × {shape}" if len(node.results) > 1 else shape
        rows.append((number, link_equation(page, node.equation.name, lang), inputs, f"`{node.name}`", shown))
    return table(Words("|Equation|Inputs|Result|Shape", "|公式|输入|结果|形状"), rows, lang)


@table_block("Array|Element|Worked|Offset", "数组|元素|算式|偏移量")
def offsets() -> Rows:
    """Offsets of some elements of (B, T, C) and (B, H, T, S) arrays in flat memory."""
    for letters, shape, places in (
        ("B,T,C", (2, 3, 4), ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3))),
        ("B,H,T,S", (2, 2, 3, 3), ((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 2, 2))),
    ):
        for place in places:
            yield f"[{letters}] = {list(shape)}", list(place), expression(offset(place, shape)), _flat(place, shape)


@block
def score_offsets(page: Path, lang: str) -> str:
    """The queries and keys of the lesson in flat memory, and every number of its score with its arithmetic."""
    flat = [f"{x.name} = {x.data.astype(int).ravel().tolist()}" for x in queries_and_keys(example.array)]
    rows = [
        (step.title, *(f"`{say(text, lang)}`" for text in (number.label, number.expression, number.shown)))
        for step in make("attention-index").steps
        for number in step.numbers
    ]
    shown = table(Words("Step|Number|Arithmetic|Value", "步骤|数|算式|值"), rows, lang)
    return "\n".join(["```text", *flat, "```", "", shown])


@table_block(
    "Number|Offset in [B,H,T,D]|Element of [B,T,3C]|Offset in [B,T,3C]|Value",
    "数|在 [B,H,T,D] 中的偏移量|在 [B,T,3C] 中的元素|在 [B,T,3C] 中的偏移量|值",
)
def packed_offsets() -> Rows:
    """Offsets of the numbers of the lesson's score: in queries and keys by head, and in the packed projection."""
    b, h, t, s = PLACE
    q, k = (x.data for x in queries_and_keys(example.array))
    _, heads, _, width = q.shape
    packed = split_qkv.vjp((), (q, k, np.zeros_like(q)), n_heads=heads)[0]  # side by side again
    for name, array, position, part in (("q", q, t, 0), ("k", k, s, 1)):
        for d in range(width):
            by_head, side_by_side = (b, h, position, d), (b, position, (part * heads + h) * width + d)
            flat = _flat(side_by_side, packed.shape)
            element = f"`{name}[{','.join(map(str, by_head))}]`"
            yield element, _flat(by_head, array.shape), list(side_by_side), flat, f"{packed.ravel()[flat]:g}"


def _flat(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return int(offset(place, shape).value)
