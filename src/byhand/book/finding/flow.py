"""The book's groups of equations in the order of data flow; each entry names its group."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book import entries as _entries  # noqa: F401  (importing the package fills the entries)
from byhand.book.entries.contract import ENTRIES
from byhand.book.words.glossary import CONCEPTS, Concept
from byhand.book.words.language import Words


@dataclass(frozen=True)
class EquationGroup(Words):
    """A stage of the data flow, from bytes to a loss and on to new weights."""

    key: str

    def members(self) -> list[str]:
        """Return the equations of this group, as their entries rank them."""
        known = {group.key for group in GROUPS}
        own = [e for e in ENTRIES.values() if self.key == (e.place[0] if e.place[0] in known else OTHER)]
        return [e.stem for e in sorted(own, key=lambda e: (e.place[1], e.stem))]


OTHER = "other"
GROUPS = (
    EquationGroup("Tokens to vectors", "从词元到向量", "tokens"),
    EquationGroup("Normalisation and the stream", "归一化与残差流", "stream"),
    EquationGroup("Attention", "注意力", "attention"),
    EquationGroup("The MLP's activation", "前馈网络的激活函数", "activation"),
    EquationGroup("Loss and learning", "损失与学习", "learning"),
    EquationGroup("Sampling", "采样", "sampling"),
    EquationGroup("Arithmetic on arrays", "数组运算", "arrays"),
    EquationGroup("Other equations", "其他公式", OTHER),
)


def groups() -> list[tuple[EquationGroup, list[str]]]:
    """Return each group that has members, with them."""
    return [(group, members) for group in GROUPS if (members := group.members())]


def order() -> list[str]:
    """Return all equations as data flows."""
    return [stem for _, members in groups() for stem in members]


def topics() -> dict[str, Concept]:
    """Return the glossary's topics that are equations, by the equation."""
    return {concept.entries[0]: concept for concept in concepts() if concept.is_first}


def concepts() -> list[Concept]:
    """Return the glossary's terms, then those of the entries."""
    return [*CONCEPTS, *(concept for stem in order() for concept in ENTRIES[stem].concepts)]
