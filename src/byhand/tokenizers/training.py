"""Training a tokenizer: count a text's words, block by block; the commonest pairs become tokens.

Memory grows with the distinct words, not with the text. The rule, ties included, is that of `plain.learn`; compiled
loops apply it if installed, else the code here.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from byhand.errors import ConfigError
from byhand.files.reading import EVERY, logged
from byhand.tokenizers import compiled
from byhand.tokenizers.bpe import LONG, BytePairTokenizer
from byhand.tokenizers.plain import Pair, joined
from byhand.tokenizers.splitting import SPLITS, Split, pieces
from byhand.tokenizers.symbols import LARGEST, encoded, visible_bytes
from byhand.tokenizers.tokenizer import END, utf8

log = logging.getLogger(__name__)


def train(
    blocks: Iterable[bytes],
    vocab_size: int,
    split: str = "gpt4",
    special: Sequence[str] = (),
    size: int = 0,
    documents: bool = False,
) -> BytePairTokenizer:
    """Return a tokenizer of at most vocab_size tokens: 256 bytes, merges, then the special tokens.

    size       of the text in bytes, for the log; for a short one, compiled loops are not loaded
    documents  the text has several documents: no token crosses an `END`
    Raises ConfigError if vocab_size is too small for bytes and special tokens, or a special token occurs twice.
    """
    if not 256 + len(special) <= vocab_size <= LARGEST:
        raise ConfigError(
            f"vocab_size is {vocab_size:,}, but must be from {256 + len(special):,} (bytes and special tokens) "
            f"to {LARGEST:,}. Use 8192."
        )
    for text in special:
        encoded(text)
    if "" in special:
        raise ConfigError("a special token is empty. Give it a text, such as <|endoftext|>.")
    if len(set(special)) < len(special):
        raise ConfigError("a special token is given twice. Give each one once.")
    if single := sorted(set(special) & set(visible_bytes())):
        raise ConfigError(f"the special token {single[0]!r} is a symbol of a byte already. Use a longer text.")
    wanted = vocab_size - 256 - len(special)
    merges: list[Pair] = []
    said = time.monotonic()

    def say(done: int) -> None:
        log.info("counted the words of %s of %s MB", f"{done / 1e6:,.0f}", f"{size / 1e6:,.0f}")

    for found in _learnt(logged(blocks, say), wanted, SPLITS[split], [*special, *[END.decode()] * documents], size):
        merges += found
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            log.info("merge %s of %s", f"{len(merges):,}", f"{wanted:,}")
    if len(merges) < wanted:
        log.warning("the text has only %s merges: every word is one token", f"{len(merges):,}")
    return of_merges(merges, split, special)


def of_merges(merges: Iterable[Pair], split: str, special: Sequence[str] = ()) -> BytePairTokenizer:
    """Return the tokenizer with ids for the bytes, the merges in order, and the special tokens."""
    symbols, pairs = list(visible_bytes()), list[tuple[str, str]]()
    for left, right in merges:
        pairs.append((symbols[left], symbols[right]))
        symbols.append("".join(pairs[-1]))
    vocabulary = {symbol: token for token, symbol in enumerate(symbols)}
    return BytePairTokenizer(
        vocabulary, pairs, split=split, special={text: len(symbols) + k for k, text in enumerate(special)}
    )


def learn(words: Mapping[bytes, int], merges: int) -> Iterator[list[Pair]]:
    """Yield the pairs of `plain.learn`, one by one; an index by pair finds the words to update."""
    rows, weights = [tuple(word) for word in words], list(words.values())
    counts, places = Counter[Pair](), defaultdict[Pair, set[int]](set)

    def count(row: int, sign: int) -> set[Pair]:
        for pair in (found := list(pairwise(rows[row]))):
            counts[pair] += sign * weights[row]
            places[pair].add(row)
        return set(found)

    for row in range(len(rows)):
        count(row, 1)
    heap = [(-n, pair) for pair, n in counts.items()]
    heapify(heap)
    new = 256
    while heap and new < 256 + merges:
        n, pair = heappop(heap)
        if counts[pair] != -n:  # a stale entry of the heap; counts only fall
            if counts[pair] > 0:
                heappush(heap, (-counts[pair], pair))
            continue
        fresh: set[Pair] = set()
        for row in places.pop(pair):
            count(row, -1)
            rows[row] = joined(rows[row], pair, new)
            fresh |= {found for found in count(row, 1) if new in found}
        for found in fresh:
            heappush(heap, (-counts[found], found))
        del counts[pair], places[pair]
        yield [pair]
        new += 1


def _learnt(
    blocks: Iterable[bytes], merges: int, split: Split, ends: Sequence[str], size: int
) -> Iterator[list[Pair]]:
    short = 0 < size < LONG
    if not short and compiled.available():
        counter = compiled.Counter(split, ends)
        for _ in counter.feed(blocks):
            pass
        log.info("%s distinct words", f"{counter.count:,}")
        return compiled.learn(counter, merges)
    words: Counter[str] = Counter()
    for found in pieces(blocks, split, ends):
        words.update(found)
    for text in ends:
        del words[text]
    faster = "" if short else "; byhand[fast] would count and merge them many times faster"
    log.info("%s distinct words%s", f"{len(words):,}", faster)
    return learn({utf8(word): count for word, count in words.items()}, merges)
