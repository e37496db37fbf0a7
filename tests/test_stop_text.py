"""Stop texts: a text ends before the first that occurs, however tokens divide it, and nothing of one is shown."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from byhand.generation import Engine, Sampling, StopText, Stream
from runtimes.registered import REFERENCE
from runtimes.test_streams import model


def until(pieces, *stops):
    """A stop text whose token i stands for piece i."""
    return StopText(lambda ids: b"".join(pieces[i] for i in ids), stops)


def first_complete(text, stops):
    """The definition: up to the shortest beginning of the text that ends with a stop text, less the longest such."""
    for end in range(len(text) + 1):
        if found := [stop for stop in stops if text[:end].endswith(stop)]:
            return text[: end - max(map(len, found))]
    return None


texts = st.lists(st.sampled_from(b"ab\xc3\xa9"), max_size=12).map(bytes)


@given(st.lists(texts, max_size=6), st.lists(texts.filter(len), min_size=1, max_size=3))
def test_the_text_ends_before_the_first_stop_text_and_none_of_it_is_shown(pieces, stops):
    written, shown, kept = until(pieces, *stops), b"", None
    for i in range(len(pieces)):
        kept = written(i)
        if kept is not None:
            break
        assert bytes(written.text[: written.settled]).startswith(shown), "nothing is taken back"
        shown = bytes(written.text[: written.settled])
        held = bytes(written.text[written.settled :])
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
    whole = b"".join(pieces)
    expected = first_complete(whole, stops)
    assert bytes(written.text) == (whole if expected is None else expected)
    assert bytes(written.text).startswith(shown)
    assert (kept is None) == (expected is None)
    if expected is not None:
        lengths = [*itertools.accumulate(map(len, pieces), initial=0)]
        assert kept == sum(begin < len(expected) for begin in lengths[:-1]), "tokens that the text has a part of"


def test_texts_are_followed_in_their_order_while_all_go_on():
    two = Engine(model("learned"), 2, runtime=REFERENCE)
    given = [Stream([1], n, Sampling(seed=n)) for n in (5, 2, 3)]
    seen = [(given.index(s), len(s.drawn)) for s in two.follow(iter(given))]
    assert seen == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (2, 3)]
