"""One process of `dev.py fuzz`: runs attacks one after the other and prints a line of JSON about each.

The plan is a JSON object as the only argument. With `repeat` in it one attack runs with its output and traceback.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import shlex
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]

from hostile.fuzz import HYPOTHESIS, seed_of  # noqa: E402

Attack = Callable[[int, Path], None]
SECONDS, MEGABYTES = 20.0, 200.0  # what an attack may take of a processor, and of memory beyond what was in use
HANGS = 30.0  # seconds on the clock until a stack is printed and the process ends
CEILING = 2 << 30  # bytes beyond what was in use: the machine is not to suffer


def find_attack(name: str, folder: str) -> Attack:
    """Return the function `attack` of a module of the folder."""
    spec = importlib.util.spec_from_file_location(f"hostile.{name}", Path(folder) / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.attack


def judged(attack: Attack, seed: int, first: bool) -> tuple[str, str]:
    """Run an attack; return (what is wrong with it, more about that), empty if nothing is.

    The first one in a process may take longer: it imports, and compiles.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        faulthandler.dump_traceback_later(HANGS * (20 if first else 1), exit=True)
        reset_peak_memory()
        memory, begun = megabytes("VmRSS"), time.process_time()
        try:
            attack(seed, Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            words = (str(error).splitlines() or [""])[0]
            return f"{type(error).__name__}: {words}"[:200], traceback.format_exc()[-3000:]
        finally:
            faulthandler.cancel_dump_traceback_later()
        seconds, grown = time.process_time() - begun, megabytes("VmHWM") - memory
    if not first and seconds > SECONDS:
        return "it takes too long", f"{seconds:.1f} s of a processor, more than {SECONDS:g}"
    if not first and grown > MEGABYTES:
        return "it takes too much memory", f"{grown:.0f} MB, more than {MEGABYTES:g}"
    return "", ""


def reset_peak_memory() -> None:
    """Let VmHWM begin anew; only Linux can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def megabytes(name: str) -> float:
    """Return a line of /proc/self/status, 0 where there is none."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    return 0.0


def limit_memory() -> None:
    """Keep the process below a ceiling, where there are limits."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = int(megabytes("VmData") * 2**20) + CEILING
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_attacks(plan: dict[str, Any], say: Callable[..., None]) -> None:
    """Run attack first, first + step, ... until the time is over."""
    name, seed, begun = plan["name"], plan["seed"], time.monotonic()
    attack, number, first = find_attack(name, plan["folder"]), plan["first"], True
    while first or time.monotonic() - begun < plan["seconds"]:
        repeat = f"python3 dev.py fuzz --seed {seed} {name} --repeat {number}"
        say(begun=number, repeat=repeat)
        wrong, more = judged(attack, seed_of(seed, name, number), first)
        if first and not wrong:
            limit_memory()
            wrong, more = judged(attack, seed_of(seed, name, number), False)
        say(done=number)
        if wrong:
            say(finding=wrong, text=more, repeat=repeat)
        number, first = number + plan["step"], False


class Watch:
    """A pytest plugin that reports each test and stops when the time is over."""

    def __init__(self, ends: float, repeat: str, say: Callable[..., None]) -> None:
        self.ends, self.repeat, self.say, self.session = ends, repeat, say, None

    def pytest_sessionstart(self, session: Any) -> None:
        self.session = session

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.say(finding=f"{report.nodeid} cannot be collected", text=report.longreprtext, repeat=self.repeat)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        faulthandler.dump_traceback_later(10 * HANGS, exit=True)
        self.say(begun=-1, repeat=f"{self.repeat} {shlex.quote(nodeid)}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        faulthandler.cancel_dump_traceback_later()
        if report.when == "call":
            self.say(done=0)
        if report.failed:
            last = f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1]}"
            self.say(
                finding=last, text=report.longreprtext[-6000:], repeat=f"{self.repeat} {shlex.quote(report.nodeid)}"
            )
        if report.when == "teardown" and time.monotonic() > self.ends:  # however slow the start, a test was run
            self.session.shouldstop = "the time is over"


def run_hypothesis(plan: dict[str, Any], say: Callable[..., None]) -> None:
    """Run the property tests in a random order, again and again with other seeds, until the time is over.

    They are those of the folder above that of the attacks: the whole suite's, unless another is named.
    """
    import pytest

    files = [
        str(p) for p in Path(plan["folder"]).parent.rglob("test_*.py") if "@given(" in p.read_text(encoding="utf-8")
    ]
    ends, number = time.monotonic() + plan["seconds"], plan["first"]
    while number == plan["first"] or time.monotonic() < ends:
        seed = seed_of(plan["seed"], HYPOTHESIS, number)
        flags = ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}"]
        repeat = shlex.join(["python3", "dev.py", "test", "-n0", *flags])
        settings = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-m", "hypothesis and not slow"]
        settings += ["-c", str(TESTS.parent / "pyproject.toml"), f"--rootdir={TESTS.parent}", f"--shuffle={seed}"]
        pytest.main([*settings, *flags, *sorted(files)], plugins=[Watch(ends, repeat, say)])
        number += plan["step"]


def main(plan: dict[str, Any]) -> int:
    """Run one attack as told, or attacks until the time is over."""
    warnings.simplefilter("error")
    if "repeat" in plan:
        attack, seed = find_attack(plan["name"], plan["folder"]), seed_of(plan["seed"], plan["name"], plan["repeat"])
        wrong, more = judged(attack, seed, True)
        if not wrong:
            wrong, more = judged(attack, seed, False)
        print(f"{more}\nFOUND: {wrong}" if wrong else "nothing was found")
        return 1 if wrong else 0
    talk = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what the code under attack prints is not read
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    faulthandler.enable()

    def say(**message: Any) -> None:
        print(json.dumps(message), file=talk, flush=True)

    (run_hypothesis if plan["name"] == HYPOTHESIS else run_attacks)(plan, say)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
