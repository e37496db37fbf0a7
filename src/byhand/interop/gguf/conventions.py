"""Conventions of a tokenizer in a GGUF's metadata.

llama.cpp ends a text at EOS, EOT and EOM, and at every token with a known name; it adds at most BOS before a text and
EOS after it. The exact list of ends is stored under byhand's own key, which llama.cpp ignores.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Mapping
from typing import Any

from byhand.errors import ConfigError, DataError
from byhand.interop.hugging_face.conventions import conventions_of, sampling
from byhand.tokenizers.conventions import DEFAULT, MOST, Conventions
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
KEY = "tokenizer.ggml."
NAMED = {
    "bos": f"{KEY}bos_token_id",
    "eos": f"{KEY}eos_token_id",
    "eot": f"{KEY}eot_token_id",
    "pad": f"{KEY}padding_token_id",
    "unk": f"{KEY}unknown_token_id",
}
ADDED = {"before": (f"{KEY}add_bos_token", "bos"), "after": (f"{KEY}add_eos_token", "eos")}
EOM = f"{KEY}eom_token_id"
ENDS = "byhand.end_token_ids"
SAMPLING = "general.sampling."
RENAMED = {"temperature": "temp", "repetition_penalty": "penalty_repeat"}
TEMPLATE, TEMPLATES = "tokenizer.chat_template", "tokenizer.chat_templates"
BEGIN = ("llama-bpe", "tekken")  # pre-tokenizers with which llama.cpp adds BOS by default
KNOWN = (  # names of tokens at which llama.cpp always ends a text
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
)  # fmt: skip


def with_conventions(
    tokenizer: Tokenizer, keys: Mapping[str, Any], shown: tuple[int, ...], begins: bool
) -> Tokenizer:
    """Return a tokenizer with the conventions in the metadata; ids that it lacks are ignored.

    begins  whether BOS is added by default
    """
    found: dict[str, Any] = {name: keys[key] for name, key in NAMED.items() if _is_token(keys.get(key), tokenizer)}
    found = {name: token for name, token in found.items() if tokenizer.token_bytes[token] != b"\0"}  # see `_no_end`
    for name, (flag, token) in ADDED.items():
        added = keys.get(flag, begins and name == "before")
        if type(added) is not bool:
            raise DataError(f"{flag} is {str(added)[:40]!r}, but must be true or false")
        found[name] = (found[token],) if added and token in found else ()
    symbols = tokenizer.symbols()
    added = {*found["before"], *found["after"]}
    tokenizer = tokenizer.with_special([text for text, token in symbols.items() if token in added])
    own = keys.get(ENDS)
    ends = list(own) if isinstance(own, (array, list)) else [
        *(found[name] for name in ("eos", "eot") if name in found), keys.get(EOM),
        *sorted(symbols[name] for name in KNOWN if name in symbols),
    ]  # fmt: skip
    found["ends"] = tuple(dict.fromkeys(token for token in ends[: MOST["ends"]] if _is_token(token, tokenizer)))
    return tokenizer.using(Conventions(**found, shown=shown, templates=_templates(keys), sampling=_sampling(keys)))


def _sampling(keys: Mapping[str, Any]) -> dict[str, float]:
    names = {theirs: ours for ours, theirs in RENAMED.items()}
    said = {key.removeprefix(SAMPLING): value for key, value in keys.items() if key.startswith(SAMPLING)}
    # float32 values such as 0.9 need rounding
    return sampling(
        {names.get(k, k): round(v, 6) if isinstance(v, float) else v for k, v in said.items()}, "the GGUF"
    )


def _is_token(value: Any, tokenizer: Tokenizer) -> bool:
    return type(value) is int and value in tokenizer


def _templates(keys: Mapping[str, Any]) -> dict[str, str]:
    named = keys.get(TEMPLATES)
    listed = named if isinstance(named, list) else []
    places = {DEFAULT: TEMPLATE} | {str(name): f"{TEMPLATE}.{name}" for name in listed}
    return {name: keys[key] for name, key in places.items() if isinstance(keys.get(key), str)}


def as_keys(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the metadata of a tokenizer's conventions. ConfigError if llama.cpp cannot add the same tokens."""
    found = conventions_of(tokenizer)
    named = {name: getattr(found, name) for name in NAMED}
    for name, (_, token) in ADDED.items():
        added = getattr(found, name)
        named[token] = added[0] if named[token] is None and added else named[token]
        if added not in ((), (named[token],)):
            texts = ", ".join(repr(tokenizer.token_bytes[i].decode()) for i in added)
            raise ConfigError(
                f"llama.cpp adds at most the {token.upper()} token {name} a text, but this tokenizer adds {texts}. "
                f"Use --to hf."
            )
    texts = {token: text for text, token in tokenizer.symbols().items()}
    if named["eos"] is None:
        named["eos"] = found.ends[0] if found.ends else _no_end(tokenizer)
    unnamed = [i for i in found.ends if texts[i] not in KNOWN and i not in (named["eos"], named["eot"])]
    others: dict[str, Any] = {EOM: unnamed.pop(0)} if unnamed else {}
    if unnamed and named["eot"] is None:
        named["eot"] = unnamed.pop(0)
    if unnamed:
        log.warning("llama.cpp will not end a text at %s: it knows two ends besides EOS", texts[unnamed[0]])
    others |= {f"{SAMPLING}{RENAMED.get(name, name)}": value for name, value in found.sampling.items()}
    others |= {TEMPLATE if name == DEFAULT else f"{TEMPLATE}.{name}": text for name, text in found.templates.items()}
    if names := [name for name in found.templates if name != DEFAULT]:
        others[TEMPLATES] = names
    return {
        **{key: named[name] for name, key in NAMED.items() if named[name] is not None},
        **{flag: bool(getattr(found, name)) for name, (flag, _) in ADDED.items()},
        **({ENDS: list(found.ends)} if tokenizer.conventions else {}),
        **others,
    }


def _no_end(tokenizer: Tokenizer) -> int:
    """Return the token of byte 0, which no text contains: llama.cpp would otherwise end texts at token 11."""
    return next((token for token, content in tokenizer.token_bytes.items() if content == b"\0"), 0)
