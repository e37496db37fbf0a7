"""`byhand train --init-from RUN`: a new run that begins with another run's model and tokenizer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path

from byhand.cli.arguments.settings import flag
from byhand.cli.terminal.say import say
from byhand.config import WINDOW, ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.dataset import Corpus, padded
from byhand.errors import ConfigError
from byhand.model import declared, initial
from byhand.runs.contents import Checkpoint
from byhand.update_rules import unread

LR = 1e-4  # peak learning rate unless given: the weights are good already
RATES = {f.name for f in fields(OptimConfig) if f.name.endswith("_lr")} - {
    "min_lr"
}  # scaled by the same factor as lr
LORA = ("lora", "lora_alpha", "lora_on")
LORA_FACTOR = 10  # multiplies every rate of adapters: they begin at zero
PASSES, FEWEST, MOST = 3, 20, 2000  # passes over the training part, unless --steps is given; limits in steps
OF_THE_MODEL = {f.name for f in fields(ModelConfig)} - {"seq_len", *LORA}


def tuned(config: TrainConfig, given: Collection[str], base: Path, usual_lr: float) -> Checkpoint:
    """Return step 0 of a new run: the newest weights of another (averaged if it has such), with fresh moments.

    given     names of the settings that the user chose; of the model's only seq_len, which may shorten a table of
              positions but not extend it. Without `window`, the window is the context, at most 1024
    usual_lr  of the preset, for training from scratch
    """
    if chosen := sorted(OF_THE_MODEL & set(given)):
        raise ConfigError(
            f"{flag(chosen[0])} cannot change the model of {base}. Leave it out, or train without --init-from."
        )
    if config.data.tokenizer:
        raise ConfigError(
            f"the model of {base} has a tokenizer. Leave out --tokenizer, or train without --init-from."
        )
    from byhand.interop import exchange  # slow to import

    loaded = exchange.model(base, unread=False).merged()
    model, arrays = loaded.config.model, dict(loaded.averages or loaded.parameters)
    if "seq_len" in given and config.model.seq_len != model.seq_len:
        length = config.model.seq_len
        if "wpe" in arrays and length > model.seq_len:
            raise ConfigError(
                f"the model of {base} knows {model.seq_len} positions. Use --seq-len {model.seq_len} or less."
            )
        model = replace(model, seq_len=length)
        if "wpe" in arrays:
            arrays["wpe"] = arrays["wpe"][:length]
    model = replace(model, **{name: getattr(config.model, name) for name in LORA})
    if "window" not in given:
        config = replace(config, window=usual_window(model))
    lr = LR * (LORA_FACTOR if model.lora else 1)
    config = replace(config, model=model, optim=_slower(config.optim, given, usual_lr, lr))
    arrays = {name: array.astype(config.array_dtype, copy=False) for name, array in arrays.items()}
    arrays |= initial(declared(model), config.seed, config.array_dtype, but=arrays)
    return Checkpoint(config, arrays, {}, {"step": 0, "text": {}}, tokenizer=loaded.tokenizer)


def usual_window(model: ModelConfig) -> int | None:
    """Return the default window: the context (None), at most 1024."""
    return WINDOW if model.seq_len > WINDOW else None


def narrowed(config: TrainConfig, chats: Corpus) -> TrainConfig:
    """Return the settings with the smallest window that holds the longest conversation."""
    from byhand.corpus.chats import ChatCorpus

    assert isinstance(chats, ChatCorpus)
    longest = max(map(chats.size, range(chats.count)))
    window = padded(longest - 1, config.length)
    return replace(config, window=window if window < config.model.seq_len else None)


def lasting(config: TrainConfig, given: Collection[str], corpus: Corpus) -> TrainConfig:
    """Return the settings with steps for about three passes over the training part; report it.

    Unless given, the warm-up shrinks with the steps, and each pass ends with an evaluation.
    """
    size = len(corpus.split(config.data.val_fraction, config.length)[0])
    steps = min(MOST, max(FEWEST, -(-PASSES * size // config.tokens_per_step)))
    interval, warmup = config.eval_interval, config.optim.warmup_steps
    interval = interval if "eval_interval" in given else min(interval, -(-steps // PASSES))
    warmup = warmup if "warmup_steps" in given else -(-warmup * steps // MOST)
    passes = f"{steps * config.tokens_per_step / size:.2g}"
    say(f"tuning: {steps:,} steps, about {passes} passes over the training part of the text; --steps N changes it")
    return replace(config, steps=steps, eval_interval=interval, optim=replace(config.optim, warmup_steps=warmup))


def _slower(optim: OptimConfig, given: Collection[str], usual_lr: float, lr: float) -> OptimConfig:
    """Return the settings with lower rates, since the weights are good already; the user's own rates stay."""
    lr = optim.lr if "lr" in given else lr
    rates = {name: getattr(optim, name) for name in RATES - unread(optim).keys() if name not in given}
    slower = {name: None if rate is None else rate * lr / usual_lr for name, rate in rates.items()}
    return replace(optim, lr=lr, min_lr=optim.min_lr if "min_lr" in given else None, **slower)
