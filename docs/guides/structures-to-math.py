"""What the page asks: the settings of a model."""

from dataclasses import fields
from typing import Any

from byhand.book.words.language import Words
from byhand.config import ModelConfig
from where.commands import flags


def settings() -> list[tuple[str, Any, Words]]:
    """Return the settings of a model: field, default, and the help of its flag."""
    return [(f.name, f.default, flags()[f"--{f.name.replace('_', '-')}"].help) for f in fields(ModelConfig)]
