r"""LaTeX as a terminal can show it: `\frac{Q_t \cdot K_s}{\sqrt{D}}` becomes `(Q_t · K_s) / √D`.

It knows the LaTeX of the equations' files; unknown LaTeX raises, so a test can check that every formula of the
registry is converted. Unlike formulas in docstrings, the result has no English words.
"""

from __future__ import annotations

import re

from byhand.errors import ByhandError

WIDE = "\0"  # between formulas, which become lines
SIGNS = {
    "alpha": "α", "beta": "β", "epsilon": "ε", "lambda": "λ", "mu": "μ", "sigma": "σ", "tau": "τ", "theta": "θ",
    "pi": "π", "infty": "∞", "partial": "∂", "Delta": "Δ", "sum": "Σ", "cdot": "·", "odot": "⊙", "times": "×",
    "circ": "∘", "le": "≤", "ge": "≥", "leftarrow": "←", "top": "ᵀ", "max": "max", "log": "log", "ln": "ln",
    "exp": "exp", "tanh": "tanh", "quad": WIDE, "left": "", "right": "", "in": "∈", "cos": "cos", "sin": "sin",
    "lfloor": "⌊", "rfloor": "⌋", "textstyle": "",
}  # fmt: skip
ACCENTS = {"hat": "\u0302", "overline": "\u0304"}
IN_LATEX = {
    r"\text{otherwise}": r"\text{其余情形}",
    r"\text{ is kept}": r"\text{ 被保留}",
    r"\text{ with }": r"\text{ 满足 }",
}
CHINESE = {
    " if ": "，当 ",
    " 其余情形": "，其余情形",
    " ; ": "；",
    "_rows": "_各行",
    "offset": "偏移量",
}  # words of the plain form, and names
GROUPS = ("mathrm", "text", "operatorname")
RAISED = dict(zip("0123456789tT-+", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵗᵀ⁻⁺", strict=True))
_TOKEN = re.compile(
    r"\\begin\{cases\}|\\end\{cases\}|\\\\|\\[A-Za-z]+|\\.|[{}_^&]|\s+|[^\\{}_^&\s]+?(?=[\\{}_^&\s]|$)|."
)


def translated(latex: str, lang: str) -> str:
    """Return LaTeX with its words in `en` or `zh`."""
    for english, chinese in IN_LATEX.items() if lang == "zh" else ():
        latex = latex.replace(english, chinese)
    return latex


def plain(latex: str, lang: str = "en") -> str:
    """Return a formula as text, a line for each part, its words in `en` or `zh`. ByhandError for unknown LaTeX."""
    tokens = _TOKEN.findall(translated(latex, lang))
    text, rest = _sequence(tokens, 0)
    if rest != len(tokens):
        raise ByhandError(f"the braces of {latex!r} do not match.")
    text = re.sub(rf",? *{WIDE} *", "\n", re.sub(r" +", " ", text)).replace("-", "−")
    text = re.sub(r"∂ (?=\S)", "∂", re.sub(r" +([,)\]ᵀ⌋])", r"\1", re.sub(r"([(\[⌊]) +", r"\1", text)))
    text = re.sub(r"∂_(\d) ?", lambda found: f"∂{chr(0x2080 + int(found[1]))}", text)  # one of several shares
    text = re.sub(r"∂ (?=\S)", "∂", text.replace("Δ ", "Δ"))
    text = re.sub(r"\bif (otherwise|其余情形)", r"\1", text)
    for word, chinese in CHINESE.items() if lang == "zh" else ():
        text = text.replace(word, chinese)
    return text.strip()


def _sequence(tokens: list[str], at: int) -> tuple[str, int]:
    """Read until a closing brace or the end."""
    written = ""
    while at < len(tokens) and tokens[at] != "}":
        piece, at = _one(tokens, at)
        if piece.startswith("^{") and re.search(r"(?<!\w)e$", written):
            written, piece = written[:-1], f"exp({piece[2:-1]})"
        written += piece
    return written, at


def _one(tokens: list[str], at: int) -> tuple[str, int]:
    """Read one piece: a group, a command with its arguments, a sub- or superscript, or plain text."""
    token = tokens[at]
    if token == "{":
        text, at = _sequence(tokens, at + 1)
        return text, at + 1
    if token in ("_", "^"):
        text, at = _argument(tokens, at + 1)
        return _script(token, text.strip()), at
    if token == r"\begin{cases}":
        return "{ ", at + 1
    if token == r"\end{cases}":
        return " }", at + 1
    if token == r"\\":
        return "; ", at + 1
    if token == "&":
        return "  if ", at + 1
    if token.startswith("\\"):
        return _command(token[1:], tokens, at + 1)
    return (" " if token.isspace() else token), at + 1


def _command(name: str, tokens: list[str], at: int) -> tuple[str, int]:
    if name in ("frac", "tfrac"):
        above, at = _argument(tokens, at)
        below, at = _argument(tokens, at)
        fraction = f"{_held(above)} / {_held(below)}"
        return fraction if _ends(tokens, at) else f"({fraction})", at
    if name == "sqrt":
        inside, at = _argument(tokens, at)
        return f"√{_held(inside)}", at
    if name in ACCENTS:
        inside, at = _argument(tokens, at)
        inside = inside.strip()
        return (f"{inside}{ACCENTS[name]}" if len(inside) == 1 else f"⟨{inside}⟩"), at
    if name in GROUPS:
        return _argument(tokens, at)
    if name in SIGNS:
        return SIGNS[name], at
    if not name.isalpha():
        return {"!": "", ",": " ", ";": " "}.get(name, name), at
    raise ByhandError(f"there is no plain form of \\{name}.")


def _argument(tokens: list[str], at: int) -> tuple[str, int]:
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    if at < len(tokens) and not tokens[at].startswith(("\\", "{")) and len(tokens[at]) > 1:
        tokens[at : at + 1] = [tokens[at][0], tokens[at][1:]]  # x^2y raises the 2 alone
    return _one(tokens, at)


def _script(sign: str, text: str) -> str:
    if sign == "^" and (text == "ᵀ" or all(c in RAISED for c in text)):
        return "".join(RAISED.get(c, c) for c in text)
    if sign == "_" and re.fullmatch(r"\w+|[a-z]{2,}(,\w{2,})+", text):
        return f"_{text}"
    if sign == "^" and re.fullmatch(r"\(\w+\)", text):
        return f"^{text}"
    return f"{sign}{{{text}}}" if sign == "^" else f"[{text}]"


def _ends(tokens: list[str], at: int) -> bool:
    """Return whether no factor follows a fraction."""
    following = next((t for t in tokens[at:] if not t.isspace()), "}")
    return following in ("}", r"\quad", r"\right", "&", r"\\\\") or following[0] in ",=+-)"


def _held(text: str) -> str:
    """Put parentheses around anything but a single name or number."""
    text = text.strip().replace("∂ ", "∂")
    return text if re.fullmatch(r"(exp|√)\([^()]*\)|[\w∂√μσ̂.]+(\[[^\[\]]*\])?", text) else f"({text})"
