"""Bytes to batches."""

import numpy as np
import pytest

from byhand.corpus import text_file
from byhand.corpus.dataset import ByteDataset, Corpus, batch_generator, bits_per_byte
from byhand.corpus.text_file import TextFile
from byhand.errors import DataError
from byhand.tokenizers.byte import BYTES
from toy_tokenizers import PairTokenizer, byte_pairs

TOKENS = (np.arange(1000) % 251).astype(np.uint8)


def test_targets_are_the_tokens_shifted_by_one():
    tokens, targets = ByteDataset(TOKENS).sample_batch(8, 16, np.random.default_rng(0))
    assert tokens.shape == targets.shape == (8, 16)
    assert tokens.dtype == targets.dtype == np.int64
    np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
    np.testing.assert_array_equal((tokens[:, -1] + 1) % 251, targets[:, -1])


def test_every_window_can_be_drawn_and_none_runs_past_the_end():
    rng = np.random.default_rng(0)
    starts = {int(t[0]) for _ in range(50) for t in ByteDataset(TOKENS[:20]).sample_batch(8, 16, rng)[0]}
    assert starts == {0, 1, 2, 3}


def test_a_batch_depends_on_its_number_and_the_seed_alone():
    def batch(seed: int, number: int) -> bytes:
        return ByteDataset(TOKENS).sample_batch(4, 8, batch_generator(seed, number))[0].tobytes()

    assert batch(1, 7) == batch(1, 7)
    assert len({batch(s, n) for s in range(3) for n in range(10)}) == 30


def test_spread_windows_reach_from_the_first_byte_to_the_last():
    tokens, targets = ByteDataset(TOKENS).spread_windows(10, 16)
    assert len(tokens) == 10
    assert tokens[0, 0] == TOKENS[0]
    assert targets[-1, -1] == TOKENS[-1]


@pytest.mark.parametrize(("length", "windows"), [(17, 1), (18, 2), (33, 2), (34, 3)])
@pytest.mark.parametrize("most", [10, 10**15])
def test_spread_windows_read_a_short_text_once(length, windows, most):
    """Each token is predicted, and windows overlap by less than one."""
    tokens, targets = ByteDataset(np.arange(length, dtype=np.uint8)).spread_windows(most, 16)
    assert len(tokens) == windows
    assert set(targets.ravel()) == set(range(1, length))


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_split_keeps_every_byte_once(fraction):
    train, val = ByteDataset(TOKENS).split(fraction, 16)
    assert len(val) == round(1000 * fraction)
    np.testing.assert_array_equal(np.concatenate([train.tokens, val.tokens]), TOKENS)


def test_too_short_a_text_says_how_long_it_must_be():
    with pytest.raises(DataError, match=r"notes holds 40 bytes, but seq_len 64 needs at least 65. .*--seq-len 32"):
        ByteDataset(TOKENS[:40], "notes").require(64)


def test_bytes_are_not_copied_and_count_as_they_are():
    content = b"some text"
    corpus = ByteDataset(content)
    assert corpus.tokenizer is BYTES
    assert corpus.tokens.tobytes() == content
    assert not corpus.tokens.flags.owndata
    assert (corpus.count_bytes(), corpus.count_bytes(4)) == (9, 5)
    assert all(type(part) is ByteDataset for part in corpus.split(0.5, 2))


def test_a_corpus_of_bytes_may_hold_other_integers():
    corpus = ByteDataset(np.array([300, 2, 70000]))
    assert corpus.count_bytes(1) == 2
    with pytest.raises(DataError, match=r"the byte 70000, but vocab_size 256 has ids 0 to 255\. .*--vocab-size"):
        corpus.require_vocabulary(256)


def test_a_corpus_knows_how_many_bytes_its_tokens_stand_for():
    bpe = byte_pairs()
    text = b"hello the other house, all those aaaa " * 20
    corpus = Corpus(text, bpe, "notes")
    assert corpus.tokens.dtype == np.uint16
    assert corpus.count_bytes() == len(text)
    for part in corpus.split(0.25, 8):
        assert part.tokenizer is bpe
        assert part.count_bytes() == len(bpe.decode(part.tokens.tolist()))
    with pytest.raises(DataError, match=r"notes holds \d+ tokens, but seq_len 99999"):
        corpus.require(99999)


def test_the_vocabulary_must_have_the_tokenizers_ids():
    pairs = PairTokenizer(b"abcd")
    for size in (16, 17, 64):
        Corpus(b"abba", pairs).require_vocabulary(size)
    with pytest.raises(DataError, match="has 16 tokens, but the model's vocab_size is 15"):
        Corpus(b"abba", pairs).require_vocabulary(15)
    with pytest.raises(DataError, match=r"holds the token 16, but vocab_size 16 has ids 0 to 15\."):
        Corpus(np.array([1, 16]), pairs).require_vocabulary(16)


def test_a_mapped_array_is_read_where_it_is_asked_for(tmp_path):
    ids = np.arange(1000, dtype="<u2") % 16
    ids.tofile(tmp_path / "ids")
    on_disk = np.memmap(tmp_path / "ids", "<u2", "r")
    mapped = Corpus(on_disk, PairTokenizer(b"abcd"))
    expected = Corpus(ids, PairTokenizer(b"abcd")).sample_batch(4, 8, batch_generator(1, 2))
    np.testing.assert_array_equal(mapped.sample_batch(4, 8, batch_generator(1, 2)), expected)
    assert mapped.count_bytes(1) == 1998
    assert np.shares_memory(mapped.split(0.1, 8)[0].tokens, on_disk)


def test_bits_per_byte():
    assert bits_per_byte(np.log(256), 1.0) == pytest.approx(8)
    assert bits_per_byte(np.log(65536), 2.0) == pytest.approx(8)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (np.zeros((2, 3), int), r"not one of the shape \(2, 3\)"),
        (np.zeros(3), "not float64"),
        ("text", "not <U4"),
        ([[1], [2, 3]], "not rows of different lengths"),
        (None, "not object"),
    ],
    ids=str,
)
def test_tokens_are_a_vector_of_integers(tokens, said):
    with pytest.raises(DataError, match=rf"notes must be bytes or an array \(N,\) of integers, {said}\.$"):
        Corpus(tokens, name="notes")


def test_negative_ids_and_no_tokens_are_no_tokens_of_a_vocabulary():
    pairs = PairTokenizer(b"abcd")
    with pytest.raises(DataError, match=r"holds the token -1, but vocab_size 16 has ids 0 to 15\."):
        Corpus(np.array([1, -1]), pairs).require_vocabulary(16)
    with pytest.raises(DataError, match="hold the id -1, but the pairs tokenizer has 16"):
        Corpus(np.array([1, -1]), pairs).count_bytes()
    with pytest.raises(DataError, match="holds 0 bytes"):
        Corpus(b"").split(0.1, 4)
    Corpus(b"").require_vocabulary(16)


@pytest.mark.parametrize("rows", [slice(0, 3), slice(3, 6), slice(5, 8), slice(0, 8), slice(2, 2), None])
@pytest.mark.parametrize("on_disk", [True, False], ids=["file", "memory"])
def test_a_host_reads_its_rows_of_a_batch_and_no_other_window(tmp_path, monkeypatch, rows, on_disk):
    (tmp_path / "text").write_bytes(TOKENS.tobytes())
    monkeypatch.setattr(text_file, "IN_MEMORY", 0)
    text = TextFile(tmp_path / "text")
    tokens, targets = ByteDataset(TOKENS).sample_batch(8, 16, batch_generator(3, 1))
    reads = []

    def read(length, offset, read=text._read):
        reads.append((length, offset))
        return read(length, offset)

    monkeypatch.setattr(text, "_read", read)
    found = ByteDataset(text if on_disk else TOKENS).sample_batch(8, 16, batch_generator(3, 1), rows)
    mine = np.arange(8)[rows or slice(None)]
    for got, whole in zip(found, (tokens, targets), strict=True):
        assert got.shape == (8, 16)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got[mine], whole[mine])
        assert not np.delete(got, mine, axis=0).any()
    if on_disk:
        assert [(length, TOKENS[offset]) for length, offset in reads] == [(17, tokens[i, 0]) for i in mine]


def test_the_rows_of_all_hosts_are_the_batch_and_all_draw_alike():
    drawn = [batch_generator(3, 1) for _ in range(4)]
    corpus = ByteDataset(TOKENS)
    parts = [corpus.sample_batch(8, 16, rng, slice(2 * i, 2 * i + 2)) for i, rng in enumerate(drawn)]
    whole = corpus.sample_batch(8, 16, batch_generator(3, 1))
    for which in range(2):
        np.testing.assert_array_equal(sum(part[which] for part in parts), whole[which])
    assert len({int(rng.integers(1 << 60)) for rng in drawn}) == 1


def test_a_split_by_documents_is_behind_their_ends():
    text = b"one\0two\0three\0four\0"
    for documents, train in ((1, b"one\0"), (3, b"one\0two\0three\0")):
        parts = Corpus(text, training=documents).split(0.5, 2)
        assert [part.tokens.tobytes() for part in parts] == [train, text[len(train) :]]
    with pytest.raises(DataError, match="fewer documents than its record says"):
        Corpus(text, training=5).split(0.5, 2)
