r"""Letters: how a lesson writes its arrays, and an equation in the letters of the step that applies it.

The linear layer is y = x W + b everywhere; the step that makes queries is Q = X W_Q. An array has one letter
in a lesson: its own if its name is one (`W_Q`, `g_2`), that of its place in the model (`ln_1` is H), or its name as
text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from byhand.book.lessons.naming import short
from byhand.book.words.plain_math import plain

PARTIAL = r"\partial "
MARKS = {"∂": PARTIAL, "Δ": r"\Delta ", "−": "-"}
PARAMETERS = {
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
LETTERS = PARAMETERS | {
    "w_qkv": "W_{qkv}",
    "b_qkv": "b_{qkv}",
    "w_proj": "W_{proj}",
    "b_proj": "b_{proj}",
    "text": r"\mathrm{text}",
    "tokens": r"\mathrm{token}",
    "token": r"\mathrm{token}",
    "targets": "y",
    "tok": "E",
    "ln_1": "H",
    "attn.qkv": r"\mathrm{QKV}",
    "attn.q": "Q",
    "attn.k": "K",
    "attn.v": "V",
    "attn.kept_keys": r"K_{\mathrm{kept}}",
    "attn.kept_values": r"V_{\mathrm{kept}}",
    "cache.keys": r"K_{\mathrm{cache}}",
    "cache.values": r"V_{\mathrm{cache}}",
    "attn.scores": "S",
    "attn.weights": "P",
    "attn.mixed": "Y",
    "attn.merged": r"Y_{\mathrm{heads}}",
    "attn.out": "A",
    "x_mid": r"X_{\mathrm{mid}}",
    "ln_2": "M",
    "mlp.pre": "G",
    "mlp.act": "F",
    "mlp.out": "O",
    "x_out": r"X_{\mathrm{out}}",
    "ln_f": r"X_{\mathrm{norm}}",
    "logits": "Z",
    "scores": "S",
    "loss": "L",
    "lr": r"\alpha",
    "beta1": r"\beta_1",
    "beta2": r"\beta_2",
    "eps": r"\epsilon_{\mathrm{AdamW}}",
    "weight_decay": r"\lambda",
    "eps of LN": r"\epsilon",
    "theta": r"\theta",
    "θ": r"\theta",
    "τ": r"\tau",
}
MADE_BY = {("add_positional", "x"): "X"}  # an x elsewhere is the letter x
IN_ARITHMETIC = {
    "wd": "λ", "eps": "ε", "lr": "α", "beta1": "β_1", "beta2": "β_2", "var": "σ²", "k": "√(2/π)", "tanh": "tanh u",
    "tau": "τ", "m'": "m_t", "v'": "v_t", "mhat": "m̂_t", "vhat": "v̂_t", "xhat": "x̂",
    "1 − beta1": "1 − β_1", "1 − beta2": "1 − β_2", "1 − beta1^t": "1 − β_1ᵗ", "1 − beta2^t": "1 − β_2ᵗ",
}  # as the formula has them  # fmt: skip
MEAN = {"layer_norm": "μ"}  # elsewhere a mean is in words


@cache
def letter(name: str, stem: str = "") -> str:
    """Return the LaTeX of an array's name; `stem` names the equation that made it, if that is known."""
    if name[0] in MARKS and len(name) > 1:
        return MARKS[name[0]] + letter(name[1:], stem)
    bare = short(name)
    if known := MADE_BY.get((stem, bare)) or LETTERS.get(bare):
        return known
    if bare.endswith("'"):
        return letter(bare[:-1], stem) + "'"
    scope, dot, inner = bare.partition(".")
    if dot:
        return letter(inner, stem) + "'" if scope == "after" else _with_subscript(letter(inner, stem), scope)
    own = re.fullmatch(r"([A-Za-zθ])_?(\w*)", bare)
    if own and (not own[2] or "_" in bare or own[2].isdigit()):
        return LETTERS.get(own[1], own[1]) + (f"_{{{own[2]}}}" if own[2] else "")
    return rf"\text{{{bare}}}"


def _with_subscript(latex: str, word: str) -> str:
    base, bracket, inside = latex.partition("_{")
    return rf"{base}_{{{inside[:-1]},\mathrm{{{word}}}}}" if bracket else rf"{latex}_{{\mathrm{{{word}}}}}"


def share(latex: str, number: int) -> str:
    """Return the letter of the share of a gradient that one of several uses passes back, from 1."""
    return latex.replace(PARTIAL, rf"\partial_{number} ", 1)


@cache
def label(latex: str) -> str:
    """Return a letter as in labels: `X_mid`."""
    return plain(latex).replace(" ", "")


def called(name: str) -> str:
    """Return an array's name as in labels."""
    return label(letter(name))


def in_letters(latex: str, letters: Mapping[str, str]) -> str:
    r"""Replace letters in a formula; one that already has an index gets parentheses before another.

    The x in \hat{x} is part of another letter and stays.
    """
    if not letters:
        return latex
    symbols = "|".join(map(_whole, sorted(letters, key=len, reverse=True)))

    def written(found: re.Match[str]) -> str:
        new, before, after = letters[found[0]], latex[: found.start()].rstrip(), latex[found.end() :][:1]
        held = (after == "_" and "_" in new) or (after == "^" and new.startswith((r"\partial", r"\Delta")))
        held |= new.startswith("-") and not before.endswith("=")
        return f"({new})" if held else new

    return re.sub(symbols, written, latex)


def stands_in(symbol: str, latex: str) -> bool:
    """Return whether a formula contains this letter."""
    return bool(re.search(_whole(symbol), latex))


def _whole(symbol: str) -> str:
    """Return the pattern of a letter that is not part of a longer word or of an accented letter."""
    before = "" if symbol.startswith("\\") else r"(?<![A-Za-z\\])(?<!\\hat\{)"
    return f"{before}{re.escape(symbol)}(?![A-Za-z])"
