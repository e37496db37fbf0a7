"""Texts on which tokenizers differ if anything makes them: by a seed, as many as one likes."""

from __future__ import annotations

import random
from collections.abc import Iterator

SPECIAL = ("<|endoftext|>", "<|end|>")
SIGNS = [
    *" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\u200d\ufeff\x00\x7f",
    *"'\u2019sStTdDmMlLvVrReE\u017f\u212a",
    *"aZ\xe9e\u0301\xdf\u0130\u01c5\u4e2d\u6587\u3042\ud55c\u0639\u0905\u093f\u0e33\u02b0\xaa\U00020000\U0001d400",
    *"09\xb2\xbd\u0663\u0967\u2167\u3007\u4e00\U0001d7d8\u2460",
    *'!?.,;:-_()[]{}<>|/\\"#$%&*+=^`~\u20ac\u2014\u3002\uff0c\U0001f600\U0001f469\u200d\ufe0f',
    *"\u0378\U0001fae9\ua7da\U000105c0\ue000\uffff\U0010ffff",
]
RUNS = ["  ", "   ", "\n\n", "\r\n", "\n ", " \n", "\t\t", " \t", "'s", "'LL", "'re", "'\u017f", "'ve", "aaaa",
        "1234567", "...", "!!\n\n", "the", " the", "hello", "<|", "|>", "<|endof", "0x1F", "e.g."]  # fmt: skip


def nasty_texts(count: int, seed: int, special: bool = False) -> Iterator[str]:
    """Yield random texts of up to 60 parts: single signs, runs, code points of all planes, special tokens."""
    chance = random.Random(seed)
    parts = [*SIGNS, *RUNS * 2, *(SPECIAL * 5 if special else ())]
    for _ in range(count):
        few = chance.choices(parts, k=chance.randint(1, 8)) if chance.random() < 0.5 else parts
        text = []
        for _ in range(chance.randint(0, 60)):
            if chance.random() < 0.1:
                point = chance.randrange(0x110000 if chance.random() < 0.5 else 0x3000)
                text.append(chr(point) if not 0xD800 <= point < 0xE000 else " ")
            else:
                text.append(chance.choice(few) * (chance.randint(1, 9) if chance.random() < 0.1 else 1))
        yield "".join(text)
