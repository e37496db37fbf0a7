"""Time to the first token and peak memory, compared with transformers and llama.cpp: by turns, a process each.

    python benchmarks/first_token.py FOLDER [--turns 3] [--models gpt2 llama qwen] [--tokens 20]

Models of random numbers in the shapes of GPT-2 124M, SmolLM 135M and Qwen2.5 0.5B, with a tokenizer trained on this
repository's documents, are made in FOLDER once, imported into a run and exported as GGUF. Each turn starts a process
that continues the same prompt: s to its first byte of output, s until it ends, s of processor time, and its largest
resident memory.
Files are in the page cache, compiled kernels in byhand's. llama.cpp maps its files: the pages that it touched count.
Needs torch, transformers, tokenizers, xllamacpp; byhand[fast,hf,gguf].
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROMPT = "The derivative of the loss with respect to the logits is the difference of two rows: " * 3
SHAPES: dict[str, dict[str, object]] = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 50257},
    "llama": {
        "model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "max_position_embeddings": 2048, "tie_word_embeddings": True,
    },
    "qwen": {
        "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
        "max_position_embeddings": 2048, "tie_word_embeddings": True,
    },
}  # fmt: skip


def make(name: str, folder: Path) -> None:
    """Make a random model with a tokenizer in folder/hf, import it and export it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    torch.manual_seed(0)
    shape = dict(SHAPES[name])
    config = AutoConfig.for_model(str(shape.pop("model_type")), **shape)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder / "hf")
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = [path.read_text() for path in sorted(Path(__file__).resolve().parents[1].glob("docs/**/*.md"))]
    tokens.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=20000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    tokens.add_special_tokens(["<|endoftext|>"])
    PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<|endoftext|>").save_pretrained(folder / "hf")
    byhand = [sys.executable, "-m", "byhand"]
    subprocess.run([*byhand, "import", str(folder / "hf"), "--out", str(folder / "run")], check=True)
    for dtype in ("float32", "bfloat16"):
        subprocess.run(
            [*byhand, "export", str(folder / "run"), "--to", "gguf", "--dtype", dtype, "--out", str(folder / dtype)],
            check=True,
        )


def ask_transformers(folder: Path, dtype: str, count: int) -> None:
    """Continue the prompt with transformers."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, TextStreamer

    class Streamer(TextStreamer):
        def put(self, value) -> None:
            if value.ndim == 1 and len(value) == 1:
                print(int(value[0]), flush=True)

        def end(self) -> None:
            pass

    model = AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=getattr(torch, dtype))
    tokens = AutoTokenizer.from_pretrained(folder / "hf")
    asked = tokens(PROMPT, return_tensors="pt")
    model.generate(**asked, max_new_tokens=count, min_new_tokens=count, do_sample=False, streamer=Streamer(tokens))


def ask_llama_cpp(folder: Path, dtype: str, count: int) -> None:
    """Continue the prompt with llama.cpp."""
    import json

    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = str(next((folder / dtype).glob("*.gguf")))
    p.n_ctx, p.n_parallel, p.warmup = 1024, 1, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = os.cpu_count() or 1
    server = xllamacpp.Server(p)
    asked = {"prompt": PROMPT, "temperature": 0, "ignore_eos": True, "max_tokens": count, "stream": True}
    server.handle_completions(asked, lambda said: print(json.dumps(said)[:60], flush=True))


def command(who: str, folder: Path, dtype: str, count: int) -> list[str]:
    """Return the command that continues the prompt."""
    if who in ASK:
        return [sys.executable, __file__, str(folder), "--ask", who, "--dtype", dtype, "--tokens", str(count)]
    return [
        sys.executable, "-m", "byhand", "sample", str(folder / "run"), "--prompt", PROMPT,
        "--max-new-tokens", str(count), "--temperature", "0", "--ignore-eos", "--weights", dtype, "--runtime", who,
    ]  # fmt: skip


ASK = {"transformers": ask_transformers, "llama.cpp": ask_llama_cpp}


def take(asked: list[str]) -> tuple[float, float, float, float]:
    """Run a command; return s to its first byte, s in all, s of processor time, and its peak in GB."""
    begin = time.perf_counter()
    process = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    first = time.perf_counter() - begin
    process.stdout.read()
    said = process.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(asked)}:\n{said}")
    return first, time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Make what is missing, then measure by turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--who", nargs="+", default=["loops", *ASK])
    parser.add_argument("--ask", choices=ASK, help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    asked = parser.parse_args()
    if asked.ask:
        ASK[asked.ask](asked.folder, asked.dtype[0], asked.tokens)
        return
    for name in asked.models:
        if asked.make:
            make(name, asked.folder / name)
        elif not (asked.folder / name / "bfloat16").exists():  # a process of its own: children inherit a peak
            subprocess.run([sys.executable, __file__, str(asked.folder), "--make", "--models", name], check=True)
    if asked.make:
        return
    print("| model, weights | who | s to the first token | s for all | CPU s | peak, GB |\n|---|---|---|---|---|---|")
    for name in asked.models:
        for dtype in asked.dtype:
            commands = {who: command(who, asked.folder / name, dtype, asked.tokens) for who in asked.who}
            take(commands[asked.who[0]])  # compiled kernels and pages are warm
            found = {who: [] for who in commands}
            for _ in range(asked.turns):
                for who, line in commands.items():
                    found[who].append(take(line))
            for who, rows in found.items():
                first, whole, spent, peak = (statistics.median(column) for column in zip(*rows, strict=True))
                print(
                    f"| {name}, {dtype} | {who} | {first:.2f} | {whole:.2f} | {spent:.2f} | {peak:.2f} |", flush=True
                )


if __name__ == "__main__":
    main()
