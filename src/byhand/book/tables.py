"""Generated tables of numbers, shapes and orders: each is worked out by the code that it describes.

The example model of these tables is small enough for paper: three tokens, width 4, two heads, four tokens to
choose from.
"""

from __future__ import annotations

import ast
import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from byhand.book import chinese, source
from byhand.book.blocks import block, display_lines, inline, link_equation, say, table
from byhand.config import ModelConfig
from byhand.engine import Tensor, no_grad
from byhand.engine.backward import applications
from byhand.engine.interpreter import Evaluate, interpreting
from byhand.equations import attention_scores, causal_softmax, softmax, split_qkv, temperature, top_k, top_p
from byhand.generation import KVCache
from byhand.model import TinyGPT, parameter_shapes

EXAMPLE = ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2)
TOKENS, TARGETS = [[2, 1, 3]], [[1, 3, 0]]
LOGITS = np.array([2.0, 1.0, 0.0, -1.0])
LATEX = {
    "wte": "W_{te}",
    "wpe": "W_{pe}",
    "attn.w_qkv": "W_{qkv}",
    "attn.b_qkv": "b_{qkv}",
    "attn.w_proj": "W_{proj}",
    "attn.b_proj": "b_{proj}",
    "mlp.w_fc": "W_{fc}",
    "mlp.b_fc": "b_{fc}",
    "mlp.w_out": "W_{out}",
    "mlp.b_out": "b_{out}",
    "lm_head.w": "W_{lm}",
    "lm_head.b": "b_{lm}",
}
SEED = {"wte": "wte_", "wpe": "wpe_", "lm_head.w": "w_lm_", "lm_head.b": "b_lm_"}


def decimals(value: float) -> str:
    """Return a number with six decimals, the precision of every worked number; never a negative zero."""
    return f"{round(value, 6) + 0.0:.6f}"


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> Letter:
        """Return the letter with its factor in front."""
        return Letter(f"{factor}{self}")


@block
def parameters(page: Path, lang: str) -> str:
    """Every parameter of the default model: symbol, shape in letters and in numbers, how many numbers it holds."""
    config = ModelConfig()
    letters: Any = SimpleNamespace(
        vocab_size=Letter("V"),
        seq_len=Letter("T"),
        d_model=Letter("C"),
        ff_width=Letter("F"),
        n_layers=config.n_layers,
        norm_affine=config.norm_affine,
        norm_position=config.norm_position,
        tied_embeddings=config.tied_embeddings,
        lm_head_bias=config.lm_head_bias,
    )
    shapes = parameter_shapes(config)
    rows = []
    for name, shape in parameter_shapes(letters).items():
        short = name.removeprefix("blocks.0.")
        seed = SEED.get(short, short.rpartition(".")[2])
        size = math.prod(shapes[name])
        rows.append(
            (
                f"`{name}`",
                inline(LATEX[short]),
                f"[{', '.join(map(str, shape))}]",
                list(shapes[name]),
                size,
                f"`{seed}`",
            )
        )
    total = sum(math.prod(shape) for shape in shapes.values())
    rows.append((say(lang, "together", "合计"), "", "", "", total, ""))
    head = say(
        lang, "Parameter|Symbol|Shape|Default|Numbers|In the seed program", "参数|符号|形状|默认值|个数|在种子程序中"
    )
    return table(head.split("|"), rows)


@block
def config(page: Path, lang: str) -> str:
    """The settings of a model: field, default, meaning."""
    tree = source.tree(source.PACKAGE / "config.py")
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelConfig").body
    rows = []
    for field, words in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(words, ast.Expr):
            name = field.target.id
            meaning = say(lang, ast.literal_eval(words.value), chinese.CONFIG[name])
            rows.append((f"`{name}`", f"`{getattr(ModelConfig(), name)}`", meaning))
    return table(say(lang, "Field|Default|Meaning", "字段|默认值|含义").split("|"), rows)


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
    return table(say(lang, "|Equation|Inputs|Result|Shape", "|公式|输入|结果|形状").split("|"), rows)


@block
def offsets(page: Path, lang: str) -> str:
    """Where elements of (B, T, C) and (B, H, T, S) arrays stand in flat memory."""
    rows = []
    for letters, shape, places in (
        ("B,T,C", (2, 3, 4), ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3))),
        ("B,H,T,S", (2, 2, 3, 3), ((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0), (1, 1, 2, 2))),
    ):
        for place in places:
            rows.append((f"[{letters}] = {list(shape)}", list(place), _horner(place, shape), _offset(place, shape)))
    return table(say(lang, "Array|Element|Worked|Offset", "数组|元素|算式|偏移量").split("|"), rows)


def _horner(place: tuple[int, ...], shape: tuple[int, ...]) -> str:
    text = str(place[0])
    for i, n in zip(place[1:], shape[1:], strict=True):
        text = f"({text}) × {n} + {i}" if "+" in text else f"{text} × {n} + {i}"
    return text


def _offset(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(place, shape))


@block
def score_offsets(page: Path, lang: str) -> str:
    """One attention score, from the flat memory of the packed projection to that of the scores."""
    b, h, t, s = 0, 1, 2, 0
    heads, length, width, head_width = EXAMPLE.n_heads, EXAMPLE.seq_len, EXAMPLE.d_model, EXAMPLE.head_width
    packed = packed_example()
    flat = packed.ravel()
    rows, products = [], []
    for d in range(head_width):
        at_q = (b, t, h * head_width + d)
        at_k = (b, s, width + h * head_width + d)
        i, j = _offset(at_q, packed.shape), _offset(at_k, packed.shape)
        products.append(flat[i] * flat[j])
        rows.append((d, list(at_q), i, f"{flat[i]:g}", list(at_k), j, f"{flat[j]:g}", f"{products[-1]:g}"))
    head = say(
        lang,
        "d|q in [B,T,3C]|Offset|Value|k in [B,T,3C]|Offset|Value|Product",
        "d|q 在 [B,T,3C] 中|偏移量|值|k 在 [B,T,3C] 中|偏移量|值|乘积",
    )
    q, k, _ = split_qkv.forward(packed, n_heads=heads)[0]
    score = attention_scores.forward(q, k)[0][b, h, t, s]
    place = _offset((b, h, t, s), (1, heads, length, length))
    result = f"({' + '.join(f'{p:g}' for p in products)}) / √{head_width} = {decimals(score)}"
    stored = say(
        lang,
        f"Sum over root of D: {result}. In the [B,H,T,S] scores it is [{b}, {h}, {t}, {s}], at offset {place}.",
        f"求和，再除以 D 的平方根：{result}。它是 [B,H,T,S] 分数数组的元素 [{b}, {h}, {t}, {s}]，偏移量为 {place}。",
    )
    return f"{table(head.split('|'), rows)}\n\n{stored}"


def packed_example() -> np.ndarray:
    """Return a packed projection (1, 3, 12) of small whole numbers."""
    size = 3 * EXAMPLE.seq_len * EXAMPLE.d_model
    return ((np.arange(size) * 7) % 5 - 2.0).reshape(1, EXAMPLE.seq_len, 3 * EXAMPLE.d_model)


@block
def heads(page: Path, lang: str) -> str:
    """The attention weights of one packed projection, read as one head and as two."""
    parts = []
    for count in (1, 2):
        q, k, _ = split_qkv.forward(packed_example(), n_heads=count)[0]
        scores = attention_scores.forward(q, k)[0]
        weights = causal_softmax.forward(scores)[0]
        lines = []
        for h in range(count):
            product = _matrix([[f"{x:g}" for x in row] for row in q[0, h] @ k[0, h].T])
            shown = _matrix([list(map(decimals, row)) for row in weights[0, h]])
            lines.append(rf"Q_{h} K_{h}^{{\top}} = {product}, \; P_{h} = {shown}")
        words = say(
            lang, f"Heads: {count}. Width of a head: {q.shape[-1]}.", f"头数：{count}。每个头的宽度：{q.shape[-1]}。"
        )
        parts.append(f"{words}\n\n{display_lines(lines)}")
    return "\n\n".join(parts)


def _matrix(rows: list[list[str]]) -> str:
    return r"\begin{bmatrix}" + r" \\ ".join(" & ".join(row) for row in rows) + r"\end{bmatrix}"


@block
def sampling(page: Path, lang: str) -> str:
    """Temperature, top-k and top-p on four logits: what each does to the probabilities."""
    cases = [(f"temperature={t:g}", temperature.forward(LOGITS, tau=t)[0]) for t in (0.5, 1.0, 2.0)]
    cases += [("top_k=2", top_k.forward(LOGITS, k=2)[0]), ("top_p=0.9", top_p.forward(LOGITS, p=0.9)[0])]
    rows = [(f"`{name}`", *(decimals(p) for p in softmax.forward(z)[0])) for name, z in cases]
    return table((say(lang, "Setting", "设置"), *(f"z = {z:g}" for z in LOGITS)), rows)


@block
def cache_rows(page: Path, lang: str) -> str:
    """Three tokens decoded without and with a cache: rows projected and scores computed at each step, as counted."""
    model = TinyGPT(EXAMPLE, dtype="float64")
    cache = KVCache(EXAMPLE, 1, model.dtype)
    rows, totals = [], [0, 0, 0, 0]
    for n in range(1, len(TOKENS[0]) + 1):
        counts = [*_work(model, TOKENS[0][:n], None), *_work(model, TOKENS[0][n - 1 : n], cache)]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        rows.append((n, TOKENS[0][:n], *counts))
    rows.append((say(lang, "together", "合计"), "", *totals))
    head = say(
        lang,
        "Step|Tokens so far|Rows without|Scores without|Rows with|Scores with",
        "步|已有词元|无缓存：行|无缓存：分数|有缓存：行|有缓存：分数",
    )
    return table(head.split("|"), rows)


class Counter(Evaluate):
    """Evaluates, and counts the query rows and the scores that attention computes."""

    def __init__(self) -> None:
        self.rows = self.scores = 0

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation as always, and look at the shape of what came out."""
        result = super().apply(equation, inputs, static, name)
        if equation is attention_scores:
            self.rows += result.shape[0] * result.shape[2]
            self.scores += math.prod(result.shape)
        return result


def _work(model: TinyGPT, tokens: list[int], cache: KVCache | None) -> tuple[int, int]:
    counter = Counter()
    with interpreting(counter):
        model.forward_logits([tokens], cache)
    return counter.rows, counter.scores


@block
def cache_logits(page: Path, lang: str) -> str:
    """The logits after each token of the example, without a cache and with one."""
    rows = []
    for n, whole, cached in cached_logits():
        rows.append((n, say(lang, "without", "无"), *map(decimals, whole)))
        rows.append((n, say(lang, "with", "有"), *map(decimals, cached)))
    return table((say(lang, "Step", "步"), say(lang, "Cache", "缓存"), *(f"z[{v}]" for v in range(4))), rows)


def cached_logits() -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return for each length of the example its last logits, computed as a whole and token by token."""
    model = TinyGPT(EXAMPLE, dtype="float64")
    cache = KVCache(EXAMPLE, 1, model.dtype)
    with no_grad():
        return [
            (
                n,
                model.forward_logits([TOKENS[0][:n]]).data[0, -1],
                model.forward_logits([TOKENS[0][n - 1 : n]], cache).data[0, -1],
            )
            for n in range(1, len(TOKENS[0]) + 1)
        ]


@block
def costs(page: Path, lang: str) -> str:
    """Multiplications of one forward pass over one sequence, by operation, at the default sizes."""
    c = ModelConfig()
    t, d, f, v = c.seq_len, c.d_model, c.ff_width, c.vocab_size
    rows = [
        (say(lang, "embedding look-up", "查嵌入表"), "0", 0, say(lang, "copies T C numbers", "只复制 T C 个数")),
        (say(lang, "queries, keys, values", "查询、键、值"), "3 T C²", 3 * t * d * d, ""),
        (say(lang, "scores", "分数"), "T² C", t * t * d, ""),
        (say(lang, "weighted sum", "加权求和"), "T² C", t * t * d, ""),
        (say(lang, "output projection", "输出投影"), "T C²", t * d * d, ""),
        (say(lang, "both MLP layers", "前馈网络两层"), "2 T C F", 2 * t * d * f, ""),
        (
            say(lang, "LM head", "语言模型头"),
            "T C V",
            t * d * v,
            say(lang, "once, not in each block", "只有一次，不随块重复"),
        ),
    ]
    head = say(lang, "Operation|Multiplications|Default sizes|Note", "运算|乘法次数|默认规模|说明")
    return table(head.split("|"), rows)


@block
def uniform(page: Path, lang: str) -> str:
    """The loss of a model that finds every byte equally likely."""
    v = ModelConfig().vocab_size
    nats, bits = decimals(math.log(v)), f"{math.log2(v):g}"
    return say(lang, f"ln {v} = {nats} nats = {bits} bits", f"ln {v} = {nats} 奈特 = {bits} 比特")
