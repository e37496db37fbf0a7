"""Hostile text from a seeded generator: numbers of every length, signs that steer, nesting, and damaged good text."""

from __future__ import annotations

from random import Random

NUMBERS = [
    *(
        "0",
        "-0",
        "1",
        "2",
        "3",
        "-1",
        "3.5",
        ".5",
        "1.",
        "1e3",
        "1e400",
        "-1e400",
        "1e-400",
        "nan",
        "inf",
        "-inf",
        "NaN",
    ),
    *("9" * 9, "9" * 20, "-" + "9" * 30, "9" * 400, "9" * 5000, "0" * 5000, "1." + "3" * 5000, "1e" + "9" * 20),
    *("0x10", "1_0", "1__0", "١", "²", "½", "１２", "1 2", "1,5", "1;2", "True", "null", "1j", "10**9"),
]
SIGNS = [
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "\x1b[31m",
        "\x07",
        "\x9b",
        "\u202e",
        "\u200b",
        "\ud800",
        "\udcff",
        "😀",
        "中",
        "é",
    ),
    *(
        "-",
        "--",
        "---",
        "\u2013",
        "\u2014x",
        "\u22125",
        "=",
        "==",
        "'",
        '"',
        '"""',
        "`",
        "$",
        "$x$",
        "%",
        "%s%n",
        "{0}",
        "\\",
    ),
    *("(", ")", "[", "]", "{", "}", "#", ",", ";", ":", "/", ".", "..", "*", "**", "^", "_", "∂", "Σ", "√", "x=y"),
]
NESTS = [
    "(",
    "[",
    "{",
    "[[",
    "((",
    "-",
    "√",
    "sqrt(",
    "**",
    "_{",
    "\\frac{",
    "a.",
    "1+",
    "1*",
    "9**",
    "[a,",
    ", ",
    '"',
    "'''",
]
LENGTHS = (2, 3, 10, 33, 100, 500, 1000, 5000, 20_000)


def hostile(rng: Random) -> str:
    """A value that no reader expects."""
    match rng.randrange(6):
        case 0 | 1:
            return rng.choice(NUMBERS)
        case 2:
            return rng.choice(SIGNS)
        case 3:
            return (rng.choice(NESTS) * rng.choice(LENGTHS))[:40_000]
        case 4:
            return "".join(rng.choice((*SIGNS, *NUMBERS[:20])) for _ in range(rng.randrange(1, 12)))
        case _:
            return "".join(
                chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x250)))) for _ in range(rng.randrange(40))
            )


def damaged(rng: Random, text: str) -> str:
    """Good text with some places cut, doubled, replaced or filled."""
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((0, 1, 1, 2, 5, 40)))
        match rng.randrange(5):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:at] + text[at:to] * rng.choice((2, 3, 50)) + text[to:]
            case 2:
                text = text[:at] + hostile(rng) + text[to:]
            case 3:
                text = text[:at] + rng.choice(SIGNS) + text[at:]
            case _:
                text = text[:at] + rng.choice(NUMBERS) + text[to:]
    return text[:60_000]
