"""How often the first answer of `byhand where` is right, and how long an answer takes.

    python benchmarks/where.py [--half even|odd] [--wrong] [--questions FILE] [--apart]

The questions of `tests/book/questions.json` were written down before the search was tuned to them. Those at even
places are for tuning; to those at odd places nothing is tuned (`--wrong` prints none of them). `--questions` takes
a file of others, all at once. `tests/book/finding/judging.py` says what counts as right.

`--apart` asks the questions of four words or more, each of an index without what is like it: phrases and sentences
that have 45 % of all their words in common with the question. So a question that the data were tuned to tells too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from byhand.book.finding import search as searching
from byhand.book.finding.finding import Finding
from byhand.book.finding.others import data
from byhand.book.finding.stored import INDEX, Index

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from book.finding.judging import is_right  # noqa: E402  (the tests' own judge)

LIKE = 0.45


class Apart:
    """Makes, for each question, the index without what is like it."""

    def __init__(self) -> None:
        self.content = json.loads(INDEX.read_text(encoding="utf-8"))
        self.index = index = Index(self.content)
        self.phrases = [(row, frozenset(row[-1].split())) for row in self.content["phrases"]]
        self.sentences = [
            (str(index.names[name]), frozenset(index.tokens(" ".join(index.said(sentence)))))
            for name, languages in data("sentences").items()
            for sentence in "\n".join(languages.values()).splitlines()
        ]

    def is_long(self, question: str) -> bool:
        """Return whether a question has four words, of which two Chinese characters count as one."""
        plain = self.index.han.plain(question)
        return len(plain.split()) + sum("\u4e00" <= letter <= "\u9fff" for letter in plain) / 2 >= 4

    def index_for(self, question: str) -> Index:
        """Return the index without the phrases and sentences that are like the question."""
        asked = frozenset(self.index.tokens(" ".join(self.index.said(question))))
        told: dict[str, list[str]] = defaultdict(list)
        for number, tokens in self.sentences:
            if len(tokens & asked) < LIKE * len(tokens | asked):
                for token in tokens:
                    told[token].append(number)
        phrases = [
            row for row, tokens in self.phrases if len(tokens & asked) < LIKE * len(tokens | asked) or not tokens
        ]
        sentences = [[token, " ".join(numbers)] for token, numbers in told.items()]
        return Index(self.content | {"phrases": phrases, "sentences": sentences})


def first(question: str) -> Finding | None:
    """Return the first answer."""
    found = searching.search(question)
    return found[0].finding if found else None


def main() -> None:
    """Print the shares of right answers by language and kind, and the time of a process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers, but for the odd half")
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--apart", action="store_true")
    asked = parser.parse_args()
    path = asked.questions or TESTS / "book/questions.json"
    questions = json.loads(path.read_text(encoding="utf-8"))
    halves = {"all": questions} if asked.questions else {"even": questions[0::2], "odd": questions[1::2]}
    apart = Apart() if asked.apart else None
    for half in halves:
        if asked.half not in (None, half):
            continue
        good, all_of = Counter[str](), Counter[str]()
        for question in halves[half]:
            if apart:
                if not apart.is_long(question["ask"]):
                    continue
                index = apart.index_for(question["ask"])
                searching.current = lambda index=index: index
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
