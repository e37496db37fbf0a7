"""Import and export: other programs' files become a run, and a run becomes their files."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from byhand.config import TrainConfig
from byhand.conversations.formats import with_template
from byhand.errors import ConfigError, DataError, command, reason
from byhand.files import run_folder
from byhand.files.weights import OpenFile
from byhand.files.writing import create_all, remedy, remove_left_over
from byhand.formats.registry import FORMATS
from byhand.interop.foreign import Foreign
from byhand.interop.gguf import model as gguf
from byhand.interop.gguf.parts import models
from byhand.interop.hugging_face import folder as hugging_face
from byhand.interop.hugging_face import peft, tokens
from byhand.interop.llama2_c import checkpoint as llama2_c
from byhand.interop.llm_c import checkpoint as llm_c
from byhand.interop.nanogpt import checkpoint as nanogpt
from byhand.interop.packaged import named
from byhand.interop.seed_program import checkpoint as seed_program
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.runs.lock import locked
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.conventions import NONE
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
READERS: dict[bytes, Callable[[Path], Foreign]] = {  # by a file's first bytes
    gguf.MAGIC: gguf.read,
    llm_c.MAGIC: llm_c.read,
    llama2_c.MAGIC: llama2_c.read,
    nanogpt.MAGIC: nanogpt.read,
    seed_program.MAGIC[:4]: seed_program.read,
}
HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)  # a model's name there
IMPORTED = "imported"  # key of the state: the source of the first checkpoint


def model(given: Path, moments: bool = False, unread: bool = True) -> Checkpoint:
    """Return what a command's MODEL means: a run's newest checkpoint, or a model of another program, or a named one.

    moments, unread  of a run (`runs.checkpoint.load`)
    """
    path = named(given)
    try:
        return checkpoint.load(path, moments, unread)
    except run_folder.ForeignModelError:
        return opened(path.parent if path.suffix == ".safetensors" else path)


def opened(path: Path, tokenizer: str = "") -> Checkpoint:
    """Return a run's newest checkpoint without moments, or another program's model as one (see `read`).

    tokenizer  for a model of another program that has none
    """
    path = named(path)
    if not run_folder.is_of_byhand(path):
        return as_checkpoint(*imported(path, tokenizer))
    if tokenizer:
        raise ConfigError(f"{path} is a run, which has its tokenizer. Leave out the other one.")
    return checkpoint.load(path, moments=False)


def imported(path: Path, tokenizer: str = "", base: Path | None = None) -> tuple[Foreign, Tokenizer]:
    """Return a model of another program, and its own tokenizer or the given one: a file, a folder, or bytes.

    path  of it, or a packaged model's name
    base  of an adapter: a run, or anything that `read` takes
    """
    given, path = _named(tokenizer), named(path)
    model = read(path) if base is None else _adapted(path, base, tokenizer)
    return model, with_tokenizer(model, given, path)


def _adapted(path: Path, base: Path, tokenizer: str) -> Foreign:
    """Return a base model with a PEFT adapter merged."""
    if not peft.is_adapter(path):
        raise DataError(f"{path} has no {peft.CONFIG}: it is not an adapter. Leave out --base.")
    whole = opened(base, tokenizer if not run_folder.is_of_byhand(base) else "").merged()
    config, arrays = peft.read(path, whole.config.model, whole.averages or whole.parameters)
    return Foreign("PEFT adapter", config, arrays, lambda: whole.tokenizer)


def _named(tokenizer: str) -> Tokenizer | None:
    if tokenizer in ("", "bytes"):
        return BYTES if tokenizer else None
    path = Path(tokenizer)
    if os.path.isdir(path) and tokens.of_folder(path) is None:
        raise ConfigError(f"{path} has no tokenizer.json, and no vocab.json with merges.txt. Name another folder.")
    return tokens.of_path(path)


def read(path: Path) -> Foreign:
    """Return the model in a transformers folder, a GGUF, or another trainer's checkpoint.

    Raises DataError or ConfigError in one line if it is none of these, is damaged, or is a model that we lack.
    """
    if os.path.isdir(path):
        if run_folder.is_of_byhand(path):
            raise DataError(f"{path} is byhand's own. Use it directly, or convert it with `byhand export`.")
        if peft.is_adapter(path):
            raise DataError(f"{path} is an adapter of PEFT. Name its base: `byhand import` with --base MODEL.")
        found = models(list(path.glob("*.gguf")))
        if not found or any(path.glob("*.safetensors")):
            return hugging_face.read(path)
        if len(found) > 1:
            raise DataError(f"{path} holds {len(found)} models. Name one, as in {found[0]}.")
        path = found[0]
    if HUB.fullmatch(path.as_posix()) and not os.path.lexists(path):
        get = command("hf", "download", path.as_posix(), "--local-dir", path.name)
        raise DataError(
            f"there is no {path} on this machine, and byhand downloads no models. If it is on the Hugging Face hub, "
            f"get it with `{get}` (pip install huggingface_hub provides hf), and import {path.name}."
        )
    with OpenFile(path) as file:
        start = file.read(0, min(4, file.size)).tobytes()
    if start not in READERS and llama2_c.is_model(path):
        return llama2_c.read(path)
    if start not in READERS:
        raise DataError(
            f"{path} is neither a GGUF nor a checkpoint of llm.c, llama2.c or nanoGPT. "
            f"Give one of these, or a folder with config.json and model.safetensors."
        )
    return READERS[start](path)


def with_tokenizer(model: Foreign, given: Tokenizer | None, path: Path) -> Tokenizer:
    """Return the model's tokenizer or the given one; 256 tokens mean bytes. DataError if there is none."""
    tokenizer = given or model.tokenizer() or (BYTES if model.config.vocab_size == 256 else None)
    if tokenizer is None:
        raise DataError(
            f"{path} has no tokenizer for its {model.config.vocab_size:,} tokens. Name one with --tokenizer: a "
            f"tokenizer.json, tokenizer.model or tokenizer.bin, or a folder with one."
        )
    if given is BYTES and model.config.vocab_size < BYTES.vocab_size:
        raise DataError(f"{path} has {model.config.vocab_size} tokens, too few for bytes. Name its own tokenizer.")
    tokenizer = within(tokenizer, model.config.vocab_size)
    tokenizer.require_vocabulary(model.config.vocab_size)
    return tokenizer


def within(tokenizer: Tokenizer, vocab_size: int) -> Tokenizer:
    """Return a tokenizer without unused special tokens beyond the model's vocabulary.

    Such as a padding token added only to the tokenizer. DataError if a convention or a template uses one.
    """
    beyond = {text: token for text, token in tokenizer.special.items() if token >= vocab_size}
    if not beyond or any(i >= vocab_size for i in tokenizer.token_bytes.keys() - beyond.values()):
        return tokenizer
    kept, templates = tokenizer.conventions, "".join(tokenizer.conventions.templates.values())
    needed = {kept.bos, kept.eos, kept.eot, *kept.ends, *kept.before, *kept.after}
    if used := [text for text, token in beyond.items() if token in needed or text in templates]:
        raise DataError(
            f"the tokenizer uses {used[0][:80]!r}, but the model has only {vocab_size:,} tokens. Name another "
            f"tokenizer with --tokenizer."
        )
    values = tokenizer.using(NONE).as_json()
    values["special"] = {text: token for text, token in values["special"].items() if text not in beyond}
    values["late"] = [text for text in values.get("late", []) if text not in beyond]
    ids = {name: None for name in ("pad", "unk") if getattr(kept, name) in beyond.values()}
    shown = tuple(token for token in kept.shown if token < vocab_size)
    log.warning("left out %s: the model has only %s tokens", ", ".join(beyond), f"{vocab_size:,}")
    return type(tokenizer).from_json(values).using(replace(kept, shown=shown, **ids))


def as_checkpoint(model: Foreign, tokenizer: Tokenizer) -> Checkpoint:
    """Return a model as a run's first checkpoint."""
    state = {"step": 0, "text": {}, IMPORTED: model.source}
    return Checkpoint(TrainConfig(model=model.config), model.arrays, {}, state, tokenizer=tokenizer)


def save_as_run(model: Foreign, tokenizer: Tokenizer, run: Path) -> Path:
    """Write a model as the first checkpoint of a new run and return the checkpoint's path."""
    run_folder.begin(run)
    with locked(run):
        run_folder.require_free(run)
        return checkpoint.save(run, as_checkpoint(model, tokenizer))


def write(run: Checkpoint, goal: str, out: Path, dtype: str = "float32", like: Path | None = None) -> list[Path]:
    """Write a run's model, with averaged weights if it has them, into a new or empty folder; return the files.

    goal   "hf", "gguf", or "peft": only a run's adapter
    dtype  the number format of the weights; in a GGUF only of the matrices
    like   a GGUF: tensors that equal the run's keep their bytes, the others get its types

    Raises ConfigError, with what to change, if the target or the format cannot store the model.
    """
    if like is not None and goal != "gguf":
        raise ConfigError("--like is for a GGUF. Use --to gguf, or leave --like out.")
    if goal == "peft":
        if dtype != "float32":
            raise ConfigError("an adapter of PEFT is written in float32. Leave --dtype out.")
        contents = peft.files(run.config.model, run.parameters)
    else:
        run = run.merged()
        tokenizer = with_template(tokens.known(run.tokenizer), goal) if "chat" in run.state else run.tokenizer
        given = run.config.model, run.averages or run.parameters, tokenizer, FORMATS[dtype]
        contents = gguf.files(*given, like) if goal == "gguf" else hugging_face.files(*given, sorted(run.ends))
    first = next(contents)  # fails before anything is written if the model cannot be stored
    try:
        out.mkdir(parents=True, exist_ok=True)
        remove_left_over(out)
        taken = sorted(os.listdir(out))
    except OSError as error:
        raise DataError(f"cannot use {out}: {reason(error)}. Choose another folder with --out.") from None
    if taken:
        raise DataError(f"{out} holds {taken[0]!r}. Choose a new or empty folder with --out.")
    try:
        return create_all(out, chain([first], contents))
    except OSError as error:
        raise DataError(f"cannot write {error.filename}: {reason(error)}. {remedy(error, 'export again')}") from None
