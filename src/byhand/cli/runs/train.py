"""`byhand train`: train a GPT on a text, or resume a run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from byhand.budget.recipe import candidates
from byhand.cli.arguments.parsing import Given, read
from byhand.cli.arguments.presets import PUBLISHED, RECIPE, Settings, fixed_by, preset, with_toml
from byhand.cli.arguments.settings import AUTO, Switch, flag
from byhand.cli.runs.cost import say_step, show_run
from byhand.cli.runs.minutes import Promise, extended, planned, require_sense
from byhand.cli.runs.together import joined
from byhand.cli.runs.training import train_run
from byhand.cli.runs.tuning import lasting, narrowed, tuned
from byhand.cli.terminal.say import say
from byhand.config import DataConfig, TrainConfig
from byhand.config_checks import MOST, without_effect
from byhand.corpus.dataset import Corpus
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import Text, Texts
from byhand.errors import ConfigError
from byhand.files import run_folder
from byhand.host import keep_pages
from byhand.memory import fitting, require_memory
from byhand.runs.contents import Checkpoint
from byhand.runs.hosts import opened as shared
from byhand.runs.run import OF_A_MACHINE, RESUMABLE, Run, begin, resume
from byhand.runs.text import open_corpus
from byhand.runtimes.process_group import PATIENCE
from byhand.runtimes.protocol import to_train
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.update_rules import unread

DEFAULT_MINUTES, LEAST = 1.0, 30.0  # for a run without a recipe; seconds kept for training after compiling
REPORTING = {"eval_interval", "eval_windows", "save_interval", "keep", "keep_best"}
# The text, the place, the machine: a run given nothing else has no recipe yet.
OF_NO_RECIPE = {f.name for f in fields(DataConfig)} - {"chat"} | REPORTING | {"out", "seed", "dry_run", *OF_A_MACHINE}


@dataclass(frozen=True)
class Options:
    """Train a GPT on a text, by default for one minute, or resume a run bit for bit where it stopped."""

    train: Settings = field(default_factory=lambda: preset("nano"))
    preset: str = "nano"
    """tiny, nano, small, seed, gpt2, llama, qwen3, modern, or microgpt: settings that --config and flags override.
    With --minutes, those of published models keep their architecture, and the size fits the time."""
    config: Path | None = None
    """A TOML file with any of these settings."""
    minutes: float | None = None
    """Time for the whole command, which picks shape, recipe and steps by a short probe: without --preset, a small
    modern model (rotary positions, RMSNorm, SwiGLU) trained with Muon. Settings from flags, --config or --preset are
    kept. If the machine becomes slower or faster, the number of steps and the schedule adapt. 1 if neither this, nor
    --preset, nor any setting of model, optimizer or length is given. With --resume: additional minutes."""
    out: Path | None = None
    """The run folder; runs/001, runs/002, ... if not given."""
    resume: Path | None = None
    """Resume this run. It keeps its settings; --data may say where its text is now. --runtime, --threads, --dtype,
    --mesh and --recompute may change, and --steps or --minutes, even of a complete run: the learning rate then
    follows the schedule of the new length. The run keeps what was given last."""
    init_from: Path | None = None
    """Start a new run from the model and tokenizer of this run, Hugging Face folder or GGUF, or from smollm2, and
    tune it on --data; --lr defaults to 0.0001, with --lora to 0.001."""
    dry_run: Switch = False
    """Print what the run would take (memory, the time of a step, tokens) and exit without writing anything."""
    hosts: str = ""
    """Train on several hosts, each running this command: the first host's address, the number of hosts and this
    host's index, as in 10.0.0.1:9876,4,0; auto takes them from SLURM, Kubernetes, Open MPI or torchrun."""
    patience: float = PATIENCE
    """Seconds after which hosts give up on one that is stuck in a step; a dead one is noticed within 15."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand train")
    with opened(given) as (run, promise):
        if given.values.get("dry_run"):
            show_run(run.config, *run.parts({}))
            return 0
        return train_run(run, promise)


@contextmanager
def opened(given: Given[Options], texts: Texts | None = None) -> Iterator[tuple[Run, Promise | None]]:
    """Begin or resume the run that the settings describe, and hold it; with --minutes, also predict its outcome.

    texts  from memory, in place of --data
    """
    if by_default := not given.help_asked and given.values.keys() <= OF_NO_RECIPE:
        given = replace(given, values=given.values | {"minutes": DEFAULT_MINUTES})
    config, chosen = _base(given.values)
    given, chosen, fits = _with_room(given, chosen)
    decided = set(chosen) | (fixed_by(given.values["preset"]) if "preset" in given.values else set())
    options = given.over(Options(train=config))
    _require_compatible(options, given, decided)
    if options.train.data.data == "-" and not options.resume and sys.stdin.isatty():
        say("reading the text from standard input; end with Ctrl-D")
    keep_pages()
    runtime = given.values.get("runtime", "auto") if options.resume else options.train.runtime
    request = replace(to_train(options.train), runtime=runtime, hosts=2 if options.hosts else 1)
    name = (options.resume or options.out or Path()).name
    several = joined(options.hosts, name, options.patience, request) if options.hosts else nullcontext()
    with several as group:
        hosts = group.count if group else 1
        promise = text = None
        if options.resume:
            _require_resumable(given)
            config, tokenizer = options.train, BYTES
            open_end = {"steps": MOST["steps"]} if options.minutes is not None else {}
            opening = partial(resume, options.resume, given.values | open_end, hosts)
        else:
            config, tokenizer, start = _new_run(options, given, chosen)
            if options.out:
                run_folder.require_free(options.out)  # refuse before anything is read
            if start and config.data.chat and "window" not in chosen:
                text = open_corpus(config, tokenizer)
                config = narrowed(config, text[1])
            if (fits or (_is_large(options) and "batch_size" not in chosen)) and options.minutes is None:
                config = _fitted(config, hosts)
            lasts = start is not None and "steps" not in chosen
            if options.minutes is not None or texts is not None or ((options.dry_run or lasts) and not text):
                config, promise, text = _opened_text(config, decided, options, tokenizer, texts, by_default)
            if lasts and text:
                config = lasting(config, chosen, text[1])
            if start:
                require_memory(config, to_train(config))
                start.config = config
            opening = partial(begin, config, options.out, tokenizer, start, text, hosts)
            if options.dry_run and text:
                opening = partial(nullcontext, Run(Path(), config, text[0], None, None, tokenizer, chats=text[1]))
            elif start:
                say_step(config)
        with opening() if group is None else shared(group, opening, config, given.values, tokenizer) as run:
            yield extended(run, options.minutes) if options.resume and options.minutes else (run, promise)


def _with_room(given: Given[Options], chosen: dict[str, Any]) -> tuple[Given[Options], dict[str, Any], bool]:
    """Drop `batch_size = auto` from settings of flags, and of flags or --config; return also whether it was set."""
    if chosen.get("batch_size") != AUTO:
        return given, chosen, False
    if "resume" in given.values or "minutes" in given.values:
        raise ConfigError("--batch-size auto is for a new run without --minutes. Leave it out.")
    values, chosen = (
        {name: v for name, v in each.items() if name != "batch_size"} for each in (given.values, chosen)
    )
    return replace(given, values=values), chosen, True


def _is_large(options: Options) -> bool:
    return options.init_from is not None or options.preset in PUBLISHED


def _fitted(config: TrainConfig, hosts: int) -> TrainConfig:
    """Return the run with the largest micro-batch that fits and as many windows in an update; report it."""
    request = replace(to_train(config), hosts=hosts)
    found = fitting(config, request)
    if found is None or found == config:
        return config  # beginning the run refuses it, and says what fits
    say(
        f"batch: {found.batch_size} windows fit into memory; {found.grad_accum} micro-batches make an update "
        f"of {found.batch_size * found.grad_accum}"
    )
    return found


def _opened_text(
    config: TrainConfig,
    decided: Collection[str],
    options: Options,
    tokenizer: Tokenizer,
    texts: Texts | None,
    by_default: bool,
) -> tuple[TrainConfig, Promise | None, tuple[Text, Corpus]]:
    """Return the settings, those of --minutes with their promise, and the opened text."""
    smallest = config if options.minutes is None else candidates(config, decided, config.model.seq_len)[0]
    require_memory(smallest, to_train(smallest))
    text, corpus = open_corpus(config, tokenizer, texts)
    if options.minutes is None:
        return config, None, (text, corpus)
    if by_default:
        say("training for one minute, the default: choose with --minutes M, or --preset nano for the book's model")
    config, promise = planned(config, decided, corpus, options.minutes, corpus_of(text), LEAST * by_default)
    return config, promise, (text, corpus)


def _base(values: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return the settings that flags override, and those that flags or --config give."""
    of_recipe = "minutes" in values and "preset" not in values
    config, in_file = RECIPE if of_recipe else preset(values.get("preset", "nano")), dict[str, Any]()
    if "config" in values:
        config, in_file = with_toml(config, values["config"])
    return config, in_file | values


def _require_compatible(options: Options, given: Given[Options], decided: Collection[str]) -> None:
    """Raise ConfigError for flags that exclude each other, name nothing, or change nothing."""
    if not options.resume and not options.init_from:
        _require_effect(options.train, given)
    if options.minutes is not None:
        require_sense(options.minutes, decided)
    if "hosts" in given.values and not options.hosts:  # an unset variable would train alone
        raise ConfigError("--hosts names no host. Leave it out to train alone, or use --hosts auto.")
    if not options.hosts:
        given.refuse(("patience",), "without --hosts")
    if options.train.data.chat:
        given.refuse(("data", "text_field", "encoding"), "with --chat, which names conversations")
        if options.minutes is not None:
            raise ConfigError("--minutes plans runs on texts, not on conversations. Choose the number of --steps.")
    if options.minutes is not None and options.hosts:
        raise ConfigError("--minutes probes one machine, not several hosts. Choose the number of --steps.")
    if options.init_from and (options.minutes is not None or options.hosts):
        raise ConfigError("--init-from trains on one host, for a number of --steps. Leave out --minutes and --hosts.")
    if options.dry_run and (options.resume or options.hosts):
        raise ConfigError("--dry-run is for a new run on one host. `byhand plan RUN` says what an old one takes.")
    if options.train.window is not None and not (options.init_from or options.resume):
        if options.minutes is not None:
            raise ConfigError("--minutes trains on whole contexts. Leave out --window, or give --seq-len.")
        if options.train.model.positions == "learned" and options.train.length < options.train.model.seq_len:
            raise ConfigError("--window leaves later positions untrained. Add --positions rotary, or use --seq-len.")
    if options.train.model.lora and not (options.init_from or options.resume):
        raise ConfigError("--lora trains adapters of a model that is trained already. Add --init-from RUN.")
    if options.init_from and options.preset in PUBLISHED:
        raise ConfigError(f"--preset {options.preset} names a model, and --init-from another. Leave one of them out.")


def _require_effect(config: TrainConfig, given: Given[Options]) -> None:
    """Raise ConfigError for flags that the other settings leave without effect."""
    told = []
    unused = ((name, "optimizer", update) for name, update in unread(config.optim).items() if name in given.values)
    for name, other, value in (*without_effect(given.values, config.model, config.optim), *unused):
        needed = f"{flag(other)} {value}" if not isinstance(value, bool) else flag(other if value else f"no_{other}")
        told.append(f"{given.written(name)} changes nothing without {needed}. Leave it out, or add {needed}.")
    if told:
        raise ConfigError(" ".join(told))


def _require_resumable(given: Given[Options]) -> None:
    """Raise ConfigError if a flag would change a run that goes on."""
    for name in given.values:
        if name not in ("resume", "data", "hosts", "patience", "minutes", *RESUMABLE):
            said = f"{given.written(name)} cannot change a run that is resumed"
            raise ConfigError(f"{said}. Leave it out, or start a new run.")


def _new_run(
    options: Options, given: Given[Options], chosen: Collection[str]
) -> tuple[TrainConfig, Tokenizer, Checkpoint | None]:
    """Return the settings of a new run, its tokenizer, and with --init-from the checkpoint to start from."""
    config = options.train
    if options.init_from:
        start = tuned(config, chosen, options.init_from, preset(options.preset).optim.lr)
        _require_effect(start.config, given)
        return start.config, start.tokenizer, start
    named = config.data.tokenizer
    if not named:
        return config, BYTES, None
    if named == "bytes":
        tokenizer = BYTES
    else:
        from byhand.interop.hugging_face.tokens import of_path  # it knows the files of other programs

        tokenizer = of_path(Path(named))
    if "vocab_size" not in chosen:
        config = replace(config, model=replace(config.model, vocab_size=tokenizer.vocab_size))
    return config, tokenizer, None
