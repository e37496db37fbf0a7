"""The contract of `entries/<stem>.py`: everything about one equation that the book adds to the equation itself.

An entry registers itself when its module, in any folder, is imported. Nothing here needs NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from byhand import equations as _registered  # noqa: F401  (an entry needs its equation)
from byhand.book.practice.edits import Slips
from byhand.book.words.glossary import Concept
from byhand.book.words.language import IN_ARITHMETIC, Note, Words
from byhand.engine.equation import registry
from byhand.engine.terms import Index, Term
from byhand.errors import ByhandError, ConfigError

Numbers = Any  # a closed form (`numbers/closed_form.py`), or nested lists of closed forms
T = TypeVar("T")


class ByStem(dict[str, T]):
    """Something for each equation; for one without an entry a ByhandError, in one line."""

    def __missing__(self, stem: str) -> T:
        raise ByhandError(
            f"the equation {stem} has no entry in the book. "
            f"Write src/byhand/book/entries/{stem}.py, or import the entry with the equation."
        )


ENTRIES: ByStem[Entry] = ByStem()


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """What the book says about the equation `stem`.

    title_zh           Chinese title; `meanings_zh` of the inputs by name, `result_zh` of the result
    labels_zh          Chinese labels of parts of its terms, such as mean
    place              its group (`finding/flow.py`), and its rank there
    inputs             worked numbers in closed form, by symbol name in the order of the equation: integers, fractions
                       and roots if they exist; inputs without a gradient are integers
    result             the result of forward; a tuple for an equation with several results
    d_result           the cotangent of the result, of the same form
    gradients          the gradients of the inputs, by symbol name
    static             the equation's settings in this example
    note               one sentence about the point of the example; `note_zh` in Chinese
    goal               the purpose of a lesson's step that applies the equation; `why` gives the reason for its form,
                       `why_back` that for its derivative
    why_back_of        instead of `why_back` the reason for each input's derivative, by symbol name; a step gives
                       those of what it makes; `why_back_of_row` the same where the first input is a single row
    on_paper           its formula and its derivative in LaTeX for one sequence, heads as (h)
    one_head           the same for a single head, if simpler
    without            replacements in its formulas if optional inputs are left out: LaTeX, new LaTeX
    on_the_way         (inputs, result) -> intermediate arrays, each with its LaTeX
    saved              LaTeX of the arrays that forward saves, in their order; "" for one that the step shows anyway
    settings           LaTeX of settings whose names in code differ
    torch              the same as one line of PyTorch, `F` being torch.nn.functional: names are those of `inputs` and
                       `static`; an update changes theta in place by theta.grad; "" if PyTorch takes more than a line
    asked              names in other programs and questions that lead here in `where`, separated by commas
    notations          other notations of textbooks, papers and programs, in LaTeX or plain text
    mistakes           typical mistakes as edits of one element's term, of forward's code, or of both;
                       `gradient_mistakes` of its gradient's and of vjp's, `part_mistakes` of a labelled part of a term,
                       by its name: a quotient, or a row's number
    concepts           further terms of the glossary
    remark             (term, index) -> a note about a value
    why_zero           (inputs, slot, index, **static) -> why the gradient of an element of an input is zero
    first_sources      (inputs, index of a value) -> whether an index, or each of many, is that of a source to show
                       first; the others follow, both in descending order of value
    """

    stem: str
    title_zh: str
    meanings_zh: Mapping[str, str]
    result_zh: str
    inputs: dict[str, Numbers]
    result: Numbers
    d_result: Numbers
    gradients: dict[str, Numbers]
    note: str
    note_zh: str
    goal: Words | None = None
    why: Words | None = None
    why_back: Words | None = None
    why_back_of: Mapping[str, Words] = field(default_factory=dict)
    why_back_of_row: Mapping[str, Words] = field(default_factory=dict)
    static: dict[str, Any] = field(default_factory=dict)
    place: tuple[str, int] = ("other", 100)
    labels_zh: Mapping[str, str] = field(default_factory=dict)
    on_paper: tuple[str, str] | None = None
    one_head: tuple[str, str] | None = None
    on_the_way: Callable[[tuple[Any, ...], Any], tuple[tuple[str, Any], ...]] | None = None
    without: tuple[tuple[str, str], ...] = ()
    saved: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    torch: str = ""
    asked: str = ""
    notations: tuple[str, ...] = ()
    mistakes: Slips = ()
    gradient_mistakes: Slips = ()
    part_mistakes: Mapping[str, Slips] = field(default_factory=dict)
    concepts: tuple[Concept, ...] = ()
    remark: Callable[[Term, Index], Note | None] | None = None
    why_zero: Callable[..., Words | None] | None = None
    first_sources: Callable[[tuple[Any, ...], Index], Callable[[Index], Any]] | None = None

    def __post_init__(self) -> None:
        if self.stem in ENTRIES:
            raise ValueError(f"two entries are about {self.stem!r}")
        if self.stem not in registry:
            raise ConfigError(f"the entry {self.stem!r} is about no equation. Import the equation's file first.")
        names = [symbol.name for symbol in registry[self.stem].inputs]
        if lacking := [name for name in names if name not in self.meanings_zh]:
            raise ConfigError(f"the entry {self.stem!r} lacks the meaning of {', '.join(lacking)} in meanings_zh.")
        ENTRIES[self.stem] = self
        IN_ARITHMETIC.update(self.labels_zh)
