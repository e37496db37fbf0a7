"""One test of a law for all things that it holds for: it names each that breaks it, and asks all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def every(things: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Make a test of a law, for what is too cheap for a test of its own; tuples are several arguments."""

    def of_law(law: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for thing in things:
                try:
                    law(*thing) if isinstance(thing, tuple) else law(thing)
                except AssertionError as error:
                    broken.append(f"{name(thing)}: {error}")
                except BaseException as error:
                    error.add_note(name(thing))
                    raise
            assert not broken, "\n".join(broken)

        test.__doc__ = law.__doc__
        return test

    return of_law
