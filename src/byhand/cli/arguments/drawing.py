"""How tokens are drawn, as flags of commands and as settings of a line of prompts."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config_checks import at_most, check_types
from byhand.runtimes.sampling import Sampling


@dataclass(frozen=True)
class Drawing:
    """How tokens are drawn."""

    temperature: float = 0.8
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""
    top_k: int | None = None
    """Draw from the k likeliest only; of equally likely ones the smaller id comes first."""
    top_p: float | None = None
    """Draw from the fewest tokens whose probabilities sum to p or more."""
    seed: int = 1
    """Same seed, same text."""

    def __post_init__(self) -> None:
        check_types(self)
        at_most(self)
        self.sampling  # noqa: B018 - it checks its settings

    @property
    def sampling(self) -> Sampling:
        """The same as the runtimes take it."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)
