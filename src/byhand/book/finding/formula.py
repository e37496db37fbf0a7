r"""Formulas as token lists, so that `\frac{Q_i\cdot K_j}{\sqrt{C}}`, `Q K^T / √d` and `q @ k.T / sqrt(D)` compare.

Layout, brackets, running indices and ways of writing a product or a quotient are dropped; names of functions, letters
and word-like subscripts stay.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

_SIGNS = {
    "√": " sqrt ", "Σ": " sum ", "∑": " sum ", "∏": " prod ", "∂": " d ", "∇": " d ", "×": " ", "·": " ", "⊙": " ",
    "@": " ", "*": " ", "÷": " ", "∘": " ", "←": " = ", "−": "-", "∞": " inf ", "ᵀ": "^T", "⊤": "T", "′": "'",
    "≤": " <= ", "≥": " >= ", "²": "^2", "³": "^3", "ℓ": " ell ", "Φ": " phi ", "φ": " phi ", "δ": " delta ",
    "Δ": " delta ", "ρ": " rho ", "ω": " omega ", "α": " alpha ", "β": " beta ", "ε": " epsilon ", "ϵ": " epsilon ",
    "θ": " theta ", "λ": " lambda ", "μ": " mu ", "σ": " sigma ", "τ": " tau ", "π": " pi ", "γ": " gamma ",
    "η": " eta ", "‖": " ", "₀": "_0", "₁": "_1", "₂": "_2", "₃": "_3",
    "均方根": " sqrt x^2 ", "均方": " x^2 ", "方差": " sigma^2 ", "标准差": " sigma ", "均值": " mu ",
    "平均值": " mu ", "增益": " gamma ", "学习率": " alpha ", "梯度": " g ", "温度": " T ", "分数": " S ",
    "权重": " w ", "词表大小": " V ", "的转置": "^T", "根号": " sqrt ", "求和": " sum ", "最大值": " max ",
    "的平方": "^2", "除以": " ", "乘以": " ", "加上": " + ", "减去": " - ",
}  # fmt: skip
LETTERS = frozenset(["alpha", "beta", "epsilon", "theta", "lambda", "mu", "sigma", "tau", "pi", "gamma", "inf"])
_COMMANDS = {
    "leftarrow": "=", "to": "=", "gets": "=", "coloneqq": "=", "partial": "d", "nabla": "d", "infty": "inf",
    "top": "T", "intercal": "T", "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "varepsilon": "epsilon",
    "Phi": "phi", "varphi": "phi", "Delta": "delta", "overline": "bar", "widehat": "hat", "widetilde": "tilde",
}  # fmt: skip
_LAYOUT = re.compile(
    "left|right|quad|qquad|cdot|times|odot|otimes|circ|div|[tdc]?frac|begin|end|cases|align(ed|at)?|gathered|array|"
    "[pbvB]?matrix|[bB]igg?[lrm]?|math(rm|cal|bf|bb|sf|tt|it|scr|frak|normal|op)|text(rm|bf|it|tt|normal)?|"
    "operatorname|boldsymbol|pmb|bm|bf|rm|cal|displaystyle|textstyle|limits|nolimits|[lcd]?dots[cbm]?|[lr]?[vV]ert|"
    "[lr](angle|brace|brack|floor|ceil)|mid|[hv]?space|hfill|underbrace|overbrace|middle|tag|label|nonumber|star|ast"
)
_ALIASES = {
    "eps": "epsilon", "lr": "alpha", "learningrate": "alpha", "eta": "alpha", "mean": "mu", "avg": "mu",
    "sumexp": "sum", "ln": "log", "var": "variance", "std": "sigma", "penalty": "theta", "temp": "T",
    "temperature": "T",
}  # fmt: skip
KEPT = (
    "exp log sqrt rsqrt sum prod max min amax maximum argmax tanh sin cos erf sigmoid softmax logsoftmax relu "
    "gelu silu swish norm topk cumsum concat cat sublayer layernorm rmsnorm ln attn attention ffn mlp phi where "
    "clip round var variance sign onehot mask tril triu = + - ^ < > <= >= 0 1 2 3 inf pi"
)
OPERATIONS = frozenset(KEPT.split())  # what a formula keeps when its letters change
ALIKE = 0.5  # the similarity from which on formulas are compared in full
DIFFERENT = 2  # operations at least in a formula that may be found by its structure alone
LONGEST_FACTOR = 5  # characters: 0.95 may be any number, 0.044715 is a name
OTHER_LETTERS = 0.6  # how much the structure counts without the letters


def tokens(text: str) -> list[str]:
    """Return the names, operators and numbers of a formula."""
    text = re.sub(r"<-|:=", " = ", text)
    text = re.sub(r"\\mathrel\s*\{([+-])\}\s*=", r"\1=", text)
    text = re.sub(r"([\w.\\{}\[\]]+)\s*([+\-])=", r"\1 = \1 \2", text)  # x += y
    text = re.sub(r"(?:σ|\\sigma)\s*(?=\(|\\left)", " sigmoid ", text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    text = re.sub(r"\\[,;!: ]|\\\\|&|\$|~", " ", text)
    text = re.sub(r"(\w+)\.(mean|std|var|sum|max|exp|log|sqrt|softmax)\(", r" \2 \1 (", text)
    text = re.sub(r"\.T\b", "^T", text)
    text = re.sub(r"(?<![A-Za-z\\])e\s*\^", " exp ", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: " " + _command(m[1]) + " ", text)
    text = re.sub(r"sum\s*_\s*(\{[^{}]*\}|\w)\s*\^\s*(\{[^{}]*\}|\w)", "sum ", text)
    text = re.sub(r"\[\s*[a-z]\s*(,\s*[a-z:]\s*)*\]", " ", text)
    text = re.sub(r"\^\s*\{\s*(\w+)\s*\}", r"^\1", text)
    text = re.sub(r"_\s*\{([^{}]*)\}", lambda m: _subscript(m[1]), text)
    text = re.sub(r"_([A-Za-z0-9]+)", lambda m: _subscript(m[1]), text)
    text = re.sub(r"\b[ABKPQSVWXY]{2,3}\b", lambda m: " ".join(m[0]), text)  # QK is a product, LN a name
    text = re.sub(r"\b([abce-z])([A-Z]\d?)\b", r"\1 \2", text)  # xW is one too, dW a derivative
    found = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z][A-Za-z0-9]*|[<>]=|[=+\-^<>]", text)
    return [_ALIASES.get(str(t).lower(), str(t)) for t in found]


def similarity(query: tuple[str, ...], formula: tuple[str, ...]) -> float:
    """Return the similarity of two token lists, from 0 to 1: shared tokens and neighbours, with and without case, or
    those of their structures; of formulas that are not alike an upper bound."""
    lower = _overlap(_lower(query), _lower(formula))
    other = 0.0
    if 0.5 < len(query) / len(formula) < 2:
        of_query, of_formula = structure(query), structure(formula)
        if min(_operations(of_query), _operations(of_formula)) >= DIFFERENT:
            singles, pairs = _shares(of_query, of_formula)
            other = OTHER_LETTERS * (0.2 * singles + 0.8 * pairs)
    if max(lower, 0.3 * lower + other) <= ALIKE:
        return ALIKE
    written = 0.4 * _overlap(query, formula) + 0.6 * lower
    return max(written, 0.3 * written + other)


@lru_cache(maxsize=4096)
def structure(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return a formula with its letters and factors numbered as they appear; 1 - b is a factor too."""
    numbers: dict[str, str] = {}
    found: list[str] = []
    for token in tokens:
        kept = token.lower() in OPERATIONS or (len(token) > LONGEST_FACTOR and token[0] == "0") or found[-1:] == ["^"]
        if not kept and found[-2:] == ["1", "-"]:
            del found[-2:]
            token = f"1-{token}"
        found.append(token.lower() if kept else numbers.setdefault(token, f"#{len(numbers)}"))
    return tuple(found)


@lru_cache(maxsize=4096)
def _operations(structure: tuple[str, ...]) -> int:
    return len({token for token in structure if token[0] != "#"})


def _overlap(query: tuple[str, ...], formula: tuple[str, ...]) -> float:
    singles, pairs = _shares(query, formula)
    if len(query) < 2:
        return singles
    whole = 0.5 * singles + 0.5 * pairs
    both = len(query) + len(formula)
    if round(singles * both) == 2 * len(query) and _holds(formula, query):
        return max(whole, 0.8 + 0.2 * len(query) / len(formula))
    return whole


def _shares(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[float, float]:
    """Return what share of the tokens, and of the neighbours, two formulas have in common."""
    both = len(a) + len(b)
    singles, pairs = (_common(*counts) for counts in zip(_counts(a), _counts(b), strict=True))
    return 2 * singles / both, 2 * pairs / max(both - 2, 1)


@lru_cache(maxsize=4096)  # a query is compared with each formula of the book
def _counts(tokens: tuple[str, ...]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    return Counter(tokens), Counter(pairwise(tokens))


@lru_cache(maxsize=4096)
def _lower(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(t.lower() for t in tokens)


def _common(a: Counter, b: Counter) -> int:
    shorter, longer = (a, b) if len(a) < len(b) else (b, a)
    return sum(min(n, longer[token]) for token, n in shorter.items() if token in longer)


def _holds(formula: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(formula[i : i + len(part)] == part for i in range(len(formula) - len(part) + 1))


def _command(name: str) -> str:
    return "" if _LAYOUT.fullmatch(name) else _COMMANDS.get(name, name)


def _subscript(text: str) -> str:
    r"""Glue a word such as `qkv` to its letter; drop running indices such as `b,i,:` or `t-1`."""
    word = re.sub(r"[^A-Za-z0-9]", "", text)
    running = re.fullmatch(r"[\s\d:,+\-a-zA-Z]*", text) and all(
        len(part.strip()) <= 1 for part in re.split(r"[,+\-:]", text)
    )
    return " " if running and not re.fullmatch(r"[A-Z]", text.strip()) else word.lower() + " "


def compact(text: str) -> str:
    """Return a formula without blanks and braces."""
    return re.sub(r"[\s{}$]", "", text)
