"""Makes the formulas' font: `python docs/site/font.py texgyrepagella-math.otf`; needs fonttools and brotli.

The font is TeX Gyre Pagella Math 1.632 (GUST Font License, https://www.gust.org.pl/projects/e-foundry/tg-math) with
these changes: only what follows is kept, primes have the form that they have in superscripts, and the name is gone.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

KEPT = (
    *range(0x20, 0x7F), *range(0xA0, 0x100), *range(0x391, 0x3CA), 0x3D1, 0x3D5, 0x3F1, 0x3F5,  # Latin, Greek
    *range(0x1D434, 0x1D468), 0x210E, *range(0x1D6E2, 0x1D71C),  # the same in italics, as which browsers set a letter
    *range(0x2C6, 0x2DE), *range(0x300, 0x30D), 0x332, 0x338, 0x20D7,  # accents
    *range(0x2010, 0x2027), *range(0x2032, 0x2035), 0x203E, *range(0x2061, 0x2065), 0x2113, 0x211D,  # punctuation
    *range(0x2190, 0x2196), 0x21A6, *range(0x21D0, 0x21D5),  # arrows
    *range(0x2200, 0x2224), *range(0x2225, 0x222C), 0x223C, 0x2248, *range(0x2260, 0x2266), 0x226A, 0x226B,
    *range(0x2282, 0x2288), *range(0x2295, 0x229A), 0x22A4, 0x22A5, 0x22C5, *range(0x22EE, 0x22F2),  # operators
    *range(0x2308, 0x230C), 0x27E8, 0x27E9,  # fences
)  # fmt: skip
PRIMES = {"minute": "minute.st", "uni2033": "uni2033.st", "uni2034": "uni2034.st"}  # Chromium does not look for these
CHANGED = " Changed by the byhand project: a subset, whose primes are those of superscripts."

font = TTFont(sys.argv[1])
for table in font["cmap"].tables:
    table.cmap.update({code: PRIMES[name] for code, name in table.cmap.items() if name in PRIMES})
options = subset.Options(layout_features=[], name_IDs=[0, 13, 14], desubroutinize=True, flavor="woff2")
subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=KEPT)
subsetter.subset(font)
for record in font["name"].names:
    if record.nameID == 0:
        record.string = record.toUnicode() + CHANGED
font["CFF "].cff.fontNames = ["Formulas"]
subset.save_font(font, str(Path(__file__).parents[2] / "src/byhand/web/vendor/formulas.woff2"), options)
