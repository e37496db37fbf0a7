"""A view beside the arrays of a port: the first that differs, in the order of the computation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.book.port.comparing import difference
from byhand.book.port.recording import GRAD, recorded
from byhand.book.port.theirs import Theirs
from byhand.exploring.view import View
from byhand.tracing.answers import finite
from byhand.tracing.questions import Questions


def compared(view: View, theirs: Mapping[str, Theirs]) -> dict[str, Any]:
    """Return where a port's arrays differ from a pass and its gradients, as `View.compared` does.

    Raises DataError if no name of theirs is known, or an array cannot be read.
    """
    ours = recorded(Questions(view.model, [view.tokens], [view.targets]))
    places = [
        {
            "name": each.name.removeprefix(GRAD),
            "gradient": each.name.startswith(GRAD),
            "difference": None if each.state == "shape" else abs(each.ours - each.theirs),
            "index": None if each.state == "shape" else list(each.index),
        }
        for each in difference(ours, dict(theirs)).wrong
        if each.name.removeprefix(GRAD) in view.questions.trace.values
    ]
    return finite({"first": places[0]["name"] if places else None, "places": places})
