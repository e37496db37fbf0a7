"""Generated tables about models in and out: which setting is which key, which array is which tensor."""

from __future__ import annotations

from pathlib import Path

from byhand.book.pages.blocks.markdown import block, table
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.interop.families import FAMILIES, GROWING
from byhand.interop.gguf import model as gguf
from byhand.interop.gguf import tokens
from byhand.interop.gguf.quantised import KINDS
from byhand.interop.hugging_face import names, settings
from byhand.interop.pairing import column_order
from byhand.interop.tensors import pieces
from byhand.model import declared

EXAMPLES = {  # small enough that no two widths are equal
    "gpt2": ModelConfig(
        vocab_size=50, seq_len=32, d_model=8, n_heads=2, d_ff=40, norm_affine=True, lm_head_bias=False
    ),
    "llama": ModelConfig(
        vocab_size=50, seq_len=32, d_model=8, n_heads=4, n_kv_heads=2, d_head=6, d_ff=40, norm_affine=True,
        lm_head_bias=False, positions="rotary", norm="rms", activation="swiglu", attention_bias="none",
        mlp_bias=False,
    ),
}  # fmt: skip
FORMATS = {"hf": {"gpt2": names.GPT2, "llama": names.LLAMA}, "gguf": gguf.FACTS}
SAID = {True: Words("yes", "是"), False: Words("no", "否"), None: Words("none", "无")}


@block
def families(page: Path, lang: str) -> str:
    """What each family has: norm, positions, activation, biases."""
    rows = []
    for name, family in FAMILIES.items():
        allowed = family.allowed()
        biases = ", ".join(f"`{value}`" for value in allowed["attention_bias"])
        rows.append([
            f"`{name}`", f"`{allowed['positions'][0]}`", f"`{allowed['norm'][0]}`",
            ", ".join(f"`{a}`" for a in family.activations), biases,
            " / ".join(SAID[b].said(lang) for b in allowed["mlp_bias"]), SAID[allowed["qk_norm"][0]].said(lang),
            SAID[family.grouped].said(lang), SAID[family.windowed].said(lang),
            SAID[name in gguf.KNOWN].said(lang),
        ])  # fmt: skip
    head = Words(
        "Family|`positions`|`norm`|`activation`|`attention_bias`|`mlp_bias`|`qk_norm`|any K and D|window|in GGUF",
        "系列|`positions`|`norm`|`activation`|`attention_bias`|`mlp_bias`|`qk_norm`|K、D 可单独设定|窗口|支持 GGUF",
    )
    return table(head, rows, lang)


@block
def added(page: Path, lang: str) -> str:
    """Settings that a family may raise, and what fills the parameters that come with them."""
    with_gain = declared(EXAMPLES["gpt2"])
    fill = {"norm_affine": ("ln_f.gain", "ln_f.bias"), "mlp_bias": ("blocks.0.mlp.b_fc",)}
    fill["attention_bias"] = ("blocks.0.attn.b_qkv", "blocks.0.attn.b_proj")
    rows = []
    for name, order in GROWING.items():
        values = " → ".join(f"`{str(value).lower() if type(value) is bool else value}`" for value in order)
        rows.append([f"`{name}`", values, ", ".join(f"`{p}` = {with_gain[p].mean:g}" for p in fill[name])])
    return table(Words("Setting|Raised|Values of the added parameters", "设置|由少到多|补充的参数"), rows, lang)


@block
def exchange_settings(page: Path, lang: str) -> str:
    """Our settings and the keys of config.json and of a GGUF's metadata."""
    ours = list(dict.fromkeys([*settings.GPT2.values(), *settings.LLAMA.values(), "rope_base", "activation"]))
    tables = {
        "gpt2": {v: k for k, v in settings.GPT2.items()} | {"activation": settings.ACTIVATION["gpt2"]},
        "llama": {v: k for k, v in settings.LLAMA.items()}
        | {"activation": settings.ACTIVATION["llama"], "rope_base": "rope_theta`, `rope_parameters.rope_theta"},
    }
    keys = {name: {ours: f"{name}.{key}" for key, ours in gguf.KEYS[name].items()} for name in ("gpt2", "llama")}
    rows = []
    for setting in ours:
        found = [tables["gpt2"], tables["llama"], keys["gpt2"], keys["llama"]]
        rows.append([f"`{setting}`", *(f"`{t[setting]}`" if setting in t else "" for t in found)])
    head = Words(
        "Ours|`config.json`, gpt2|`config.json`, llama|GGUF, gpt2|GGUF, llama",
        "本项目|`config.json`（gpt2）|`config.json`（llama）|GGUF（gpt2）|GGUF（llama）",
    )
    return table(head, rows, lang)


@block
def exchange_tensors(page: Path, lang: str, goal: str, family: str) -> str:
    """A family's tensors: ours with its shape, theirs with theirs, and what is between them."""
    config = EXAMPLES[family]
    rows: list[list[object]] = []
    for piece in pieces(config, FORMATS[goal][family]):
        ours = declared(config)[piece.ours].shape
        how = Words("transposed", "转置") if piece.transposed else Words("unchanged", "原样")
        if piece.columns.stop - piece.columns.start != ours[-1]:
            columns = f"`[:, {piece.columns.start}:{piece.columns.stop}]`"
            how = Words(f"columns {columns}, transposed", f"列 {columns}，转置")
            if goal == "gguf" and family == "llama" and "_v" not in piece.theirs:
                how = Words(f"columns {columns}, permuted, transposed", f"列 {columns}，重排后转置")
        rows.append([f"`{piece.ours}` {list(ours)}", f"`{piece.theirs}` {list(piece.shape)}", how])
    return table(Words("Ours|Theirs|How", "本项目|对方|关系"), rows, lang)


@block
def pairings(page: Path, lang: str) -> str:
    """The columns of a head in the order of either pairing."""
    width = 8
    rows: list[list[object]] = []
    for name, words in (
        ("halves", Words("Hugging Face; GGUF of qwen2, qwen3", "Hugging Face；qwen2、qwen3 的 GGUF")),
        ("neighbours", Words("GGUF of llama; the paper", "llama 的 GGUF；论文")),
    ):
        order = column_order(width, width, name) if name == "neighbours" else range(width)
        rows.append([f"`{name}`", words, " ".join(f"`{int(i)}`" for i in order)])
    head = Words(
        "Pairing|Used by|Columns of a head, by their number in `halves`",
        "配对|使用者|一个头的各列（按 `halves` 中的编号）",
    )
    return table(head, rows, lang)


@block
def number_types(page: Path, lang: str) -> str:
    """The types of numbers that are read from a GGUF: how many make a block, and its bytes."""
    rows = [[f"`{k.name}`", k.block, k.size, f"{8 * k.size / k.block:g}"] for k in KINDS.values()]
    head = Words("Type|Numbers in a block|Bytes in a block|Bits per number", "类型|每块的数|字节|每个数的比特")
    return table(head, rows, lang)


@block
def pre_tokenizers(page: Path, lang: str) -> str:
    """llama.cpp's names of pre-tokenizers, and ours."""
    rows = [[f"`{pre}`", f"`{split}`", SAID[whole]] for pre, (split, whole) in tokens.SPLITS.items()]
    head = Words(
        "`tokenizer.ggml.pre`|`--split`|a whole word that is a token is taken at once, without merges",
        "`tokenizer.ggml.pre`|`--split`|整个词已在词表中时，跳过合并",
    )
    return table(head, rows, lang)
