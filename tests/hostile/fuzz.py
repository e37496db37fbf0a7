"""Look for new findings: `dev.py fuzz [--minutes M] [--seed S] [NAME ...]`, with exit code 1 if there is one.

NAME is a module of this folder, or `hypothesis` for the property tests, which get half of the time; without names
everything runs. The seed is printed first, and each finding comes with the one command that repeats it. Attacks run
in processes of their own (`worker.py`), so that one that hangs, crashes or takes all memory is a finding too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HYPOTHESIS = "hypothesis"
GRACE = 60.0  # seconds that a worker may take beyond its time: imports, compiling, and the test that it is in
Messages = queue.SimpleQueue[tuple[int, dict[str, Any]]]


@dataclass
class Tally:
    """What one name has come to: how many attacks, and each kind of finding with how often."""

    attacks: int = 0
    findings: Counter[str] = field(default_factory=Counter)


def modules(folder: Path = HERE) -> list[str]:
    """Return the names of the modules with an `attack`."""
    files = [p for p in sorted(folder.glob("*.py")) if re.search(r"(?m)^def attack\(", p.read_text(encoding="utf-8"))]
    return [p.stem for p in files]


def seed_of(seed: int, name: str, number: int) -> int:
    """Return the seed of one attack: the same on every machine, another for each number."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name} {number}".encode()).digest()[:6])


def explore(name: str, seed: int, seconds: float, jobs: int, folder: Path = HERE) -> Tally:
    """Run attacks side by side until the time is over; print each new kind of finding as it comes."""
    tally, said = Tally(), Messages()
    ends = time.monotonic() + seconds

    def start(job: int, first: int) -> Worker:
        left = max(0.0, ends - time.monotonic())
        plan = {"name": name, "seed": seed, "first": first, "step": jobs, "seconds": left, "folder": str(folder)}
        return Worker(job, plan, said)

    workers = {job: start(job, job) for job in range(jobs)}
    while workers:
        with suppress(queue.Empty):
            job, message = said.get(timeout=1.0)
            tally.attacks += "done" in message
            if "finding" in message:
                _report(tally, name, message)
            if "end" in message:
                ended = workers.pop(job)
                if message["end"]:  # it died in an attack; the next one gets a new process
                    _report(tally, name, ended.death(message["end"]))
                    if ended.number >= 0 and time.monotonic() < ends:
                        workers[job] = start(job, ended.number + jobs)
                ended.close()
        if time.monotonic() > ends + GRACE:
            for worker in workers.values():
                worker.process.kill()
    return tally


class Worker:
    """A process that runs attacks as planned, and says so line by line."""

    def __init__(
        self, job: int, plan: Mapping[str, Any], said: queue.SimpleQueue[tuple[int, dict[str, Any]]]
    ) -> None:
        self.number, self._repeat, self._said = -1, "", said
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "worker.py"), json.dumps(plan)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        self._listener = threading.Thread(target=self._listen, args=(job,), daemon=True)
        self._listener.start()

    def _listen(self, job: int) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            for line in lines:
                message = json.loads(line)
                self.number, self._repeat = message.get("begun", self.number), message.get("repeat", self._repeat)
                self._said.put((job, message))
        self._said.put((job, {"end": self.process.wait()}))

    def death(self, code: int) -> dict[str, Any]:
        """Return the finding of a process that ended in the middle of an attack."""
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip()
        told = (line for line in text.splitlines() if line.startswith(("Fatal", "Timeout")))
        kind = f"the process died: {next(told, f'exit code {code}')}"
        return {"finding": kind, "text": text[-3000:], "repeat": self._repeat}

    def close(self) -> None:
        """Let go of what belongs to a process that has ended."""
        self._listener.join()
        self._errors.close()


def _report(tally: Tally, name: str, message: dict[str, Any]) -> None:
    kind = message["finding"]
    tally.findings[kind] += 1
    if tally.findings[kind] == 1:
        print(f"\nFOUND by {name}: {kind}\n{message['text']}\nrepeat: {message['repeat']}\n", flush=True)


def main(arguments: list[str]) -> int:
    """Share the time among the names; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{HYPOTHESIS}, {', '.join(modules())}")
    parser.add_argument("--minutes", type=float, default=1.0, metavar="M", help="time for all names together")
    parser.add_argument("--seed", type=int, metavar="S", help="give it again to run the same attacks again")
    parser.add_argument("--repeat", type=int, metavar="N", help="run only attack N of one NAME, with its output")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="processes side by side")
    parser.add_argument("--folder", type=Path, default=HERE, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = [HYPOTHESIS, *modules(options.folder)]
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no {unknown[0]}. Use {', '.join(known)}")
    if options.repeat is not None:
        if len(options.names) != 1 or options.seed is None or HYPOTHESIS in options.names:
            parser.error("--repeat needs --seed and one module")
        plan = {
            "name": options.names[0],
            "seed": options.seed,
            "repeat": options.repeat,
            "folder": str(options.folder),
        }
        command = [sys.executable, "-P", str(HERE / "worker.py"), json.dumps(plan)]
        return subprocess.run(command, check=False).returncode
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    names = options.names or known
    print(f"seed {seed}", flush=True)
    found = 0
    weights = {name: max(1, len(names) - 1) if name == HYPOTHESIS else 1 for name in names}
    for name in names:
        seconds, begun = 60 * options.minutes * weights[name] / sum(weights.values()), time.monotonic()
        tally = explore(name, seed, seconds, options.jobs, options.folder)
        rate = tally.attacks / (time.monotonic() - begun)
        what = "tests of 100 examples" if name == HYPOTHESIS else "attacks"
        count = tally.findings.total()
        print(f"{name}: {tally.attacks:,} {what}, {rate:,.1f} a second, {count} findings", flush=True)
        found += count
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
