"""The contract of `entries/<stem>.py`: everything that the book says about one equation, beside the equation itself.

An entry registers itself when its module is imported, wherever that module lives. Nothing here needs NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byhand import equations as _registered  # noqa: F401  (an entry is about an equation that is there)
from byhand.book.practice.edits import Slips
from byhand.book.words.glossary import Concept
from byhand.book.words.language import IN_ARITHMETIC, Note, Words
from byhand.engine.equation import registry
from byhand.engine.terms import Index, Term
from byhand.errors import ConfigError

Numbers = Any  # a closed form (`numbers/closed_form.py`), or nested lists of closed forms
ENTRIES: dict[str, Entry] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """What the book says about the equation `stem`.

    title_zh           its title in Chinese; `meanings_zh` of its inputs by name, `result_zh` of what comes out
    labels_zh          labels within its terms, such as mean, in Chinese
    place              its group in the book (`finding/flow.py` has them), and its rank there
    inputs             worked numbers in closed form, by symbol name in the order of the equation: integers, fractions
                       and roots where they exist; inputs without a gradient are integers
    result             what forward gives; a tuple for an equation with several results
    d_result           the cotangent that comes back; of the same form as the result
    gradients          what the derivative makes of it, by symbol name
    static             the equation's settings in this example
    note               one sentence that says what to look at; `note_zh` in Chinese
    goal               what a step of a lesson that applies the equation is for, `why` it is done so, and `why_back`
                       its derivative is what it is
    on_paper           its formula and its derivative in LaTeX for one sequence, heads as (h)
    without            what its formulas lose where optional inputs are left out: LaTeX, and what stands instead
    one_head           the same for a single head, where that is simpler
    on_the_way         (inputs, result) -> what is worked out first: LaTeX and the array
    saved              LaTeX of the arrays that forward saves, in their order; "" for one that is shown anyway
    settings           LaTeX of its settings that have another name in code
    asked              names in other programs and questions that lead here in `where`, separated by commas
    notations          other ways in which textbooks, papers and programs write it, in LaTeX or plain text
    mistakes           edits of the term of one element that readers make, `gradient_mistakes` on the way back,
                       `part_mistakes` of a labelled quotient inside a term
    concepts           terms of the glossary that the entry brings along
    remark             (term, index) -> a note about a value
    why_zero           (inputs, slot, index, **static) -> why the gradient of an element of an input is zero
    order_of_sources   (inputs) -> the key that sorts the (index, value) of a value's sources
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
    static: dict[str, Any] = field(default_factory=dict)
    place: tuple[str, int] = ("other", 100)
    labels_zh: Mapping[str, str] = field(default_factory=dict)
    on_paper: tuple[str, str] | None = None
    one_head: tuple[str, str] | None = None
    on_the_way: Callable[[tuple[Any, ...], Any], tuple[tuple[str, Any], ...]] | None = None
    without: tuple[tuple[str, str], ...] = ()
    saved: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""
    notations: tuple[str, ...] = ()
    mistakes: Slips = ()
    gradient_mistakes: Slips = ()
    part_mistakes: Mapping[str, Slips] = field(default_factory=dict)
    concepts: tuple[Concept, ...] = ()
    remark: Callable[[Term, Index], Note | None] | None = None
    why_zero: Callable[..., Words | None] | None = None
    order_of_sources: Callable[[tuple[Any, ...]], Callable[[Index, float], Any]] | None = None

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
