"""vocab.json, merges.txt or tokenizer.json with damage: refused in one line, or a tokenizer whose texts come back."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from byhand.errors import DataError
from byhand.tokenizers.bpe import BytePairTokenizer, visible_bytes
from byhand.tokenizers.registry import restored
from byhand.tokenizers.tokenizer import Tokenizer
from hostile.bytes import damaged

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "t"), ("hell", "o"), ("a", "a")]
VALUES = ["-1", "1e3", "1e999", "9" * 5000, "true", "null", '"1"', "[]", "{}", "2147483648", "0", "5", "[" * 3000]
TEXTS = ["hello the aaaa", "", "naïve 中文\n", "\udc80"]


def attack(seed: int, folder: Path) -> None:
    """Damage the files as the seed says and use them; AssertionError if that goes otherwise than it should."""
    chance = random.Random(seed)
    symbols = [*visible_bytes(), *map("".join, MERGES), "<|endoftext|>"]
    table: dict[str, object] = {symbol: token for token, symbol in enumerate(symbols)}
    vocab = json.dumps(table, ensure_ascii=chance.random() < 0.5).encode()
    merges = "".join(f"{a} {b}\n" for a, b in [("#version:", "0.2"), *MERGES]).encode()
    whole = BytePairTokenizer({symbol: token for token, symbol in enumerate(symbols)}, MERGES).content
    match chance.randrange(4):
        case 0:
            vocab = damaged(vocab, chance)
        case 1:
            merges = damaged(merges, chance)
        case 2:
            key = chance.choice(symbols)
            vocab = json.dumps({**table, key: "HERE"}).replace('"HERE"', chance.choice(VALUES)).encode()
        case 3:
            vocab = b""
            whole = damaged(whole, chance)
    place = folder / f"bpe-{seed}"
    place.mkdir()
    try:
        (place / "vocab.json").write_bytes(vocab)
        (place / "merges.txt").write_bytes(merges)
        if vocab:
            _use(BytePairTokenizer.from_files(place / "vocab.json", place / "merges.txt"))
        else:
            tokenizer = restored(whole)
            assert tokenizer.content == whole, "not what its file says"
            _use(tokenizer)
    except AssertionError as error:
        raise AssertionError(f"tokenizer of seed {seed}: {error}") from error
    except DataError as error:
        if not str(error).isprintable() or len(str(error)) > 1000:
            raise AssertionError(f"tokenizer of seed {seed}: not one line: {error}") from error
    except Exception as error:
        raise AssertionError(f"tokenizer of seed {seed}: {type(error).__name__}: {str(error)[:200]}") from error
    finally:
        shutil.rmtree(place)


def _use(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert all(i in tokenizer for i in ids), "an id of its own is not known"
        assert tokenizer.decode(ids) == text.encode(errors="surrogateescape"), f"{text!r} does not come back"
