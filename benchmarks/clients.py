"""Clients of `byhand serve` for some minutes: what is lost, the memory, and the times of tokens.

    python benchmarks/clients.py MODEL [--clients 32] [--minutes 10] [--weights q8_0]

Each client asks again as soon as it has its answer: a prompt of 1 to 400 words, 8 to 64 tokens, half of them as a
stream. An answer is lost if its status is not 200, or if it has too few tokens and no end. Times are
those that a client sees, waiting for a slot included; memory is the server's, after each client
has had one answer of the longest kind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import httpx
import numpy as np

WORDS = (
    "the",
    "of",
    "and",
    "a",
    "to",
    "in",
    "is",
    "that",
    "it",
    "was",
    "for",
    "on",
    "are",
    "as",
    "with",
    "his",
    "they",
)
COMPLETIONS = "/v1/completions"


@dataclass
class Seen:
    """What all clients saw: answers, seconds to first tokens and between tokens, and what was lost."""

    answers: int = 0
    tokens: int = 0
    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


LONGEST = 400  # words of a prompt


def body(rng: random.Random) -> dict[str, object]:
    """Return a request."""
    prompt = " ".join(rng.choices(WORDS, k=int(LONGEST ** rng.random())))
    asked = {"prompt": prompt, "max_tokens": rng.randint(8, 64), "seed": rng.randint(0, 10**6)}
    return asked | ({"stream": True, "stream_options": {"include_usage": True}} if rng.random() < 0.5 else {})


async def streamed(made: httpx.AsyncClient, asked: dict[str, object], seen: Seen) -> tuple[int, str | None]:
    """Return the tokens of a streamed answer and why it ended."""
    begun, before, finish, usage = perf_counter(), 0.0, None, {}
    async with made.stream("POST", COMPLETIONS, json=asked) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            value, now = json.loads(line[6:]), perf_counter()
            usage = value.get("usage") or usage
            for choice in value["choices"]:
                finish = choice["finish_reason"] or finish
                (seen.between if before else seen.first).append(now - (before or begun))
                before = now
    return usage["completion_tokens"], finish


async def client(made: httpx.AsyncClient, number: int, until: float, seen: Seen) -> None:
    """Ask until the time is over."""
    rng = random.Random(number)
    while perf_counter() < until:
        asked = body(rng)
        try:
            if "stream" in asked:
                tokens, finish = await streamed(made, asked, seen)
            else:
                answer = (await made.post(COMPLETIONS, json=asked)).raise_for_status().json()
                tokens, finish = answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]
            if finish != "stop" and (finish, tokens) != ("length", asked["max_tokens"]):
                seen.lost.append(f"{tokens} of {asked['max_tokens']} tokens, {finish}")
            seen.tokens += tokens
        except (httpx.HTTPError, KeyError, ValueError) as error:
            seen.lost.append(f"{type(error).__name__}: {error}")
        seen.answers += 1


async def weighed(pid: int, sizes: list[tuple[float, float]]) -> None:
    """Note the server's resident memory in MB, each second."""
    while True:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        sizes.append((perf_counter(), int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1e3))
        await asyncio.sleep(1)


async def load(url: str, pid: int, clients: int, seconds: float) -> tuple[Seen, list[tuple[float, float]]]:
    """Return what clients saw, and the server's memory."""
    seen, sizes = Seen(), list[tuple[float, float]]()
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as made:
        # A slot's cache takes memory when its positions are first written: the longest text in each slot comes first.
        longest = {"prompt": " ".join(WORDS[i % len(WORDS)] for i in range(LONGEST)), "max_tokens": 64}
        await asyncio.gather(*(made.post(COMPLETIONS, json=longest) for _ in range(clients)))
        noting, until = asyncio.create_task(weighed(pid, sizes)), perf_counter() + seconds
        await asyncio.gather(*(client(made, i, until, seen) for i in range(clients)))
        noting.cancel()
    return seen, sizes


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--weights", default="float32")
    options = parser.parse_args()
    command = [sys.executable, "-m", "byhand", "serve", options.model, "--port", "0", "--weights", options.weights]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    try:
        said = ""
        while " at http" not in said:
            said = server.stderr.readline()
        url = said.partition(" at ")[2].partition("/v1")[0]
        seen, sizes = asyncio.run(load(url, server.pid, options.clients, 60 * options.minutes))
        begun, ended = sizes[0][0], perf_counter()
    finally:
        server.terminate()
        server.wait()
    took = ended - begun
    minutes: dict[int, list[float]] = {}
    for when, size in sizes:
        minutes.setdefault(int((when - begun) // 60), []).append(size)
    rate = seen.tokens / took
    print(f"{seen.answers} answers, {len(seen.lost)} lost, {seen.tokens} tokens in {took:.0f} s, {rate:.0f} tokens/s")
    for name, values in (("to the first token", seen.first), ("between tokens", seen.between)):
        low, high = np.percentile(values, [50, 99])
        print(f"seconds {name}: {low:.3f} in the median, {high:.3f} at the 99th percentile")
    print("MB of memory in each minute:", *(f"{median(each):.0f}" for each in minutes.values()))
    for line in seen.lost[:5]:
        print(line)


if __name__ == "__main__":
    main()
