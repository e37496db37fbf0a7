"""The text of a choice is that of all its bytes at once, whatever pieces it comes in."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from byhand.serving.text import GrowingText, name_of

PIECES = [
    b"a",
    b"b",
    b"ab",
    b"",
    b"\n",
    b"\xe4",
    b"\xbd",
    b"\xa0",
    "你".encode(),
    "你好".encode()[:4],
    b"\xf0\x9f",
    b"\x98\x80",
]
STOPS = [b"ab", b"aba", b"b\n", "你".encode(), b"abab", b"a"]
tokens = st.lists(st.integers(0, len(PIECES) - 1), max_size=20)


def whole(ids, stops, echo):
    """The text, its tokens' offsets, how many tokens were drawn, and whether it was stopped, from the definition."""
    content, begins = b"".join(PIECES[i] for i in echo), []
    prompt, drawn, cut = len(content), 0, None
    for i in ids:
        begins.append(len(content))
        drawn += 1
        for k in range(1, len(PIECES[i]) + 1):
            seen = content[prompt:] + PIECES[i][:k]
            if found := [stop for stop in stops if seen.endswith(stop)]:
                cut = prompt + len(seen) - max(map(len, found))
                content += PIECES[i][:k]
                break
        if cut is not None:
            break
        content += PIECES[i]
    if cut is not None:
        content = content[:cut]
        begins = [begin for begin in begins if begin < cut]
    places = [sum(len(PIECES[i]) for i in echo[:k]) for k in range(len(echo))]
    offsets = [len(content[:begin].decode("utf-8", "replace")) for begin in places + begins]
    return content.decode("utf-8", "replace"), offsets, drawn, cut is not None


@given(
    tokens,
    st.lists(st.sampled_from(STOPS), max_size=3, unique=True),
    tokens,
    st.lists(st.booleans(), min_size=20, max_size=20),
)
@example([0, 0, 1], [b"ab"], [], [True] * 20)
@example([5, 6, 7], [], [5, 6], [True] * 20)
@example([2, 4], [b"b\n"], [], [True] * 20)
def test_pieces_join_to_the_text_of_all_bytes(ids, stops, echo, asks):
    found = GrowingText(lambda token: PIECES[token[0]], stops, [PIECES[i] for i in echo])
    text, offsets = "", []
    for i, asked in zip(ids, asks, strict=False):
        kept = found(i)
        if kept is not None:
            break
        if asked:
            piece, more = found.more(False)
            text, offsets = text + piece, offsets + more
    piece, more = found.more(True)
    expected, places, drawn, stopped = whole(ids, stops, echo)
    assert (text + piece, offsets + more, found.count) == (expected, places, drawn)
    assert (found.length, found.stopped) == (len(expected), stopped)


def test_what_could_begin_a_stop_text_waits():
    found = GrowingText(lambda token: PIECES[token[0]], [b"ab"])
    found(1), found(0)
    assert found.more(False) == ("b", [0])
    found(0)
    assert found.more(False) == ("a", [1])
    assert found.more(True) == ("a", [2])


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"a", "a"), ("你".encode(), "你"), (b"\xe4", "bytes:\\xe4"), (b"", ""), (None, "token_id:7")],
)
def test_a_token_that_is_not_whole_is_named_by_its_bytes(content, name):
    assert name_of(content, 7) == name
