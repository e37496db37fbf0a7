"""The words of a question or a phrase as tokens, in both languages: stems, and pairs of Chinese characters.

What is written otherwise but means the same becomes the same token: full-width letters, traditional characters,
endings, American and British spelling, synonyms. `Spelling` finds the known word that a misspelt one stands for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

WIDE = re.compile("[\uff00-\uffef\U0001d400-\U0001d7ff]+")  # from Chinese keyboards, and formulas copied from a PDF
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")
DIMENSIONS = re.compile("(?<=[a-z]{3})[123]d$")  # Conv1d, Conv2d
HAN = re.compile("[\u4e00-\u9fff]")
IN_QUESTIONS = (
    "a an the of in is are it its to and or for with by on at as from where what why how does do did we i my me "
    "you your can could should would will need be been being was were there that this these those them they which "
    "when who whose has have had am im if then than so just only also about into out up please tell show explain "
    "mean means meaning find equation formula code implement implemented implementation compute computed computes "
    "s t m re ve ll dont doesnt isnt cant get got go going put some any whats hows one ones thing things way want "
    "like let lets during before after particular possible help able want wants trying try sure there's im ive id "
    "youre theres still ever every each own very too while because since though see know make makes made take "
    "takes look looks difference between actual simply basically currently someone something anything everything "
    "else say said support supports supported needed using used use uses work works working done doing happen "
    "happens here exactly actually really"
)
STOP = frozenset(IN_QUESTIONS.split())
FILLER = re.compile(
    "为什么|为何|为啥|什么是|是什么|是啥|怎么办|怎么算|怎么做|怎么样?|怎样|如何|请问|在哪里|在哪儿|哪里|在哪|哪儿|多少|"
    "有什么用|有什么|什么|作用|需要|可以|能不能|能否|一下|一个|是不是|有没有|代码|实现|公式|推导|计算|意思|到底|究竟|应该|"
    "支持|支不支持|我们|我|想|要|是|的|了|吗|呢|吧|把|被|与|和|及|在|用|这个|这|那个|那|哪个|哪些|里面|请|对于|知道|时候|的话|怎|吧|啊|呀|嘛|能|让"
)  # Chinese question words, general words, particles
ENDINGS = re.compile(
    r"(?:ization|isation|izing|ising|ized|ised|izes|ises|ize|ise|izer|iser|ations?|ators?|ated?|ating|"
    r"ings?|ers?|ors?|ies|ied|ed|es|s|e|ly|y)$"
)


class Han:
    """Chinese characters: the simplified form of traditional ones, words used in Taiwan, and the sounds of each.

    The tables come from ICU's transliterations; sounds that many people confuse are one.
    """

    def __init__(self, simplified: str, words: Mapping[str, str], sounds: Mapping[str, str]) -> None:
        self.simplified = str.maketrans(dict(zip(simplified[::2], simplified[1::2], strict=True)))
        self.words = dict(words)
        self.sounds = {character: sound for sound, characters in sounds.items() for character in characters}
        self._regional = re.compile("|".join(sorted(words, key=len, reverse=True)) or "$^")

    def plain(self, text: str) -> str:
        """Return text in lower case, with plain letters and simplified characters."""
        text = self.wide(text)
        if not text.isascii():
            text = self._regional.sub(lambda word: self.words[word[0]], text.translate(self.simplified))
        return re.sub("(?<=[a-z]{2})²", "2", text.lower())

    def wide(self, text: str) -> str:
        """Return text with plain letters for full-width ones; NFKC of all of it would turn x² into x2."""
        return WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)

    def sound(self, text: str) -> tuple[str, ...]:
        """Return the sound of every character, itself where it has none."""
        return tuple(self.sounds.get(character, character) for character in text)


def key(plain: str) -> str:
    """Return all letters and digits together: what two spellings of a name have in common."""
    return DIMENSIONS.sub("", "".join(WORD.findall(plain)))


def parts(plain: str) -> list[str]:
    """Return the words of plain text that tell something: Latin words, and runs of Chinese characters."""
    found = WORD.findall(plain if plain.isascii() else FILLER.sub(" ", plain))
    return [word for word in found if word not in STOP and not (len(word) == 1 and word.isdigit())]


def stem(word: str) -> str:
    """Return a Latin word without its ending: trained, training and trainer are one."""
    if len(word) < 4 or not word.isalpha():
        return word
    short = ENDINGS.sub("", word)
    short = short if len(short) >= 3 else word
    return short[:-1] if len(short) > 3 and short[-1] == short[-2] else short


def tokens(plain: str) -> list[str]:
    """Return the tokens of plain text, once each: stems, and Chinese characters alone and in pairs."""
    return list(dict.fromkeys(token for word in parts(plain) for token in of_word(word)))


def of_word(word: str) -> Iterator[str]:
    """Yield the tokens of a Latin word or of a run of Chinese characters."""
    if HAN.match(word):
        yield from word
        yield from (word[i : i + 2] for i in range(len(word) - 1))
    else:
        yield stem(word)


def distance(a: str, b: str, most: int) -> int:
    """Return how many letters are wrong, missing, in excess or swapped with their neighbour; `most` + 1 if more."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, above, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def nearest(word: str, known: Iterable[str], most: int) -> str:
    """Return the known word that differs by the fewest letters, at most so many; "" if there is none."""
    best, found = most + 1, ""
    letters = set(word)
    for other in known:
        if (
            other[0] in word[:2]
            and abs(len(other) - len(word)) < best
            and len(letters.symmetric_difference(other)) <= 2 * most
        ):
            off = distance(word, other, best - 1)
            if off < best:
                best, found = off, other
    return found
