"""How tokens are drawn, as flags of commands and as settings of a line of prompts."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config_checks import at_most, check_types
from byhand.runtimes.sampling import Sampling


@dataclass(frozen=True)
class Drawing(Sampling):
    """How tokens are drawn."""

    temperature: float = 0.8
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""

    def __post_init__(self) -> None:
        check_types(self)
        at_most(self)
        super().__post_init__()
