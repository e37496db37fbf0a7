"""Byte-pair encoding by compiled loops (`runtimes/loops/kernels/tokens`): the same ids and merges, faster.

Needs the loops runtime's packages (`pip install "byhand[fast]"`); `available` says whether they are installed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from threading import Lock

import numpy as np

from byhand.errors import ConfigError
from byhand.runtimes.loops import missing
from byhand.tokenizers.splitting import Split, with_end
from byhand.tokenizers.unicode_kinds import kinds

log = logging.getLogger(__name__)
LETTERS, SLOTS = 1 << 24, 1 << 20  # an encoder's cache: bytes of its words, slots of its hash table
ENDED, FULL, TOO_LONG, UNKNOWN = range(4)  # as in `kernels.tokens.encoding`
PAUSED, PAIRS_FULL, LISTS_FULL = 1, 2, 3  # as in `kernels.tokens.learning`
SHORT = 256  # bytes of a text between special tokens that the kernel would not encode faster
AT_ONCE = 1 << 23  # symbols read per call of the kernel, so that progress can be logged
KERNELS = ("count_words", "encode_words", "learn_merges", "spread_pairs", "spread_words")


@cache
def available() -> bool:
    """Return whether the compiled loops are installed; compiles them on first use on this machine."""
    if missing():
        return False
    try:
        _loaded()
    except ConfigError as error:
        log.info("byte-pair encoding in Python: %s", error)
        return False
    return True


@cache
def _loaded() -> dict[str, Callable[[int, int], int]]:
    from byhand.runtimes.loops.machine.building import addresses_of
    from byhand.runtimes.loops.machine.machine_code import callable_at

    return {name: callable_at(address) for name, address in addresses_of(KERNELS).items()}


def _call(kernel: str, *arrays: np.ndarray) -> None:
    """Run a kernel on arrays: their addresses and lengths are its table."""
    table = np.array([number for array in arrays for number in (array.ctypes.data, array.size)], np.int64)
    row = np.array([0, table.ctypes.data], np.int64)
    _loaded()[kernel](row.ctypes.data, 0)


class Unknown(Exception):
    """The text begins with a word that has a byte without a token."""


class SplitReader:
    """Streams a text in blocks to a kernel, and stops at special tokens.

    A subclass reads words: `read(text, ends, left)` returns the number of bytes consumed: all if the text `ends`
    there, else all but at least `left`. `meet` takes a special token.
    """

    def __init__(self, split: Split, special: Collection[str]) -> None:
        self.kinds = np.frombuffer(kinds(), np.uint8)
        self.rules = [int(split.joins), split.digits]
        texts = sorted((text.encode() for text in special), key=len, reverse=True)
        self.find = re.compile(b"|".join(map(re.escape, texts))) if texts else None
        self.longest = max(map(len, texts), default=0)

    def feed(self, blocks: Iterable[bytes]) -> Iterator[None]:
        """Read the blocks; yield after each."""
        left, kept = b"", 0
        for block, ends in with_end(blocks):
            left += block
            if len(left) < 2 * kept and not ends:  # a long word: rescan when the buffer has doubled
                continue
            begin, content = 0, np.frombuffer(left, np.uint8)
            for match in self.find.finditer(left) if self.find else ():
                if not ends and match.start() + self.longest > len(left):
                    break
                if begin < match.start():
                    self.read(content[begin : match.start()], True, 0)
                self.meet(match[0])
                begin = match.end()
            begin += self.read(content[begin:], ends, self.longest)
            left, kept = left[begin:], len(left) - begin
            yield

    def read(self, text: np.ndarray, ends: bool, left: int) -> int:
        """Read the words of a part of the text."""
        raise NotImplementedError

    def meet(self, special: bytes) -> None:
        """Take a special token."""


class Counter(SplitReader):
    """Counts the distinct words of a text in a hash table: concatenated bytes, offsets, counts."""

    def __init__(self, split: Split, special: Collection[str]) -> None:
        super().__init__(split, special)
        self.count = 0
        self.letters, self.starts = np.zeros(1 << 20, np.uint8), np.zeros((1 << 16) + 1, np.int64)
        self.slots, self.counts = np.zeros(1 << 17, np.int32), np.zeros(1 << 16, np.int64)

    def read(self, text: np.ndarray, ends: bool, left: int) -> int:
        """Count the words."""
        state = np.array([0, self.count, ends, *self.rules, left], np.int64)
        while True:
            _call("count_words", state, text, self.kinds, self.letters, self.starts, self.slots, self.counts)
            used, self.count = int(state[0]), int(state[1])
            if self.count < len(self.counts) and (used == len(text) or not self._full(len(text) - used)):
                return used
            self._grow(len(text) - used)

    def _full(self, more: int) -> bool:
        """Return whether the next word, of at most `more` bytes, may exceed the arrays' capacity."""
        return 2 * self.count >= len(self.slots) or int(self.starts[self.count]) + more > len(self.letters)

    def _grow(self, more: int) -> None:
        if 2 * self.count >= len(self.slots):
            self.starts, self.counts = _doubled(self.starts), _doubled(self.counts)
            self.slots = np.zeros(2 * len(self.slots), np.int32)
            state = np.array([self.count], np.int64)
            _call("spread_words", state, self.letters, self.starts, self.slots)
        else:
            self.letters = np.resize(self.letters, max(2 * len(self.letters), len(self.letters) + more))


class Encoder(SplitReader):
    """Encodes a text with merges; caches the ids of words.

    byte_ids  the id of each byte, -1 if it has none
    pairs     pair of ids -> rank, merged id
    whole     words that become one id without merging
    of_short  encodes a text of fewer than SHORT bytes
    """

    def __init__(
        self, split: Split, special: Mapping[str, int], byte_ids: list[int],
        pairs: Mapping[tuple[int, int], tuple[int, int]], whole: Mapping[bytes, int],
        of_short: Callable[[bytes], list[int]],
    ) -> None:  # fmt: skip
        super().__init__(split, special)
        self.of_short = of_short
        self.special = {text.encode(): np.array([token], np.int32) for text, token in special.items()}
        self.byte_ids = np.array(byte_ids, np.int32)
        self.keys = np.fromiter((left << 32 | right for left, right in pairs), np.int64, len(pairs))
        self.slots = np.zeros(1 << (2 * len(pairs) + 1).bit_length(), np.int32)
        self.ranks = np.fromiter((rank for rank, _ in pairs.values()), np.int32, len(pairs))
        self.joined = np.fromiter((new for _, new in pairs.values()), np.int32, len(pairs))
        _call("spread_pairs", np.array([len(pairs)], np.int64), self.keys, self.slots)
        self.scratch, self.heap = np.empty(1 << 12, np.int32), np.empty(1 << 12, np.int64)
        self.whole, self.found = whole, list[np.ndarray]()
        self._lock = Lock()  # threads share the cache and take turns at encoding blocks
        self._forget()

    def _forget(self) -> None:
        """Reset the cache to the words that are tokens."""
        count, letters = len(self.whole), b"".join(self.whole)
        words = 1 << max(SLOTS, 4 * count).bit_length()
        self.entries = count
        self.letters = np.empty(LETTERS + len(letters), np.uint8)
        self.letters[: len(letters)] = np.frombuffer(letters, np.uint8)
        self.starts, self.begins = np.zeros(words // 2 + 2, np.int64), np.zeros(words // 2 + 2, np.int64)
        self.starts[1 : count + 1] = np.cumsum([len(word) for word in self.whole])
        self.begins[: count + 1] = np.arange(count + 1)
        self.known = np.empty(LETTERS // 4 + count, np.int32)
        self.known[:count] = np.fromiter(self.whole.values(), np.int32, count)
        self.words = np.zeros(words, np.int32)
        _call("spread_words", np.array([count], np.int64), self.letters, self.starts, self.words)

    def encode(self, blocks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Yield the ids (int32) of a text that comes in blocks. Raises Unknown if a byte has none."""
        steps = self.feed(blocks)
        while True:
            with self._lock:
                self.found = []
                if next(steps, self) is self:
                    return
                found = self.found
            yield np.concatenate(found) if len(found) != 1 else found[0]

    def plain(self, text: bytes) -> np.ndarray:
        """Return the ids of a whole text without special tokens. Raises Unknown if a byte has none."""
        with self._lock:
            self.found = []
            self.read(np.frombuffer(text, np.uint8), True, 0)
            return self.found[0]

    def read(self, text: np.ndarray, ends: bool, left: int) -> int:
        """Encode the words."""
        if ends and len(text) < SHORT:
            self.found.append(np.array(self.of_short(text.tobytes()), np.int32))
            return len(text)
        ids = np.empty(len(text), np.int32)
        state = np.array([0, self.entries, ends, *self.rules, left, 0, ENDED], np.int64)
        while True:
            _call(
                "encode_words", state, text, self.kinds, self.letters, self.starts, self.words, self.begins,
                self.known, self.byte_ids, self.keys, self.slots, self.ranks, self.joined, self.scratch, self.heap,
                ids,
            )  # fmt: skip
            if state[7] == FULL:
                self._forget()
                state[1] = self.entries
            elif state[7] == TOO_LONG:
                self.scratch = np.empty(2 * len(self.scratch), np.int32)
                self.heap = np.empty(2 * len(self.heap), np.int64)
            elif state[7] == UNKNOWN:
                raise Unknown(bytes(text[int(state[0]) :]))
            else:
                self.entries = int(state[1])
                self.found.append(ids[: int(state[6])])
                return int(state[0])

    def meet(self, special: bytes) -> None:
        """Add its id."""
        self.found.append(self.special[special])


def learn(words: Counter, merges: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the merged pairs, in order, some at a time; see `plain.learn`."""
    count = words.count
    used = int(words.starts[count])
    symbols, lengths = words.letters[:used].astype(np.int32), np.diff(words.starts[: count + 1]).astype(np.int32)
    room = min(used, 1 << 16) + 2
    keys, counts, heads = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int32)
    heap, slots = np.zeros(2 * room, np.int64), np.zeros(1 << (2 * room).bit_length(), np.int32)
    listed, nexts = np.zeros(used + 1, np.int32), np.zeros(used + 1, np.int32)
    made = np.zeros(merges, np.int64)
    state = np.array([0, merges, 256, 0, 0, 0, -1, 0, PAUSED, 0, AT_ONCE], np.int64)
    done = 0
    while state[8] != ENDED:
        if state[8] == PAIRS_FULL:
            keys, counts, heads, heap = map(_doubled, (keys, counts, heads, heap))
            slots = np.zeros(2 * len(slots), np.int32)
            _call("spread_pairs", state[3:4], keys, slots)
        elif state[8] == LISTS_FULL:
            wanted = max(len(listed) * 3 // 2, int(state[5] + state[9]))
            listed, nexts = np.resize(listed, wanted), np.resize(nexts, wanted)
        _call(
            "learn_merges", state, symbols, words.starts, lengths, words.counts, keys, slots, counts, heads, heap,
            listed, nexts, made,
        )  # fmt: skip
        yield [(int(key) >> 32, int(key) & 0xFFFFFFFF) for key in made[done : int(state[0])]]
        done = int(state[0])


def _doubled(array: np.ndarray) -> np.ndarray:
    """Return an array of twice the size with the same beginning."""
    return np.concatenate([array, np.zeros_like(array)])
