"""How often the first answer of `byhand where` is right, and how long an answer takes.

    python benchmarks/where.py [--half even|odd] [--wrong]

The questions of `tests/book/questions.json` were written down before the search was tuned to them. Those at even
places are for tuning; those at odd places stay unseen (`--wrong` prints none of them). A place in the code counts
under the command, the guide or the glossary's topic of its name, an equation under the topic that it is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from byhand.book.finding.finding import Finding
from byhand.book.finding.search import search

QUESTIONS = Path(__file__).resolve().parents[1] / "tests" / "book" / "questions.json"


def names(found: Finding) -> set[str]:
    """Return what a judge calls an answer."""
    said = {found.name, f"glossary/{found.title.en.lower()}", f"glossary/{found.term.en.lower()}"}
    return said | {f"byhand {found.name}", f"guides/{found.name}"} if found.kind == "place" else said


def right(question: dict[str, list[str]], first: Finding | None) -> bool:
    """Return whether the first answer is one of those that the question accepts; for what is missing, that it is."""
    accepted = {name.lower() for name in question["answers"]}
    if not accepted:
        return first is None or first.kind == "absent"
    return first is not None and first.kind != "absent" and bool(accepted & {name.lower() for name in names(first)})


def main() -> None:
    """Print the shares of right answers by language and kind, and the time of a process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers of the even half")
    asked = parser.parse_args()
    questions = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    for half, number in (("even", 0), ("odd", 1)):
        if asked.half not in (None, half):
            continue
        good, all_of = Counter[str](), Counter[str]()
        for question in questions[number::2]:
            found = search(question["ask"])
            first = found[0].finding if found else None
            is_right = right(question, first)
            for key in ("all", question["lang"], question["kind"]):
                all_of[key] += 1
                good[key] += is_right
            if asked.wrong and half == "even" and not is_right:
                print(f"{question['ask']!r}: {first and first.name!r}, not {question['answers']}")
        print(f"{half}: " + ", ".join(f"{key} {good[key]}/{all_of[key]}" for key in all_of))
    taken = []
    for question in questions[:10]:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "byhand", "where", question["ask"]]
        subprocess.run(command, capture_output=True, check=False)
        taken.append(time.perf_counter() - begin)
    print(f"s for an answer: median {statistics.median(taken):.2f}, least {min(taken):.2f}")


if __name__ == "__main__":
    main()
