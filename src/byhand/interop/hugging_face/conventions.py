"""Conventions of a tokenizer in a transformers folder.

    tokenizer_config.json   the texts of named tokens, whether BOS and EOS are added, chat templates
    special_tokens_map.json the same texts in older folders
    generation_config.json  the ids at which generation ends; without them config.json, then the tokenizer's EOS;
                            how to sample
    chat_template.jinja, additional_chat_templates/NAME.jinja

tokenizer.json defines the tokens added around a text; with vocab.json, flags do. A named token that the vocabulary
lacks is left out: it has no row in the model.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from byhand.config_checks import at_most, check_types
from byhand.errors import ConfigError, DataError, brief, reason
from byhand.files.reading import parse_json, read_regular
from byhand.runtimes.sampling import Sampling
from byhand.tokenizers import forms
from byhand.tokenizers.conventions import DEFAULT, LENGTH, SAMPLING, TEMPLATES, Conventions
from byhand.tokenizers.hugging_face import AROUND
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
CONFIG, GENERATION = "config.json", "generation_config.json"
SETTINGS, MAP = "tokenizer_config.json", "special_tokens_map.json"
JINJA, OTHERS, SUFFIX = "chat_template.jinja", "additional_chat_templates", ".jinja"
LARGEST = 1 << 24  # bytes of a table: some list thousands of added tokens
NAMED = {"bos": "bos_token", "eos": "eos_token", "pad": "pad_token", "unk": "unk_token"}
ADDED = {"before": ("add_bos_token", "bos"), "after": ("add_eos_token", "eos")}  # without a tokenizer.json
END = "<|endoftext|>"
OF_CLASS = {  # a tokenizer class's defaults for absent keys
    "GPT2Tokenizer": {"bos_token": END, "eos_token": END, "unk_token": END},
    "Qwen2Tokenizer": {"eos_token": END, "pad_token": END, "unk_token": END},
}
CLASSES = {
    "gpt2": "GPT2Tokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
}  # by model_type, if not named

LACKING = (  # settings of transformers and llama.cpp that byhand lacks
    "num_beams", "penalty_alpha", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h", "no_repeat_ngram_size",
    "encoder_repetition_penalty", "bad_words_ids", "sequence_bias", "suppress_tokens", "begin_suppress_tokens",
    "min_length", "min_new_tokens", "guidance_scale", "xtc_probability", "mirostat", "penalty_last_n",
)  # fmt: skip
IDLE = (None, -1, 0, 1, [], {})  # their values without effect


def with_conventions(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Return a tokenizer with its folder's conventions. DataError if one of their files is damaged."""
    model, generation, settings = (table(folder / name) for name in (CONFIG, GENERATION, SETTINGS))
    if "added_tokens_decoder" not in settings:
        settings |= table(folder / MAP)
    _require_plain(settings.get("added_tokens_decoder") or {})
    named = settings.get("tokenizer_class") or CLASSES.get(str(model.get("model_type")))
    usual = OF_CLASS.get(str(named).removesuffix("Fast"), {})
    texts = {name: _text(settings.get(key, usual.get(key)), key) for name, key in NAMED.items()}
    tokenizer = tokenizer.with_special([*filter(None, texts.values()), *_more(settings)])
    found: dict[str, Any] = {name: tokenizer.special.get(text) for name, text in texts.items() if text}
    if not os.path.exists(folder / forms.OURS):
        usual = {"add_bos_token": isinstance(tokenizer, SentencePieceTokenizer)}
        for name, (flag, token) in ADDED.items():
            found[name] = (
                (found[token],) if settings.get(flag, usual.get(flag)) and found.get(token) is not None else ()
            )
    said = _ids(generation.get("eos_token_id")) or _ids(model.get("eos_token_id")) or _ids(found.get("eos"))
    found["ends"] = tuple(dict.fromkeys(i for i in said if i in tokenizer))
    found["sampling"] = sampling(generation, GENERATION)
    return _used(tokenizer, {**found, "templates": _templates(folder, settings)}, folder)


def _used(tokenizer: Tokenizer, found: Mapping[str, Any], folder: Path) -> Tokenizer:
    try:
        return tokenizer.using(replace(tokenizer.conventions, **found))
    except DataError as error:
        raise DataError(f"{folder}: its tokenizer: {error}.") from None


def conventions_of(tokenizer: Tokenizer) -> Conventions:
    """Return a tokenizer's conventions; by default a text ends with its end token."""
    end = tokenizer.special.get(tokenizer.end_text.decode())
    if tokenizer.conventions or end is None:
        return tokenizer.conventions
    return Conventions(eos=end, ends=(end,))


def ids(found: Conventions) -> dict[str, Any]:
    """Return the token ids in config.json and generation_config.json; null if there is none."""
    ends = list(found.ends) if len(found.ends) > 1 else found.ends[0] if found.ends else None
    return {"bos_token_id": found.bos, "eos_token_id": ends, "pad_token_id": found.pad}


def sampling(said: Mapping[str, Any], place: str) -> dict[str, float]:
    """Return the suggested sampling settings that have an effect.

    said  the values in `place`, by transformers' names: with do_sample the default temperature is 1; without it only
          the penalty counts
    """
    if (samples := said.get("do_sample")) is False:
        said = {"repetition_penalty": said.get("repetition_penalty")}
    found = dict[str, float]()
    for name, idle in SAMPLING.items():
        value = said.get(name, 1.0 if samples is True and name == "temperature" else None)
        if value not in (None, idle):
            try:
                check_types(suggested := Sampling(**{name: value}))
                at_most(suggested)
                found[name] = value
            except (ConfigError, TypeError):
                log.warning("%s: %s cannot be %s; left out", place, name, str(value)[:40])
    if lacking := [name for name in LACKING if said.get(name) not in IDLE]:
        log.warning("%s: byhand's sampling has no %s; left out", place, ", ".join(lacking))
    return found


def generation(found: Conventions) -> dict[str, Any]:
    """Return the sampling settings for generation_config.json."""
    return {"do_sample": not found.sampling.keys() <= {"repetition_penalty"}, **found.sampling}


def settings(found: Conventions, texts: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
    """Yield the tokens and chat templates for tokenizer_config.json.

    texts  of the special tokens, which named tokens are
    """
    for name, key in NAMED.items():  # null too: some tokenizer classes have a default for an absent key
        yield key, texts.get(getattr(found, name))
    if found.templates.keys() == {DEFAULT}:
        yield "chat_template", found.templates[DEFAULT]
    elif found.templates:
        yield "chat_template", [{"name": name, "template": text} for name, text in found.templates.items()]


def table(path: Path) -> dict[str, Any]:
    """Return a file's table, empty if there is no such file. DataError if it is damaged."""
    try:
        found = parse_json(read_regular(path, LARGEST)) if os.path.exists(path) else {}
        if not isinstance(found, dict):
            raise ValueError("no table")
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the folder.") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {brief(error)}. Use the model's own.") from None
    return found


def _text(value: Any, key: str) -> str | None:
    """Return the text of a named token, which may be a table with its flags."""
    text = value.get("content") if isinstance(value, dict) else value
    if text is not None and not isinstance(text, str):
        raise DataError(f"its {key} in {SETTINGS} is not a string. Use the model's own.")
    return text


def _require_plain(added: Any) -> None:
    """Raise DataError if an added token strips spaces or must be a whole word."""
    for token in added.values() if isinstance(added, dict) else [None]:
        if not isinstance(token, dict):
            raise DataError(f"its added_tokens_decoder in {SETTINGS} is not a table of tokens. Use the model's own.")
        if used := [name for name in AROUND if token.get(name)]:
            raise DataError(
                f"its added token {str(token.get('content'))[:80]!r} uses {used[0]}, which byhand does not support."
            )


def _more(settings: Mapping[str, Any]) -> list[str]:
    """Return the texts of the additional, unnamed special tokens."""
    found = list[str]()
    for key in ("additional_special_tokens", "extra_special_tokens"):
        values = settings.get(key) or []
        listed = values.values() if isinstance(values, dict) else values if isinstance(values, list) else [0]
        found += [text for value in listed if (text := _text(value, key))]
    return found


def _ids(value: Any) -> list[int]:
    """Return the ids in a file's entry: one, several or none."""
    listed = [i for i in (value if isinstance(value, list) else [value]) if i is not None]
    if wrong := [i for i in listed if type(i) is not int]:
        raise DataError(f"an eos_token_id is {str(wrong[0])[:40]!r}, but must be a token's id. Use the model's own.")
    return listed


def _templates(folder: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the chat templates by name; separate files override those in the settings."""
    found = {DEFAULT: (folder / JINJA)} if os.path.exists(folder / JINJA) else {}
    try:
        others = sorted((folder / OTHERS).glob(f"*{SUFFIX}"))[: TEMPLATES + 1]
        found |= {path.name.removesuffix(SUFFIX): path for path in others}
        if found:
            return {name: read_regular(path, 4 * LENGTH).decode() for name, path in found.items()}
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {reason(error)}. Check the folder.") from None
    except UnicodeDecodeError:
        raise DataError(f"a chat template in {folder} is not UTF-8. Use the model's own.") from None
    given = settings.get("chat_template")
    if given is None or isinstance(given, str):
        return {} if given is None else {DEFAULT: given}
    try:
        listed = given.items() if isinstance(given, dict) else ((each["name"], each["template"]) for each in given)
        return {str(name): text for name, text in listed}
    except (KeyError, TypeError):
        raise DataError(f"the chat_template in {folder / SETTINGS} is not a string. Use the model's own.") from None
