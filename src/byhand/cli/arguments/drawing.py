"""Sampling settings, as flags of commands and as fields of a line of prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.cli.arguments.parsing import Given, Options
from byhand.cli.arguments.settings import Repeated, overridden
from byhand.cli.terminal.say import say
from byhand.config_checks import at_most, brief, check_types
from byhand.errors import ConfigError
from byhand.runtimes.sampling import COLDEST, Sampling
from byhand.tokenizers.conventions import Conventions, in_words


class TokenBias(tuple[int, float]):
    """A token's id, and a number that is added to its logit."""

    metavar = "ID=NUMBER"

    def __new__(cls, word: str) -> TokenBias:
        """Read 50256=-100; ValueError if it is not such a word."""
        token, _, number = word.partition("=")
        return super().__new__(cls, (int(token), float(number)))

    @classmethod
    def each(cls, values: Any) -> tuple[TokenBias, ...]:
        """Return those of a dict, or of an object in JSON; ConfigError if it is not one of ids and numbers."""
        try:
            return tuple(cls(f"{token}={number}") for token, number in dict(values).items())
        except (TypeError, ValueError):
            example = '{"50256": -100}'
            raise ConfigError(f"logit_bias is {brief(values)}, but must map ids to numbers: {example}.") from None


@dataclass(frozen=True)
class Drawing(Sampling):
    """How tokens are drawn."""

    temperature: float = 0.8
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""
    logit_bias: Repeated[TokenBias] = ()
    """Add a number to a token's logit: 50256=-100 bans the token 50256. Repeat it for several."""

    def __post_init__(self) -> None:
        check_types(self)
        at_most(self)
        super().__post_init__()


def as_suggested(options: Options, given: Given[Options], conventions: Conventions, aloud: bool = False) -> Options:
    """Return the options with the model's suggested sampling wherever nothing is given; `aloud` reports it."""
    found = conventions.suggested(given.values, greedy=given.values.get("temperature", 1) < COLDEST)
    if found and aloud:
        say(f"sampling: {in_words(found)}, as the model suggests")
    return overridden(options, found)
