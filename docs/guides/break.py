"""What the page asks: the mistakes by what training shows."""

from byhand.book.practice.effects import KINDS, Effect, effects
from byhand.book.words.language import Words

kinds: dict[str, Words] = KINDS


def number() -> int:
    """Return how many mistakes the catalogue has."""
    return len(effects())


def shown(kind: str) -> list[Effect]:
    """Return the mistakes of a kind, the worst first."""
    return [effect for effect in effects() if effect.kind == kind]
