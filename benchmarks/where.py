"""How often the first answer of `byhand where` is right, and how long an answer takes.

    python benchmarks/where.py [--half even|odd] [--wrong] [--questions FILE]

The questions of `tests/book/questions.json` were written down before the search was tuned to them. Those at even
places are for tuning; those at odd places are held out (`--wrong` prints none of them). `--questions` takes a file of
others, all at once. `tests/book/finding/judging.py` defines which answers are right.
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

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from book.finding.judging import is_right  # noqa: E402  (the tests' own judge)


def first(question: str) -> Finding | None:
    """Return the first answer."""
    found = search(question)
    return found[0].finding if found else None


def main() -> None:
    """Print the shares of right answers by language and kind, and the time of a process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers, but for the odd half")
    parser.add_argument("--questions", type=Path)
    asked = parser.parse_args()
    path = asked.questions or TESTS / "book/questions.json"
    questions = json.loads(path.read_text(encoding="utf-8"))
    halves = {"all": questions} if asked.questions else {"even": questions[0::2], "odd": questions[1::2]}
    for half in halves:
        if asked.half not in (None, half):
            continue
        good, all_of = Counter[str](), Counter[str]()
        for question in halves[half]:
            answer = first(question["ask"])
            good_answer = is_right(question, answer)
            for key in ("all", *(question[key] for key in ("lang", "kind") if key in question)):
                all_of[key] += 1
                good[key] += good_answer
            if asked.wrong and half != "odd" and not good_answer:
                print(f"{question['ask']!r}: {answer and answer.name!r}, not {question['answers']}")
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
