"""tokenizer.json of Hugging Face's `tokenizers`: BPE of bytes and of SentencePiece's pieces, read and written.

Accepts only tokenizers that give the same ids here and there: byte-level BPE with a pre-tokenizer of `SPLITS` or of
other patterns, no normalizer but NFC, and pieces with byte fallback (`hugging_face_pieces`). Of the conventions, the
file holds the tokens added around a text (`post_processor`) and the shown special tokens.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from byhand.errors import DataError
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.hugging_face_pieces import as_steps, of_steps, with_ranks
from byhand.tokenizers.overlaps import overlap
from byhand.tokenizers.patterns import BEHAVIORS, CONTIGUOUS, GPT2, ISOLATED, ONLY, Step
from byhand.tokenizers.post_processor import around, as_post_processor
from byhand.tokenizers.sections import SPACE
from byhand.tokenizers.sentencepiece import BYTE, SentencePieceTokenizer
from byhand.tokenizers.splitting import SPLITS, How, require_searchable
from byhand.tokenizers.symbols import is_pair, is_vocabulary, ordinary

Known = BytePairTokenizer | SentencePieceTokenizer
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
BEFORE: dict[str, list[dict[str, Any]]] = {  # splits that use ByteLevel's own expression, and the steps before it
    "gpt2": [],
    "smollm": [{"type": "Digits", "individual_digits": True}],
}
UNUSED = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")  # model settings that would change ids
AROUND = ("lstrip", "rstrip", "single_word")  # flags of added tokens that would change ids
KNOWN = {  # steps that form one of our splits
    **{name: [((regex, ISOLATED),) for regex in split.regex] for name, split in SPLITS.items()},
    "smollm": [((r"\p{N}", ISOLATED), (GPT2, ISOLATED))],
}


def of_hugging_face(values: Mapping[str, Any]) -> Known:
    """Return the tokenizer of a tokenizer.json. DataError if it cannot be represented."""
    model = values.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise DataError("its model is not BPE")
    if used := [name for name in UNUSED if model.get(name)]:
        raise DataError(f"its model uses {used[0]}, which byhand does not support")
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if not is_vocabulary(vocabulary):
        raise DataError("its vocab is not one table of symbols and their ids")
    if not isinstance(merges, list):
        raise DataError("its merges are not a list")
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else merge for merge in merges]
    if not all(map(is_pair, pairs)):
        raise DataError("its merges are not pairs of symbols")
    special, late = _special(values.get("added_tokens") or [], vocabulary)
    if model.get("byte_fallback"):
        if model.get("ignore_merges"):
            raise DataError("its model uses ignore_merges, which byhand does not support for pieces")
        prefix, lists = of_steps(values), [(left, right) for left, right in pairs]
        plain = {**ordinary(vocabulary, pairs, special), **{s: i for s, i in vocabulary.items() if BYTE.fullmatch(s)}}
        if prefix == "none" and (spaced := [text for text in late if " " in text or SPACE in text]):
            raise DataError(f"its added token {spaced[0][:80]!r} is looked for where spaces are {SPACE} already")
        late = late if prefix == "each" else ()
        pieces = SentencePieceTokenizer(plain, lists, special=special, late=late, prefix=prefix)
        return _with_conventions(with_ranks(pieces), values, vocabulary)
    normalizer = values.get("normalizer")
    if isinstance(normalizer, dict) and normalizer.get("type") == "Sequence":
        steps = normalizer.get("normalizers")
        normalizer = steps[0] if isinstance(steps, list) and len(steps) == 1 else steps or None
    if normalizer not in (None, {"type": "NFC"}):
        raise DataError("its normalizer is not NFC")
    if normalizer and (made := [text for text in special if unicodedata.normalize("NFD", text) != text]):
        raise DataError(f"its added token {made[0][:80]!r} can also arise by composing characters")
    decoder = values.get("decoder")
    if decoder is not None and not (isinstance(decoder, dict) and decoder.get("type") == "ByteLevel"):
        raise DataError("its decoder is not ByteLevel")
    ignore = model.get("ignore_merges") or False
    if type(ignore) is not bool:
        raise DataError("its ignore_merges is neither true nor false")
    found = BytePairTokenizer(
        ordinary(vocabulary, pairs, special),
        [(left, right) for left, right in pairs],
        split=_split(values.get("pre_tokenizer")),
        special=special,
        whole=ignore,
        normal="NFC" if normalizer else "",
    )
    return _with_conventions(found, values, vocabulary)


def _with_conventions(found: Known, values: Mapping[str, Any], vocabulary: Mapping[str, int]) -> Known:
    before, after = around(values.get("post_processor"))
    shown = [token["id"] for token in values.get("added_tokens") or [] if token.get("special") is False]
    texts = {token: text for text, token in vocabulary.items() if token in {*before, *after}}
    conventions = Conventions(before=before, after=after, shown=tuple(shown))
    return found.with_special(texts.values()).using(conventions)


def as_hugging_face(tokenizer: Known) -> bytes:
    """Return the tokenizer.json that `tokenizers` loads. DataError if it could not hold the tokenizer."""
    symbols, conventions = tokenizer.symbols(), tokenizer.conventions
    pieces = isinstance(tokenizer, SentencePieceTokenizer)
    late = tokenizer.late if pieces else ()
    shown = frozenset(conventions.shown)
    added = [
        {
            "id": token,
            "content": text,
            **dict.fromkeys(AROUND, False),
            "normalized": text in late,
            "special": token not in shown,
        }
        for text, token in sorted(tokenizer.special.items(), key=lambda item: item[1])
    ]
    texts = {token: text for text, token in tokenizer.special.items()}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": pieces, "byte_fallback": pieces,
        "ignore_merges": not pieces and tokenizer.whole,
        "vocab": dict(sorted(symbols.items(), key=lambda item: item[1])),
        "merges": list(map(list, tokenizer.listed_merges())),
    }  # fmt: skip
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        **(as_steps(tokenizer.prefix) if pieces else _byte_level_steps(tokenizer)),
        "post_processor": as_post_processor(conventions.before, conventions.after, texts),
        "model": model,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1).encode() + b"\n"


def _byte_level_steps(tokenizer: BytePairTokenizer) -> dict[str, Any]:
    """Return normalizer, pre-tokenizer and decoder."""
    name = tokenizer.split.name
    last: dict[str, Any] = {**BYTE_LEVEL, "use_regex": name in BEFORE}
    before = BEFORE.get(name)
    if before is None:
        before = [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": behavior == ONLY}
            for pattern, behavior in tokenizer.split.steps or [(tokenizer.split.regex[0], ISOLATED)]
        ]
    return {
        "normalizer": {"type": "NFC"} if tokenizer.normal else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*before, last]} if before else last,
        "decoder": {**BYTE_LEVEL, "use_regex": True},
    }


def _special(added: Any, vocabulary: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """Return the added tokens, and those matched after normalisation; checks their order and flags."""
    special, normalized, size = dict[str, int](), dict[str, bool](), len(vocabulary)
    characters = 0
    for token in added if isinstance(added, list) else [None]:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise DataError("its added_tokens are not a list of tokens")
        text = token["content"]
        if not text or text in special or not is_vocabulary({text: token.get("id")}):
            raise DataError(f"its added token {text[:80]!r} is empty, occurs twice, or has no id")
        characters += len(text)
        require_searchable(characters)
        if used := [name for name in AROUND if token.get(name)]:
            raise DataError(f"its added token {text[:80]!r} uses {used[0]}, which byhand does not support")
        if vocabulary.get(text, token["id"]) != token["id"]:  # `tokenizers` would take the vocabulary's
            raise DataError(f"its added token {text[:80]!r} has another id in the vocabulary")
        if text not in vocabulary and token["id"] != size:
            raise DataError(
                f"its added token {text[:80]!r} has the id {token['id']}, where others would give it {size}"
            )
        if token.get("normalized") and unicodedata.normalize("NFC", text) != text:
            raise DataError(f"its added token {text[:80]!r} is matched in NFC text, but is not NFC itself")
        size = max(size, token["id"] + 1)
        special[text] = token["id"]
        normalized[text] = bool(token.get("normalized"))
    early, late = ([text for text, after in normalized.items() if after is when] for when in (False, True))
    if pair := overlap(late, early):
        raise DataError(
            f"its added tokens {pair[0][:80]!r} and {pair[1][:80]!r} overlap, but only one of them is normalized"
        )
    return special, late


def _split(pre: Any) -> How:
    """Return the split of a pre-tokenizer. DataError if byhand lacks it."""
    steps = pre.get("pretokenizers") if isinstance(pre, dict) and pre.get("type") == "Sequence" else [pre]
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise DataError("its pre_tokenizer is not one that byhand knows")
    *before, last = steps
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space") is not False:
        raise DataError("its pre_tokenizer does not end with ByteLevel, or adds a space in front")
    found = tuple(map(_step, before)) + ((GPT2, ISOLATED),) * (last.get("use_regex", True) is not False)
    same = tuple((pattern, ISOLATED if behavior == ONLY else behavior) for pattern, behavior in found)
    return next((name for name, known in KNOWN.items() if same in known), found)


def _step(step: Mapping[str, Any]) -> Step:
    """Return a step before ByteLevel as a pattern."""
    kind, pattern = step.get("type"), step.get("pattern")
    behavior, invert = step.get("behavior", ISOLATED), step.get("invert", False)
    if kind == "Digits":
        return r"\p{N}", ISOLATED if step.get("individual_digits") else CONTIGUOUS
    if kind == "Punctuation":
        pattern = {"Regex": r"[!-/:-@\[-`{-~\p{P}]"}  # their \p{P} is from an older Unicode
    elif kind != "Split":
        raise DataError(
            f"its pre_tokenizer has the step {str(kind)[:40]}, which byhand does not know before ByteLevel"
        )
    if (behavior, invert) not in [(name, name == ONLY) for name in BEHAVIORS]:
        raise DataError(
            f"its pre_tokenizer splits as {str(behavior)[:40]}, with invert {invert}, which byhand does not support"
        )
    for name, text in pattern.items() if isinstance(pattern, dict) else ():
        if name in ("Regex", "String") and isinstance(text, str):
            return (text if name == "Regex" else re.sub(r"(\W)", r"\\\1", text)), str(behavior)
    raise DataError("its pre_tokenizer has a step without a pattern")
