"""Whether a question accepts the first answer of `where`; used by the tests and `benchmarks/where.py`."""

from __future__ import annotations

from typing import Any

from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import concepts
from byhand.cli.arguments.settings import settings
from byhand.config import TrainConfig

FIELDS = {setting.flag for setting in settings(TrainConfig).values()}


def names(found: Finding) -> set[str]:
    """Return what a judge calls an answer, in lower case.

    Its name, or its title or term as a topic of the glossary. A flag may be written as its field, and one that is no
    field of the config as its commands. A place counts as the command or the guide of its name, and as every topic of
    the glossary that it is listed under.
    """
    called = {found.name, f"glossary/{found.title.en}", f"glossary/{found.term.en}"}
    if found.kind == "setting":
        called.add(found.name.removeprefix("--").replace("-", "_"))
        if found.name not in FIELDS:
            commands = found.command.removeprefix("byhand ").split(" --")[0]
            called |= {f"byhand {command}" for command in commands.split(", ")}
    if found.kind == "place":
        called |= {f"byhand {found.name}", f"guides/{found.name}"}
        called |= {f"glossary/{concept.en}" for concept in concepts() if found.name in concept.entries}
    return {name.lower() for name in called}


def is_right(question: dict[str, Any], first: Finding | None) -> bool:
    """Return whether the first answer is one of those that the question accepts; for what lacks, that it says so."""
    accepted = {name.lower() for name in question["answers"]}
    if not accepted:
        return first is None or first.kind == "absent"
    return first is not None and bool(accepted & names(first))
