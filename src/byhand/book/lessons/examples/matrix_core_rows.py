"""The 2 x 2 matrix core with both output rows as logits, targets 0 and 1."""

from byhand.book.lessons.changes import Given
from byhand.book.lessons.examples import matrix_core
from byhand.book.lessons.lesson import Content, Maker, listed

GIVEN: Given = {**matrix_core.GIVEN, "y": [0, 1]}
CHOICES = matrix_core.CHOICES


@listed(40, "The 2 × 2 matrix core, trained on both rows", "2 × 2 矩阵核心，用两行训练")
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """The same model with a mean over two targets."""
    return matrix_core.lesson(array, start)
