"""Byte-pair encoding of a tongue-twister: count pairs, merge the commonest, four times; then encode a new word."""

from collections.abc import Mapping
from itertools import pairwise

from byhand.book.finding.source import pointer
from byhand.book.lessons.lesson import Content, Maker, Number, Step, listed
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.tokenizers.plain import Pair, commonest, count_pairs, joined, learn
from byhand.tokenizers.splitting import words

TEXT, NEW, MERGES = "she sells sea shells", " smells", 4
FIRST = 256  # the ids below are the bytes
Row = tuple[int, ...]
CHOICE = Words(
    "Merging the commonest pair saves the most tokens for one new entry in the vocabulary. "
    "If several pairs are equally common, a fixed rule must choose (the smaller left id, then the smaller right id), or two training runs on the same text could differ.",
    "每次合并都给词表增加一个条目；合并的若是出现次数最多的一对，省下的词元就最多。"
    "次数相同时必须按固定规则选择（先比左边词元的编号，再比右边的，取较小的），否则在同一文本上训练两次可能得到不同的词表。",
)


@listed(120, "Byte-pair encoding: four merges, then a new word", "字节对编码：四次合并，再编码一个新词")
def lesson(array: Maker) -> Content:
    """Learn four merges from the text, then encode a word that is not in it."""
    cut = [word.encode() for word in words(TEXT)]
    rows: list[Row] = [tuple(word) for word in cut]
    merges = learn(dict.fromkeys(cut, 1), MERGES)
    names = {byte: chr(byte).replace(" ", "␣") for byte in TEXT.encode() + NEW.encode()}
    steps = [_bytes(rows, names)]
    for k, pair in enumerate(merges):
        step, rows = _merge(rows, names, k)
        assert names[FIRST + k] == names[pair[0]] + names[pair[1]]
        steps.append(step)
    steps += [_encode(merges, names), _saved(rows, names)]
    intro = Words(
        "A vocabulary is learnt from a text of four words. At first each byte is a token; then the commonest pair of "
        "neighbours becomes a new token, again and again. Real tokenizers do this tens of thousands of times. ␣ is "
        "the space, which belongs to the word that follows it.",
        "从一段只有四个词的文本学习词表。开始时每个字节是一个词元，然后反复把最常见的相邻一对合并成新词元。真实的分词器要合并几万次。␣ 表示空格，它属于后面的词。",
    )
    letters = sorted({byte for byte in names if byte < FIRST})
    start = (
        ("text", TEXT.replace(" ", "␣")),
        (Words("ids", "编号"), ", ".join(f"{names[byte]} {byte}" for byte in letters)),
    )
    return intro, steps, start


def _bytes(rows: list[Row], names: Mapping[int, str]) -> Step:
    """Return the step that cuts the text into words, and the words into bytes."""
    lengths = [len(row) for row in rows]
    return Step(
        Words("Words and bytes", "词与字节"),
        Words(
            "each word is a sequence of bytes; no pair reaches from one word into the next",
            "每个词是一串字节；相邻的一对不能分属两个词",
        ),
        pointer("tokenizers/splitting.py:Split"),
        (
            Number(
                Words("tokens at the start", "最初的词元数"),
                " + ".join(map(str, lengths)),
                sum(lengths),
                mistakes=(Mistake("forgot the spaces", "漏数了空格", sum(lengths) - TEXT.count(" ")),),
            ),
        ),
        _shown(rows, names),
        goal=Words("Cut the text into words, and the words into bytes.", "把文本切成词，再把词切成字节。"),
        why=Words(
            "If the text were not cut into words first, common pairs would join the end of one word to the beginning of the next: "
            "tokens such as “s␣s”, which mean nothing.",
            "如果不先切词，最常见的一对常会跨越词的边界，产生“s␣s”这类没有意义的词元。",
        ),
    )  # fmt: skip


def _merge(rows: list[Row], names: dict[int, str], k: int) -> tuple[Step, list[Row]]:
    """Return the step that counts pairs and merges the commonest, and the words after it."""
    counts = count_pairs(dict.fromkeys(rows, 1))
    pair, new = commonest(counts), FIRST + k
    most = [other for other in sorted(counts) if counts[other] == counts[pair]]
    numbers = [
        _count(other, rows, names) for other in sorted(counts, key=lambda p: (-counts[p], p)) if counts[other] > 1
    ]
    wrong = next((other for other in most if other != pair), None)
    left = Words("left id of the merged pair", "被合并的一对中，左边词元的编号")
    why = "min({" + ", ".join(str(other[0]) for other in most) + "})"
    mistakes = (
        (Mistake("took another of the equally common pairs", "取了次数相同的另一对", wrong[0]),) if wrong else ()
    )
    names[new] = names[pair[0]] + names[pair[1]]
    numbers += [
        Number(left, why if wrong else str(pair[0]), pair[0], mistakes=mistakes),
        Number(
            Words(f"the id of {names[new]}", f"{names[new]} 的编号"),
            f"{FIRST} + {k}",
            new,
            mistakes=(Mistake("counted from 1", "从 1 开始数", new + 1),),
        ),
    ]
    after = [joined(row, pair, new) for row in rows]
    step = Step(
        Words(
            f"Merge {k + 1}: {names[pair[0]]} and {names[pair[1]]} become {names[new]}",
            f"第 {k + 1} 次合并：{names[pair[0]]} 与 {names[pair[1]]} 合成 {names[new]}",
        ),
        Words(
            "the pair with the largest count; among equal counts, the one with the smallest ids",
            "取次数最多的相邻对；次数相同时，取编号较小的（先比左，再比右）",
        ),
        pointer("tokenizers/plain.py:learn"),
        tuple(numbers),
        _shown(after, names),
        goal=Words("Find the next merge and apply it everywhere.", "找出下一对词元，并在所有出现之处合并。"),
        why=CHOICE,
    )
    return step, after


def _count(pair: Pair, rows: list[Row], names: Mapping[int, str]) -> Number:
    """Return how often a pair occurs, word by word."""
    found = [sum(other == pair for other in pairwise(row)) for row in rows]
    said = f"{names[pair[0]]} {names[pair[1]]}"
    return Number(
        Words(f"count of {said}", f"{said} 的次数"),
        " + ".join(map(str, found)),
        sum(found),
        mistakes=(Mistake("counted one too few", "少数了一次", sum(found) - 1),),
    )


def _encode(merges: list[Pair], names: Mapping[int, str]) -> Step:
    """Return the step that encodes a new word: the pair that was learnt first is joined first."""
    row, numbers = tuple(NEW.encode()), list[Number]()
    history = [" ".join(names[id_] for id_ in row)]
    while known := [pair for pair in pairwise(row) if pair in merges]:
        pair = min(known, key=merges.index)
        new = FIRST + merges.index(pair)
        ranks = ", ".join(str(FIRST + merges.index(other)) for other in known)
        last = max(FIRST + merges.index(other) for other in known)
        numbers.append(
            Number(
                Words(f"join {len(numbers) + 1}: the new id", f"第 {len(numbers) + 1} 次合并得到的编号"),
                f"min({{{ranks}}})" if len(known) > 1 else ranks,
                new,
                mistakes=(Mistake("joined the pair that was learnt last", "先合并了最后学到的一对", last),)
                if last != new
                else (),
            )
        )
        row = joined(row, pair, new)
        history.append(" ".join(names[id_] for id_ in row))
    word = NEW.replace(" ", "␣")
    numbers.append(
        Number(Words(f"tokens of {word}", f"{word} 的词元数"), " + ".join("1" for _ in row), len(row), mistakes=(
            Mistake("counted bytes", "数成了字节", len(NEW.encode())),
        ))
    )  # fmt: skip
    return Step(
        Words(f"Encode a new word: {word}", f"编码新词：{word}"),
        Words(
            "of the neighbouring pairs that are known, join the one that was learnt first; repeat",
            "在学过的各对中，先合并最早学到的一对；重复，直到没有可合并的对",
        ),
        pointer("tokenizers/bpe.py:BytePairTokenizer"),
        tuple(numbers),
        ((Words("joined", "合并过程"), " → ".join(history)), (Words("ids", "编号"), str(list(row)))),
        goal=Words("Encode a word that is not in the text.", "编码一个文本中没有的词。"),
        why=Words(
            "The merges are applied in the order in which they were learnt, so a word of the training text becomes the same tokens as in training. "
            "Any word can be encoded: in the worst case each byte stays a token.",
            "按学习时的顺序合并，训练文本中的词就会得到训练结束时的那些词元。任何词都能编码：最坏情况下每个字节各成一个词元。",
        ),
    )


def _saved(rows: list[Row], names: Mapping[int, str]) -> Step:
    """Return the step that counts the saved tokens."""
    bytes_, tokens = len(TEXT.encode()), sum(map(len, rows))
    return Step(
        Words("What is saved", "省下了多少"),
        Words("bytes per token = bytes of the text / tokens", "每词元字节数 = 文本的字节数 / 词元数"),
        pointer("tokenizers/tokenizer.py:Tokenizer"),
        (
            Number(Words("tokens of the text", "文本的词元数"), " + ".join(str(len(row)) for row in rows), tokens,
                   mistakes=(Mistake("counted bytes", "数成了字节", bytes_),)),
            Number(Words("size of the vocabulary", "词表大小"), f"{FIRST} + {MERGES}", FIRST + MERGES,
                   mistakes=(Mistake("forgot the bytes", "漏了字节", MERGES),)),
            Number(Words("bytes per token", "每词元字节数"), f"{bytes_} / {tokens}", bytes_ / tokens,
                   mistakes=(Mistake("inverted the ratio", "比值颠倒了", tokens / bytes_),)),
        ),
        _shown(rows, names),
        goal=Words("Compare the tokens with the bytes that they stand for.", "比较词元数与它们所代表的字节数。"),
        why=Words(
            "A loss in nats per token cannot be compared between vocabularies, since their tokens differ in length. "
            "Once it is divided by the bytes per token, it can. Divided by ln 2 as well, it is in bits instead of "
            "nats: the bits per byte. The bytes are those of the text, whatever the vocabulary.",
            "词表不同，词元长短不同，每词元的损失无法直接比较；除以每词元字节数之后就可以。再除以 ln 2，单位就从奈特变成比特，得到每字节比特数。这里的字节是原文的字节，与词表无关。",
        ),
    )  # fmt: skip


def _shown(rows: list[Row], names: Mapping[int, str]) -> tuple[tuple[Words, str], ...]:
    return ((Words("words", "词"), " | ".join(" ".join(names[id_] for id_ in row) for row in rows)),)
