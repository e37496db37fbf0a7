"""nanoGPT's character tokenizer: data/NAME/meta.pkl, which has the id of each; it is not unpickled."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from byhand.errors import DataError, reason
from byhand.files.reading import read_regular
from byhand.interop.nanogpt import pickled
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.symbols import visible_bytes
from byhand.tokenizers.tokenizer import Tokenizer

META, LARGEST = "meta.pkl", 1 << 22  # bytes
BYTES, GPT2 = 256, 50257  # vocabularies that need no characters


def beside(path: Path, dataset: Any, vocab_size: int) -> Tokenizer | None:
    """Return the characters for a ckpt.pt, from its folder or the data folder beside it.

    dataset  its name in the data folder

    Returns None if they are missing and the model may not need them. DataError if it does, or they are another's.
    """
    place = path.resolve().parent
    named = isinstance(dataset, str) and re.fullmatch(r"\w[\w.-]*", dataset)
    data = Path("data") / (dataset if named else "NAME") / META
    found = next((meta for meta in (place / META, place.parent / data) if os.path.exists(meta)), None)
    if found:
        return _of_meta(found, vocab_size)
    if vocab_size == BYTES or vocab_size >= GPT2:
        return None
    raise DataError(
        f"{path} lacks {META}, which has the characters of its {vocab_size:,} tokens. Copy nanoGPT's {data} next to "
        f"it, or name a tokenizer with --tokenizer."
    )


def _of_meta(path: Path, vocab_size: int) -> Tokenizer:
    """Return the tokenizer: ASCII as bytes, and each other character as a special token that is shown as text."""
    try:
        ids = pickled.loaded(read_regular(path, LARGEST))["stoi"]
        sound = isinstance(ids, dict) and all(len(text) == 1 and type(token) is int for text, token in ids.items())
        if not sound or sorted(ids.values()) != list(range(vocab_size)):
            raise ValueError("ids")
        "".join(ids).encode()
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check its permissions.") from None
    except (ValueError, LookupError, TypeError, pickled.NotTensors):
        raise DataError(
            f"{path} does not say {vocab_size:,} characters and their ids. Name another tokenizer with --tokenizer."
        ) from None
    signs = visible_bytes()
    others = {text: token for text, token in ids.items() if not text.isascii()}
    found = BytePairTokenizer({signs[ord(text)]: ids[text] for text in ids.keys() - others}, [], special=others)
    return found.using(Conventions(shown=tuple(others.values())))
