"""Taking over a model's weights: each thread reads or copies its pieces and packs them for the loops.

A piece stays in the thread's caches in between, and memory never holds an array twice, unless the model keeps it.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from byhand.engine.graph.outline import Outline
from byhand.files.unread import Unread
from byhand.formats.registry import Format
from byhand.runtimes.loops.kernels.linear import packed_weights
from byhand.runtimes.loops.run.generation_plans import GenerationPlan
from byhand.runtimes.loops.run.runner import Runner


def take_over(model: Any, plan: GenerationPlan, runner: Runner, weights: Format, moves: bool) -> None:
    """Take over the weights that a plan reads, unpacked or packed, whether or not they have changed.

    weights  the format to which matrices and tables are rounded
    moves    the model loses each array that was taken over
    """
    runner.begin()
    runner.arena.adopt()  # completes an allocation that was interrupted
    for name, p in model.parameters().items():
        if isinstance(p.data, Outline):
            continue  # already taken
        take = partial(_take, name, p.data, plan, runner, weights)
        if p.data.size > packed_weights.STAGED:
            runner.run(partial(take, len(plan.shares)))
        else:
            take(1, 0)
        if moves:
            p.data = Outline(p.shape, np.float32)


def _take(name: str, data: Any, plan: GenerationPlan, runner: Runner, weights: Format, threads: int, i: int) -> None:
    """Take over thread i's pieces of a parameter."""
    if name in runner.arena.parameters:
        place = runner.arena.parameters[name].data
        for first, last in islice(packed_weights.pieces(len(place), place[:1].size), i, None, threads):
            _copy(place[first:last], data, first)
            if place.ndim > 1 and weights.block == 1 and not weights.native:
                place[first:last] = weights.rounded(place[first:last])
    for each, share, table in plan.preparations.get(name, ())[i::threads]:
        _copy(share.array(each.staging), data, each.first)
        runner.replay(table, [(0, 1)], share)


def _copy(place: np.ndarray, data: Any, first: int) -> None:
    """Copy rows of a parameter, from `first` on; they may have to be read from a file."""
    if isinstance(data, Unread):
        data.into(place, first)
    else:
        place[...] = data[first : first + len(place)]
