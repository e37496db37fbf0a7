"""Training and encoding compared with rustbpe, tokenizers and tiktoken, by turns, with peak memory.

    python benchmarks/tokenizer.py TEXT [--vocab-size 32768] [--turns 3] [--split gpt4]

Each turn is a process of its own, so that its peak of memory is its own. The merges must be equal, and the ids.
Needs rustbpe, tokenizers and tiktoken; byhand[fast].
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ENCODED = 20_000_000  # bytes of the text that are encoded
BLOCK = 1 << 20
DOCUMENT = 100_000  # characters
BORDER = re.compile(r"[a-z]\n(?=[a-z])")


def blocks(path: Path) -> Iterator[bytes]:
    """Yield the text in blocks."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def documents(path: Path) -> Iterator[str]:
    """Yield the text in parts, each cut between a line that ends in a letter and one that begins with a letter."""
    text, begin = path.read_bytes().decode(), 0
    while begin < len(text):
        match = BORDER.search(text, begin + DOCUMENT)
        end = match.end() if match else len(text)
        yield text[begin:end]
        begin = end


def train_ours(path: Path, size: int, split: str) -> list[bytes]:
    """Train here: the text comes in blocks."""
    from byhand.tokenizers.training import train

    made = train(blocks(path), size, split)
    return [made.token_bytes[token] for token in range(made.vocab_size)]


def train_rustbpe(path: Path, size: int, split: str) -> list[bytes]:
    """Train with rustbpe, which splits documents in parallel."""
    import rustbpe

    from byhand.tokenizers.splitting import SPLITS

    made = rustbpe.Tokenizer()
    made.train_from_iterator(documents(path), size, pattern=SPLITS[split].regex[-1])
    return [bytes(token) for token, _ in made.get_mergeable_ranks()]


def train_tokenizers(path: Path, size: int, split: str) -> list[bytes]:
    """Train with tokenizers, which breaks ties by another rule and orders bytes differently."""
    import tokenizers
    from byhand.tokenizers.splitting import SPLITS
    from tokenizers import models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(SPLITS[split].regex[0]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(documents(path), trainer)
    return []


def encoder_ours(tokens: list[bytes], split: str) -> Callable[[bytes], Any]:
    """Encode here, one thread."""
    from byhand.tokenizers.bpe import BytePairTokenizer
    from byhand.tokenizers.symbols import visible_bytes

    visible = visible_bytes()
    ids = {"".join(visible[byte] for byte in token): k for k, token in enumerate(tokens)}
    made = BytePairTokenizer(ids, None, split=split)
    made.encode(b"a b " * BLOCK)  # loads the loops
    return lambda text: made.array([text[i : i + BLOCK] for i in range(0, len(text), BLOCK)])


def encoder_tiktoken(tokens: list[bytes], split: str) -> Callable[[bytes], Any]:
    """Encode with tiktoken, one thread."""
    import tiktoken

    from byhand.tokenizers.splitting import SPLITS

    ranks = {token: k for k, token in enumerate(tokens)}
    pattern = SPLITS[split].regex[-1]
    made = tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: made.encode_ordinary(text.decode())


TRAINERS = {"byhand": train_ours, "rustbpe": train_rustbpe, "tokenizers": train_tokenizers}
ENCODERS = {"byhand": encoder_ours, "tiktoken": encoder_tiktoken}


def one_turn(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train, or encode with the tokens on standard input; return seconds, the peak of memory, a digest."""
    if arguments.turn == "train":
        if arguments.program == "byhand":
            from byhand.tokenizers import compiled

            compiled.available()  # loads the loops, as a second command would find them
        begun = time.perf_counter()
        tokens = TRAINERS[arguments.program](arguments.text, arguments.vocab_size, arguments.split)
        seconds = time.perf_counter() - begun
        digest = hashlib.sha256(b"\n".join(tokens)).hexdigest()
        return {**_used(seconds), "digest": digest, "tokens": [token.hex() for token in tokens]}
    tokens = [bytes.fromhex(token) for token in json.load(sys.stdin)]
    text = arguments.text.read_bytes()[:ENCODED].decode(errors="ignore").encode()
    encode = ENCODERS[arguments.program](tokens, arguments.split)
    begun = time.perf_counter()
    ids = encode(text)
    seconds = time.perf_counter() - begun
    digest = hashlib.sha256(" ".join(map(str, map(int, ids))).encode()).hexdigest()
    return {**_used(seconds), "digest": digest, "count": len(ids), "bytes": len(text)}


def _used(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def main() -> None:
    """Run the turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("text", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32_768)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--split", default="gpt4")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--program", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.turn:
        json.dump(one_turn(arguments), sys.stdout)
        return
    tokens: list[str] = []
    for turn, programs in (("train", TRAINERS), ("encode", ENCODERS)):
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
        for _ in range(arguments.turns):
            for name in programs:
                command = [sys.executable, *sys.argv, "--turn", turn, "--program", name]
                done = subprocess.run(command, input=json.dumps(tokens).encode(), capture_output=True, check=True)
                found[name].append(json.loads(done.stdout))
        tokens = tokens or found["byhand"][0]["tokens"]
        same = {row["digest"] for name, rows in found.items() for row in rows if name != "tokenizers"}
        assert len(same) == 1, f"{turn}: the programs differ"
        for name, rows in found.items():
            seconds = statistics.median(row["seconds"] for row in rows)
            size = rows[0].get("bytes", arguments.text.stat().st_size)
            print(
                f"{turn:<7} {name:<11} {seconds:6.2f} s  {size / seconds / 1e6:6.1f} MB/s  "
                f"peak {max(row['megabytes'] for row in rows):6.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
