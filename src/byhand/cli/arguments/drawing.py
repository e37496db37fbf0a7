"""Sampling settings, as flags of commands and as fields of a line of prompts."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.cli.arguments.parsing import Given, Options
from byhand.cli.arguments.settings import overridden
from byhand.cli.terminal.say import say
from byhand.config_checks import at_most, check_types
from byhand.runtimes.sampling import COLDEST, Sampling
from byhand.tokenizers.conventions import Conventions, in_words


@dataclass(frozen=True)
class Drawing(Sampling):
    """How tokens are drawn."""

    temperature: float = 0.8
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""

    def __post_init__(self) -> None:
        check_types(self)
        at_most(self)
        super().__post_init__()


def as_suggested(options: Options, given: Given[Options], conventions: Conventions, aloud: bool = False) -> Options:
    """Return the options with the model's suggested sampling wherever nothing is given; `aloud` reports it."""
    found = {name: value for name, value in conventions.sampling.items() if name not in given.values}
    if given.values.get("temperature", 1) < COLDEST:  # nothing is drawn
        found = {name: value for name, value in found.items() if name == "repetition_penalty"}
    if found and aloud:
        say(f"sampling: {in_words(found)}, as the model suggests")
    return overridden(options, found)
