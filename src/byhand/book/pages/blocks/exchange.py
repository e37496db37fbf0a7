"""Generated tables about models in and out: settings and their keys, arrays and their tensors."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from byhand.book.pages.blocks.markdown import Rows, block, table_block
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.formats.ggml import BY_LIBRARY
from byhand.formats.registry import called
from byhand.interop.families import GROWING, Family
from byhand.interop.gguf import conventions as gguf_conventions
from byhand.interop.gguf import model as gguf
from byhand.interop.gguf import tokens
from byhand.interop.hugging_face import conventions
from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.hugging_face.layers import KINDS
from byhand.interop.pairing import column_order
from byhand.interop.tensors import pieces
from byhand.model import declared

FORMATS = {"hf": FAMILIES, "gguf": gguf.KNOWN}
SAID = {True: Words("yes", "是"), False: Words("no", "否"), None: Words("none", "无")}
TOKENS = {
    "bos": Words("begins a text (BOS)", "文本开头（BOS）"),
    "eos": Words("ends a text (EOS)", "文本结尾（EOS）"),
    "eot": Words("ends a turn of a conversation (EOT)", "一轮对话结束（EOT）"),
    "pad": Words("padding", "填充"),
    "unk": Words("unknown", "未知"),
}
ENDS = Words("all that end a generation", "结束生成的全部词元")
AROUND = {
    "before": Words("whether BOS is added", "是否在开头添加 BOS"),
    "after": Words("whether EOS is added", "是否在结尾添加 EOS"),
}
TEMPLATES = Words("chat templates", "对话模板")
SIZES = {"vocab_size": 50, "seq_len": 32, "d_model": 8, "n_heads": 2, "d_ff": 40}


def _example(family: Family) -> ModelConfig:
    """Return a model of a family, small enough that no two widths are equal."""
    settings: dict[str, Any] = {**family.usual(), **SIZES}
    if family.may_vary("n_kv_heads"):
        settings |= {"n_heads": 4, "n_kv_heads": 2}
    if family.may_vary("d_head"):
        settings["d_head"] = 6
    return ModelConfig(**settings)


@table_block(
    "Family|`positions`|`norm`|`norm_position`|`activation`|`attention_bias`|`mlp_bias`|`qk_norm`|parallel|any K|"
    "any D|any R|window|`layer_pattern` of|in GGUF",
    "系列|`positions`|`norm`|`norm_position`|`activation`|`attention_bias`|`mlp_bias`|`qk_norm`|并行|"
    "K 可单独设定|D 可单独设定|R 可单独设定|窗口|`layer_pattern` 的字母|支持 GGUF",
)
def families() -> Rows:
    """Positions, norm, activations, biases and options of each family."""
    for name, family in FAMILIES.items():
        allowed = family.allowed()
        one = (allowed[option][:1] for option in ("positions", "norm", "norm_position"))
        given = *one, family.activations, allowed["attention_bias"]
        in_code = (", ".join(f"`{value}`" for value in values) for values in given)
        mlp = [SAID[value] for value in allowed["mlp_bias"]]
        biases = Words(" / ".join(words.en for words in mlp), " / ".join(words.zh for words in mlp))
        free = [option not in allowed for option in ("n_kv_heads", "d_head", "rope_fraction", "attention_window")]
        in_gguf = any(name.startswith((known, known.replace("gpt", "gpt_"))) for known in gguf.KNOWN)
        flags = (allowed["qk_norm"][0], allowed["parallel_residual"][-1], *free)
        letters = ", ".join(f"`{letter}`" for letter in family.layers)
        yield f"`{name}`", *in_code, biases, *(SAID[flag] for flag in flags), letters, SAID[in_gguf]


@table_block("Setting|Raised|Values of the added parameters", "设置|由少到多|补充的参数")
def added() -> Rows:
    """Settings that a family may raise, and the values of the parameters that this adds."""
    with_gain = declared(_example(FAMILIES["gpt2"]))
    fill = {
        "norm_affine": ("ln_f.gain", "ln_f.bias"),
        "mlp_bias": ("blocks.0.mlp.b_fc",),
        "attention_bias": ("blocks.0.attn.b_qkv", "blocks.0.attn.b_proj"),
    }
    for name, order in GROWING.items():
        said = {value: f"`{str(value).lower() if type(value) is bool else value}`" for value in order}
        steps = groupby(
            order, lambda value, order=order: len(order[value])
        )  # those of one step do not contain others
        yield (
            f"`{name}`",
            " → ".join(" / ".join(map(said.__getitem__, step)) for _, step in steps),
            ", ".join(f"`{p}` = {with_gain[p].mean:g}" for p in fill[name]),
        )


def _keys(family: Family) -> dict[str, str]:
    """Return the keys of a config.json by our setting."""
    found = {
        ours: f"`{key}`" for key, ours in {**family.keys, **family.flags, family.activation: "activation"}.items()
    }
    if family.window:
        found["attention_window"] = ", ".join(f"`{key}`" for key in family.window)
    if family.layers:
        found["layer_pattern"] = ", ".join(f"`{key}`" for key in KINDS[family.name])
    return found


def _metadata() -> dict[str, dict[str, str]]:
    """Return the keys of a GGUF's metadata by our setting, for each group of families with the same ones."""
    groups: dict[str, dict[str, str]] = {}
    for name, family in gguf.KNOWN.items():
        keys = {ours: f"`{key.replace(name, '*', 1)}`" for key, ours in family.keys.items()}
        same = next((names for names, others in groups.items() if others == keys), "")
        groups.pop(same, None)
        groups[f"{same}, {name}" if same else name] = keys
    return groups


KEYS = {f"`config.json`: {name}": _keys(family) for name, family in FAMILIES.items()}
KEYS |= {f"GGUF: {names}": keys for names, keys in _metadata().items()}


@table_block(
    "|".join(["Ours", *KEYS]), "|".join(["本项目", *(name.replace(": ", "：").replace(", ", "、") for name in KEYS)])
)
def exchange_settings() -> Rows:
    """Our settings and the keys of config.json and of a GGUF's metadata; `*` stands for the family's name."""
    for setting in dict.fromkeys(name for keys in KEYS.values() for name in keys):
        yield f"`{setting}`", *(keys.get(setting, "") for keys in KEYS.values())


@table_block("Ours|Theirs|How", "本项目|对方|关系")
def exchange_tensors(goal: str, family: str) -> Rows:
    """A family's tensors: our array and their tensor, each with its shape, and the conversion."""
    config = _example(FAMILIES[family])
    for piece in pieces(config, FORMATS[goal][family].tensors):
        ours = declared(config)[piece.ours[0]].shape
        how = Words("transposed", "转置") if piece.transposed else Words("unchanged", "原样")
        how = Words("less 1", "减 1") if piece.less else how
        if not isinstance(piece.columns, slice):
            how = Words("head by head, transposed", "逐头排列，转置")
        elif len(piece.ours) > 1:
            how = Words("side by side, transposed", "并排，转置")
        elif piece.columns.stop - piece.columns.start != ours[-1]:
            columns = f"`[:, {piece.columns.start}:{piece.columns.stop}]`"
            how = Words(f"columns {columns}, transposed", f"列 {columns}，转置")
            if FORMATS[goal][family].pairing == "neighbours" and "_v" not in piece.theirs:
                how = Words(f"columns {columns}, permuted, transposed", f"列 {columns}，重排后转置")
        yield (
            f"{', '.join(f'`{name}`' for name in piece.ours)} {list(ours)}",
            f"`{piece.theirs}` {list(piece.shape)}",
            how,
        )


@table_block(
    "Pairing|Used by|Columns of a head, by their number in `halves`",
    "配对|使用者|一个头的各列（按 `halves` 中的编号）",
)
def pairings() -> Rows:
    """The columns of a head in the order of either pairing."""
    width = 8
    for pairing, en, zh, order in (
        ("halves", "Hugging Face; GGUF of {}", "Hugging Face；{} 的 GGUF", range(width)),
        ("neighbours", "GGUF of {}; the paper", "{} 的 GGUF；论文", column_order(width, width, "neighbours")),
    ):
        names = [
            name for name, family in gguf.KNOWN.items() if family.pairing == pairing and family.may_vary("rope_base")
        ]
        users = Words(en.format(", ".join(names)), zh.format("、".join(names)))
        yield f"`{pairing}`", users, " ".join(f"`{int(i)}`" for i in order)


@table_block("Type|Numbers in a block|Bytes in a block|Bits per number", "类型|每块的数|字节|每个数的比特")
def number_types() -> Rows:
    """The number types that a GGUF may have: numbers and bytes in a block."""
    for kind in called("gguf").values():
        yield f"`{kind.symbol}`", kind.block, kind.size, f"{kind.bits:g}"


@block
def library_types(page: Path, lang: str) -> str:
    """The other types of a GGUF, which the library gguf unpacks."""
    return Words(", ", "、").said(lang).join(f"`{name}`" for name in BY_LIBRARY.values())


@table_block(
    "`tokenizer.ggml.pre`|`--split`|a whole word that is a token is taken at once, without merges",
    "`tokenizer.ggml.pre`|`--split`|整个词已在词表中时，跳过合并",
)
def pre_tokenizers() -> Rows:
    """llama.cpp's names of pre-tokenizers, and ours."""
    for pre, (split, whole) in tokens.SPLITS.items():
        yield f"`{pre}`", f"`{split}`", SAID[whole]


@table_block("Token|Hugging Face|GGUF", "词元|Hugging Face|GGUF")
def token_names() -> Rows:
    """Named tokens, what says that one is added, and chat templates: the keys of both formats."""
    for name, words in TOKENS.items():
        theirs = conventions.NAMED.get(name)
        yield words, f"`{theirs}`" if theirs else "", f"`{gguf_conventions.NAMED[name]}`"
    file, key, own = (f"`{text}`" for text in (conventions.GENERATION, "eos_token_id", gguf_conventions.ENDS))
    yield ENDS, Words(f"{file}: {key}", f"{file}：{key}"), own
    for name, words in AROUND.items():
        yield words, "`post_processor`", f"`{gguf_conventions.ADDED[name][0]}`"
    yield TEMPLATES, f"`chat_template`, `{conventions.JINJA}`", f"`{gguf_conventions.TEMPLATE}`"
