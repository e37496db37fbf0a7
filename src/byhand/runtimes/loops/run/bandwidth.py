"""Bandwidth: how fast threads read memory, by a loop that does nothing else."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from byhand.files.weights import own_pages
from byhand.runtimes.loops.run.replay import run_kernel
from byhand.runtimes.loops.run.thread_team import ThreadTeam

READ = 1 << 26  # words, 256 MiB: more than the caches of most processors
LINE = 16  # words
ROUNDS = 20  # other programs may disturb some of them


def read_bandwidth(*teams: int) -> list[float]:
    """Return the best total GB/s that teams of these sizes read; takes about half a second."""
    memory = own_pages(4 * (READ + LINE * max(teams))).view(np.float32)
    memory[:] = 1
    found = []
    for threads in teams:
        team = ThreadTeam(threads)

        def work(i: int, threads: int = threads) -> None:
            run_kernel("read", memory, x=0, n=READ, out=READ, part=i, parts=threads)

        seconds = []
        for _ in range(ROUNDS):
            begun = perf_counter()
            team.run(work)
            seconds.append(perf_counter() - begun)
        team.close()
        found.append(4e-9 * READ / min(seconds))
    return found
