"""Every answer of `where` by name: equations and places, settings, guides, lessons, and what the model lacks."""

from __future__ import annotations

from functools import cache

from byhand.book.finding import source
from byhand.book.finding.absent import ABSENT, Absent
from byhand.book.finding.index import Finding, listings, split
from byhand.book.finding.reading import FOLDER, LESSONS, guides, lessons
from byhand.book.finding.settings import SETTINGS, NamedSetting
from byhand.book.words.language import Words

FILES = {"ModelConfig": "model_config.py"}  # of settings; the others are in config.py


def answers() -> dict[str, Finding]:
    """Return all answers by name; of equally good ones the earlier comes first."""
    return {**listings(), **_others()}


@cache
def _others() -> dict[str, Finding]:
    found = [
        *map(_setting, SETTINGS),
        *(_guide(stem, title, asked) for stem, (title, asked) in guides().items()),
        *(_lesson(name, title, asked) for name, (title, asked) in lessons().items()),
        *map(_absent, ABSENT),
    ]
    return {finding.name: finding for finding in found}


def _setting(setting: NamedSetting) -> Finding:
    return Finding(
        name=setting.name,
        title=setting,
        kind="setting",
        code=(source.PACKAGE / FILES.get(setting.owner, "config.py"), f"{setting.owner}.{setting.name}"),
        asked=split(setting.asked),
    )


def _guide(stem: str, title: Words, asked: str) -> Finding:
    folder, _, kind = FOLDER.partition("/")
    return Finding(name=f"{kind}/{stem}", title=title, kind="guide", asked=split(asked), pages=folder)


def _lesson(name: str, title: Words, asked: str) -> Finding:
    return Finding(
        name=f"work {name}",
        title=title,
        kind="lesson",
        code=(source.PACKAGE / LESSONS / f"{name.replace('-', '_')}.py", "lesson"),
        asked=split(asked),
    )


def _absent(absent: Absent) -> Finding:
    return Finding(
        name=absent.name,
        title=absent,
        kind="absent",
        asked=split(absent.asked),
        says=(absent.what, absent.instead),
        see=absent.see,
    )
