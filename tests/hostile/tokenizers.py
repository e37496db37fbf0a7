"""Tokenizers' files with damage: refused in one line, or what the file says, and texts come back.

The files are vocab.json and merges.txt, a run's tokenizer.json, Hugging Face's, and tiktoken's ranks.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
from pathlib import Path

from byhand.errors import DataError
from byhand.tokenizers import forms, vocab_files
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.hugging_face import as_hugging_face
from byhand.tokenizers.ranks import as_ranks, of_ranks
from byhand.tokenizers.registry import restored
from byhand.tokenizers.symbols import visible_bytes
from byhand.tokenizers.tokenizer import Tokenizer
from hostile.bytes import damaged

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "t"), ("hell", "o"), ("a", "a")]
_SYMBOLS = [*visible_bytes(), *map("".join, MERGES)]
OTHER = BytePairTokenizer(
    {symbol: token for token, symbol in enumerate(_SYMBOLS)},
    MERGES,
    split="gpt4",
    special={"<|endoftext|>": len(_SYMBOLS)},
).using(Conventions(before=(len(_SYMBOLS),)))
RANKS = of_ranks(as_ranks(BytePairTokenizer(OTHER.vocabulary, MERGES)), "gpt4")
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
    other = b""
    name = ""
    match chance.randrange(8):
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
        case 4 | 5:
            name, other = "tokenizer.json", damaged(as_hugging_face(OTHER), chance)
        case 6:
            values = json.loads(as_hugging_face(OTHER))
            place = values if chance.random() < 0.5 else values["model"]
            place[chance.choice(list(place))] = "HERE"
            said = json.dumps(values).replace('"HERE"', chance.choice(VALUES))
            name, other = "tokenizer.json", said.encode()
        case 7:
            name, other = "ranks.tiktoken", damaged(as_ranks(RANKS), chance)
    place = folder / f"bpe-{seed}"
    place.mkdir()
    try:
        (place / "vocab.json").write_bytes(vocab)
        (place / "merges.txt").write_bytes(merges)
        if name:
            (place / name).write_bytes(other)
            _use_read(place / name, other)
        elif vocab:
            _use(BytePairTokenizer(*vocab_files.read(place / "vocab.json", place / "merges.txt")))
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


def _use_read(path: Path, content: bytes) -> None:
    """Use what was read, if it is what the file says."""
    tokenizer = forms.read(path)
    assert isinstance(tokenizer, BytePairTokenizer)
    if path.suffix == ".json":
        values, again = json.loads(content), json.loads(as_hugging_face(tokenizer))
        model = values["model"]
        merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
        assert again["model"]["merges"] == [list(pair) for pair in dict.fromkeys(map(tuple, merges))], "other merges"
        named = {token["content"]: token["id"] for token in values.get("added_tokens") or []}
        assert again["model"]["vocab"] == {**model["vocab"], **named}, "another vocabulary"
    else:
        lines = [line for line in content.splitlines() if line]
        found = {base64.b64decode(line.split(b" ")[0]): int(line.split(b" ")[1]) for line in lines}
        assert found == {tokenizer.token_bytes[t]: t for t in tokenizer.vocabulary.values()}, "other ranks"
    _use(tokenizer)


def _use(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert all(i in tokenizer for i in ids), "an id of its own is not known"
        assert tokenizer.decode(ids) == text.encode(errors="surrogateescape"), f"{text!r} does not come back"
