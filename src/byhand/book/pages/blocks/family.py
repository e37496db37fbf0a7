"""Generated tables of the model family: choices, sizes and caches of the architectures, and the sliding window."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from byhand import host
from byhand.architectures import ARCHITECTURES, GPT2
from byhand.book.entries.contract import ByStem
from byhand.book.finding import index
from byhand.book.finding.flow import order
from byhand.book.pages.blocks.markdown import Rows, block, decimals, link, link_equation, table, table_block
from byhand.book.pictures.passes import pass_through
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.model import TinyGPT, parameter_shapes
from byhand.runtimes.numpy.decoder import next_logits

NAMES = ("byhand", "GPT-2", "Llama", "Qwen3", "modern")
VOCABULARIES = (256, 50_257, 49_152, 151_936, 256)  # bytes, or that of the published tokenizer
HEAD = "|".join(("", *NAMES))
NONE = Words("none", "无")
TOTAL = Words("total", "合计")
PUBLISHED = replace(GPT2, vocab_size=50_257)
"""GPT-2 with the vocabulary that it was published with: 124 million parameters."""

Kinds = dict[Words, Callable[[str], bool]]


def _models() -> list[ModelConfig]:
    """Return the default model and the architectures, each with its vocabulary."""
    shapes = [ModelConfig(), *ARCHITECTURES.values()]
    return [replace(config, vocab_size=v) for config, v in zip(shapes, VOCABULARIES, strict=True)]


def _biases(c: ModelConfig) -> Words:
    kept = {
        Words("attention", "注意力"): c.attention_bias != "none",
        Words("MLP", "前馈网络"): c.mlp_bias,
        Words("head", "语言模型头"): c.lm_head_bias,
    }
    found = [words for words, there in kept.items() if there]
    return Words(", ".join(w.en for w in found), "、".join(w.zh for w in found)) if found else NONE


def _norm(c: ModelConfig) -> str:
    return {"layer": "LayerNorm", "rms": "RMSNorm"}[c.norm]


def _learned(c: ModelConfig) -> Words:
    if not c.norm_affine:
        return NONE
    return Words("gain, bias", "增益与偏置") if c.norm == "layer" else Words("gain", "增益")


CHOICES: dict[Words, Callable[[ModelConfig], Any]] = {
    Words("positions", "位置"): lambda c: {
        "learned": Words("learned table", "可学习的表"),
        "rotary": Words(f"rotary, base {c.rope_base:,.0f}", f"旋转，底数 {c.rope_base:,.0f}"),
    }[c.positions],
    Words("normalisation", "归一化"): _norm,
    Words("learned by the norm", "归一化的可学习参数"): _learned,
    Words("queries and keys normalised", "查询与键归一化"): lambda c: (
        Words("yes", "是") if c.qk_norm else Words("no", "否")
    ),
    Words("activation", "激活函数"): lambda c: f"`{c.activation}`",
    Words("biases", "偏置"): _biases,
    Words("head's weight", "语言模型头的权重"): lambda c: (
        Words("token table", "词元嵌入表") if c.tied_embeddings else Words("its own", "独立")
    ),
    Words("width C, blocks L", "宽度 C、块数 L"): lambda c: f"{c.d_model}, {c.n_layers}",
    Words("query heads H, key-value heads K, head width D", "查询头 H、键值头 K、头宽 D"): lambda c: (
        f"{c.n_heads}, {c.kv_heads}, {c.head_width}"
    ),
    Words("MLP width F", "前馈网络宽度 F"): lambda c: c.ff_width,
    Words("context T", "上下文 T"): lambda c: c.seq_len,
}


@table_block(HEAD, HEAD)
def family_choices() -> Rows:
    """The choices of the default model and of each architecture."""
    for name, choice in CHOICES.items():
        yield name, *map(choice, _models())


def sizes_of(config: ModelConfig, kinds: Kinds) -> list[int]:
    """Return how many numbers the parameters of each kind hold; LookupError unless each parameter is of one kind."""
    sizes = {name: math.prod(shape) for name, shape in parameter_shapes(config).items()}
    found = [sum(size for name, size in sizes.items() if chosen(name)) for chosen in kinds.values()]
    if sum(found) != sum(sizes.values()):
        raise LookupError(f"some of these parameters are of no kind, or of two: {', '.join(sizes)}")
    return found


@table_block(HEAD, HEAD)
def family_sizes() -> Rows:
    """Parameters of each kind, and the bytes that a cache keeps for each position in float32."""
    kinds: Kinds = {
        Words("tables", "嵌入表"): lambda n: n in ("wte", "wpe"),
        Words("attention", "注意力"): lambda n: ".attn." in n,
        Words("MLP", "前馈网络"): lambda n: ".mlp." in n,
        Words("gains and biases of norms", "归一化的增益与偏置"): lambda n: "ln_" in n,
        Words("head", "语言模型头"): lambda n: n.startswith("lm_head"),
    }
    columns = []
    for c in _models():
        sizes = sizes_of(c, kinds)
        columns.append([*sizes, sum(sizes), 8 * c.n_layers * c.kv_heads * c.head_width])
    cache = Words("cache, float32 bytes per position", "每个位置的缓存字节数")
    for words, *found in zip((*kinds, TOTAL, cache), *columns, strict=True):
        yield words, *(f"{n:,}" for n in found)


SLIDING = ModelConfig(vocab_size=12, seq_len=6, d_model=16, n_layers=2, n_heads=4, positions="rotary")
PROMPT, SHOWN = (1, 2, 3), (2, 3, 4, 9, 15)


@table_block(
    "Tokens so far|With the sliding cache|Over the whole text|The last `seq_len` tokens on their own",
    "已有词元|滑动的缓存|整段文本|只看最后 `seq_len` 个词元",
)
def sliding() -> Rows:
    """The largest logit after so many tokens: with a sliding cache, over the whole text, and over a fresh window."""
    model = TinyGPT(SLIDING, dtype="float64")
    for name, p in model.parameters().items():
        p.data = host.normal(name, p.data.shape, float(name.endswith("gain")), 0.5, 1, "float64")
    tokens = list(PROMPT)
    for logits in islice(next_logits(model, tokens, max(SHOWN) + 1), max(SHOWN) + 1):
        with no_grad():
            whole = model.forward_logits([tokens]).data[0, -1]
            fresh = model.forward_logits([tokens[-SLIDING.seq_len :]]).data[0, -1]
        best = int(np.argmax(logits))
        if len(tokens) - len(PROMPT) in SHOWN:
            yield len(tokens), *(decimals(each[best]) for each in (logits, whole, fresh))
        tokens.append(best)


NUMBERS = {"n_kv_heads": ("K", 1), "attention_window": ("W", 2), "logit_softcap": ("c", 5.0)}
"""Settings that have no list of choices: the letter of a value, and a value that applies an equation."""


def _choices() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each choice that is not the default: as a flag, and as a setting."""
    for name, hint in get_type_hints(ModelConfig).items():
        default, words = getattr(ModelConfig(), name), name.replace("_", "-")
        written = f"--{words}"
        if hint is bool:
            yield f"--no-{words}" if default else written, {name: not default}
        elif get_origin(hint) is Literal:
            yield from ((f"{written} {option}", {name: option}) for option in get_args(hint))
        elif name in NUMBERS:
            letter, value = NUMBERS[name]
            yield f"{written} {letter}", {name: value}


def chosen_by() -> dict[str, list[str]]:
    """Return, for each equation that the default model does not apply, the flags that make it do so."""
    shape = {"seq_len": 3, "d_model": 8, "n_heads": 2}

    def applied(**settings: Any) -> set[str]:
        trace = pass_through(ModelConfig(**shape, **settings), 1, 3)
        return {application.equation.name for application in trace.applications}

    default, found = applied(), ByStem({name: [] for name in order()})
    for written, setting in _choices():
        for name in applied(**setting) - default:
            found[name].append(written)
    return {name: flags for name, flags in found.items() if flags}


@block
def family_equations(page: Path, lang: str) -> str:
    """Each variant's equation, the setting that chooses it, its code and the loops' kernel."""
    rows = []
    for stem, flags in chosen_by().items():
        finding = index.findings()[stem]
        places = [link(page, place) for place in (finding.forward, finding.kernels.get("loops"))]
        rows.append((link_equation(page, stem, lang), ", ".join(f"`{each}`" for each in flags), *places))
    return table(Words("Equation|Selected by|Code|Compiled kernel", "公式|设置|代码|编译内核"), rows, lang)
