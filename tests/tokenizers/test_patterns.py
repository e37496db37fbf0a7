"""Pre-tokenizers by patterns: cut as `tokenizers` cuts, in any blocks, kept by every file; others are refused."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.tokenizers import forms, patterns, splitting
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.hugging_face import as_hugging_face, of_hugging_face
from byhand.tokenizers.patterns import BEHAVIORS, NAMED
from byhand.tokenizers.registry import restored, stored
from byhand.tokenizers.splitting import pieces, split_of, words
from byhand.tokenizers.symbols import byte_symbols, visible_bytes
from oracle.nasty_texts import SPECIAL, nasty_texts

pytest.importorskip("regex")
LAST = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
OWN = {**LAST, "use_regex": True}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


STEPS = {  # of tokenizer.json; the words of TEXT by `tokenizers` 0.23
    "back": ([split(",", "MergedWithPrevious", kind="String"), LAST], "a,|,|b (c)1234!?"),
    "forth": ([split("[,(]", "MergedWithNext"), LAST], "a|,|,b |(c)1234!?"),
    "runs": ([split(",", "Contiguous"), OWN], "a|,,|b| (|c|)|1234|!?"),
    "digits": ([{"type": "Digits", "individual_digits": False}, LAST], "a,,b (c)|1234|!?"),
    "signs": ([{"type": "Punctuation", "behavior": "Isolated"}, LAST], "a|,|,|b |(|c|)|1234|!|?"),
    "thrice": ([split(r"[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}?(?=\p{N})|(?i:X)|.", "Removed", True), LAST],
               "a|,|,b| |(c|)|1|2|3|4|!|?"),
    "intersections": ([split(r"[\p{L}&&[^b\-]]+|\d"), LAST], "a|,,b (|c|)|1|2|3|4|!?"),
}  # fmt: skip
TEXT = "a,,b (c)1234!?"


def values(steps):
    return {
        "model": {"type": "BPE", "vocab": dict(byte_symbols()), "merges": []},
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": LAST,
        "added_tokens": [],
    }


def steps_of(name):
    return STEPS[name][0] if name in STEPS else [*(split(*step) for step in NAMED[name]), LAST]


@pytest.mark.parametrize("name", STEPS)
def test_words(name):
    found = of_hugging_face(values(STEPS[name][0]))
    assert "|".join(words(TEXT, found.split)) == STEPS[name][1]
    assert bytes(found.encode(TEXT)) == TEXT.encode()


@pytest.mark.parametrize("name", [*STEPS, *NAMED])
def test_files_keep_the_patterns(name, tmp_path):
    found = of_hugging_face(values(steps_of(name)))
    assert found.split.name == (name if name in NAMED else "patterns of its own")
    assert restored(stored(found)).digest == found.digest
    assert of_hugging_face(json.loads(as_hugging_face(found))).digest == found.digest
    assert BytePairTokenizer(byte_symbols(), [], split=found.split.steps).digest == found.digest
    for place in (tmp_path / "t.tiktoken", tmp_path / "folder"):
        with pytest.raises(DataError, match=r"Write a \.json file"):
            forms.write(found, place)


@pytest.mark.parametrize("name", [*STEPS, *NAMED])
@given(seed=st.integers(0, 10**6), data=st.data())
def test_blocks_change_no_word(name, seed, data):
    how = of_hugging_face(values(steps_of(name))).split
    (text,) = nasty_texts(1, seed, special=True)
    text = text.replace("\n", "n") if name == "thrice" else text  # which `.` passes over
    content = text.encode()
    whole = [piece for found in pieces([content], how, SPECIAL) for piece in found]
    assert "".join(whole) == text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "MARGIN", 8)
        assert [piece for found in pieces(parts, how, SPECIAL) for piece in found] == whole


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*STEPS, *NAMED])
def test_words_are_those_of_tokenizers(name):
    """On characters that every Unicode knows: ours may be newer than theirs; that of their Punctuation is older."""
    # not `tokenizers`, which may be a folder of these tests
    pytest.importorskip("tokenizers.models", reason="tokenizers is not installed: nothing is compared")
    import tokenizers

    given = values(steps_of(name))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(given)).pre_tokenizer
    ours = of_hugging_face(given)
    again = tokenizers.Tokenizer.from_str(as_hugging_face(ours).decode()).pre_tokenizer
    for text in [TEXT, *nasty_texts(300, 11)]:
        table = unicodedata.ucd_3_2_0 if name == "signs" else unicodedata
        known = "".join(sign for sign in text if table.category(sign) != "Cn")
        known = known.replace("\n", "") if name == "thrice" else known  # which `.` passes over
        due = [word for word, _ in theirs.pre_tokenize_str(known)]
        found = words(known, ours.split)
        assert ["".join(visible_bytes()[byte] for byte in word.encode()) for word in found] == due, repr(known)
        assert [word for word, _ in again.pre_tokenize_str(known)] == due, repr(known)


REFUSED = {
    "(": "cannot use the pattern",
    r"\w+": "does not read",
    "^a": r"'\^a'",
    "a$": r"'\$'",
    "(?<=a)b": r"does not read '\(\?",
    "(?i)a": r"does not read '\(\?",
    r"(a)\1": "does not read",
    "[[:alpha:]]": "does not read",
    "a{e}": "does not read",
    "a{2}?b": r"does not read '\{2\}'",  # two or none there
    "a{2}+": r"does not read '\{2\}'",  # one or more times two there
    "a{2,}+": r"does not read '\{2,'",
    "a{1,3}+": r"does not read '\{1,",
    r"\p{Unheard}": "Script=Unheard|unknown property",
    "a*": "matches an empty text",
    "(" * 3000: "cannot use the pattern",
    "a" * 5000: "more than 4,096 characters",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_the_two_libraries_do_not_share_is_refused(pattern):
    with pytest.raises(DataError, match=REFUSED[pattern]):
        of_hugging_face(values([split(pattern), LAST]))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"type": "Whitespace"}, LAST], "the step Whitespace"),
        ([OWN, {"type": "Digits", "individual_digits": True}], "does not end with ByteLevel"),
        ([OWN, OWN], "the step ByteLevel"),
        ([split("a", "Removed"), LAST], "splits as Removed, with invert False"),
        ([split("a", "Isolated", True), LAST], "splits as Isolated, with invert True"),
        ([{**split("a"), "pattern": {"Other": "a"}}, LAST], "a step without a pattern"),
        ([split("a")] * 17 + [LAST], "at most 16"),
    ],
)
def test_other_steps_are_refused(steps, message):
    with pytest.raises(DataError, match=message):
        of_hugging_face(values(steps))


@pytest.mark.parametrize("how", ["gpt5", [], [["a"]], [["a", "Odd"]], [[1, "Isolated"]], [["\\w", BEHAVIORS[0]]], 7])
def test_damaged_steps_are_refused(how):
    with pytest.raises(DataError):
        split_of(how)


class Slow:
    left = patterns.SECONDS

    def finditer(self, text, timeout):
        assert timeout <= self.left  # all words together have the time of one
        self.left -= 2
        if self.left < 0:
            raise TimeoutError
        return re.finditer("a+", text)


def test_a_pattern_that_takes_too_long_is_stopped(monkeypatch):
    how = split_of([["(?:(?=[ab])[ac]|[ab])*(?=d)|[ae]", "Isolated"]])  # 2^40 ways for the text below
    with pytest.raises(DataError, match="skips a part"):
        words("ab", split_of([["a", "Removed"]]))
    slow, spent = Slow(), iter(range(0, 100, 2))
    monkeypatch.setattr(patterns, "compiled", lambda pattern: slow)
    monkeypatch.setattr(patterns, "SPEED", 1e9)
    monkeypatch.setattr(patterns.time, "process_time", lambda: next(spent) - 1e-6)
    with pytest.raises(DataError, match="takes too long"):
        patterns.cut(["a" * 40 + "e"] * 9, how.steps)
