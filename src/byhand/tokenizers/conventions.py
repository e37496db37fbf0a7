"""Conventions: how a model's makers use the tokens of its tokenizer.

The tokens that begin and end a text, those added around a text, and the templates that write a conversation as one
text. They are imported and exported with a model, unchanged. The byte tokenizer and those that byhand trains have
none.

A template is Jinja source, stored here and rendered in `conversations/`, with the texts of bos, eos and the others.
It writes special tokens itself: nothing is added to its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from byhand.errors import DataError

ONE = ("bos", "eos", "eot", "pad", "unk")  # fields that are one token
MOST = {"ends": 64, "before": 16, "after": 16, "shown": 1 << 16}  # tokens in a field that lists them
TEMPLATES, NAME, LENGTH = 32, 64, 1 << 20  # templates, characters of a name, and of all templates
SAMPLING = {
    "temperature": None,
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
    "repetition_penalty": 1,
}  # and the values without effect
DEFAULT = "default"  # the name of the default template


@dataclass(frozen=True)
class Conventions:
    """How models use a tokenizer's tokens, by id.

    bos, eos, eot, pad, unk  begin a text, end it, end a turn of a conversation, pad rows, replace unknown text
    ends                     generation ends at any of these
    before, after            special tokens added around a text
    shown                    special tokens that readers see as text, such as <think>; the others are control tokens
    templates                of conversations, by name
    sampling                 the makers' suggestions for `runtimes.sampling.Sampling`
    """

    bos: int | None = None
    eos: int | None = None
    eot: int | None = None
    pad: int | None = None
    unk: int | None = None
    ends: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(value not in (None, (), {}) for value in vars(self).values())

    def as_json(self) -> dict[str, Any]:
        """Return the values from which `of_json` makes the same."""
        found = {name: list(value) if name in MOST else value for name, value in vars(self).items()}
        return {name: value for name, value in found.items() if value not in (None, [], {})}

    def suggested(self, given: Collection[str], greedy: bool) -> dict[str, float]:
        """Return the suggestions for settings of sampling that are not given; `greedy`: nothing is drawn by them."""
        found = {name: value for name, value in self.sampling.items() if name not in given}
        return {name: found[name] for name in found if not greedy or name == "repetition_penalty"}

    @classmethod
    def of_json(cls, values: Any) -> Conventions:
        """Return the conventions in untrusted values; DataError if they are invalid."""
        if not isinstance(values, dict) or not values.keys() <= {each.name for each in fields(cls)}:
            raise DataError("its conventions are not a table of known ones")
        if not all(isinstance(values.get(name, []), list) for name in MOST):
            raise DataError("one of its conventions is not a list")
        found: dict[str, Any] = {name: tuple(value) if name in MOST else value for name, value in values.items()}
        return cls(**found)

    def require(self, tokens: Collection[int], special: Collection[int]) -> None:
        """Raise DataError unless all ids are the tokenizer's, and all lengths are allowed."""
        for name, most in MOST.items():
            if len(getattr(self, name)) > most:
                raise DataError(f"its conventions name more than {most:,} tokens as {name}")
        listed = [token for name in MOST for token in getattr(self, name)]
        named = [token for name in ONE if (token := getattr(self, name)) is not None]
        if unknown := [token for token in listed + named if type(token) is not int or token not in tokens]:
            raise DataError(f"its conventions name the token {str(unknown[0])[:40]}, which it lacks")
        if ordinary := [token for token in (*self.before, *self.after, *self.shown) if token not in special]:
            raise DataError(f"its conventions add the token {ordinary[0]} to texts, which is not a special token")
        if any(len(set(getattr(self, name))) < len(getattr(self, name)) for name in ("ends", "shown")):
            raise DataError("its conventions name a token twice")
        _require_templates(self.templates)
        if not isinstance(self.sampling, dict) or not self.sampling.keys() <= SAMPLING.keys():
            raise DataError("its suggestions for sampling are not a table of known settings")
        if bad := [value for value in self.sampling.values() if type(value) not in (int, float)]:
            raise DataError(f"it suggests {str(bad[0])[:40]!r} for sampling, which is not a number")


NONE = Conventions()


def in_words(sampling: Mapping[str, float]) -> str:
    """Return sampling settings in words."""
    return ", ".join(f"{name.replace('_', '-')} {sampling[name]:g}" for name in SAMPLING if name in sampling)


def _require_templates(templates: Any) -> None:
    """Raise DataError unless these are a few named texts."""
    if not isinstance(templates, dict) or len(templates) > TEMPLATES:
        raise DataError(f"its chat templates are not a table of at most {TEMPLATES}")
    length = 0
    for name, text in templates.items():
        if not isinstance(text, str) or not 0 < len(name) <= NAME or not name.isprintable():
            raise DataError(f"its chat template {name[:NAME]!r} is not a string, or its name is invalid")
        if (length := length + len(text)) > LENGTH:
            raise DataError(f"its chat templates have more than {LENGTH:,} characters")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"its chat template {name!r} is not valid Unicode") from None
