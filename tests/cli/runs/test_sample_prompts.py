"""`byhand sample --prompts`: JSON lines in and out, in their order, each text as it would be alone."""

import json
import signal
import subprocess
import sys

import pytest

from byhand.config import ModelConfig, TrainConfig
from cli.inside import byhand, write_run
from cli.process import PATIENCE, environment

LINES = [
    {"prompt": "the quick brown fox", "max_new_tokens": 30, "temperature": 0},
    {"prompt": "", "seed": 5},
    {"prompt": "图", "top_k": 3, "max_new_tokens": 4},
    {"prompt": "a\nb", "top_p": 0.5, "temperature": 1.5},
]
USUAL = ["--max-new-tokens", 9, "--seed", 2, "--runtime", "numpy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("prompts")
    write_run(made / "run", TrainConfig(model=ModelConfig(seq_len=8, d_model=8)))
    return made


def written(lines):
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


@pytest.mark.parametrize("streams", [1, 3])
def test_each_text_is_the_one_that_its_prompt_gets_alone(folder, streams):
    (folder / "p.jsonl").write_bytes(written(LINES) + b"\n\n")
    done = byhand("sample", "run", "--prompts", "p.jsonl", *USUAL, "--streams", streams, "--logprobs", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["prompt"] for each in found] == [line["prompt"] for line in LINES]
    for line, each in zip(LINES, found, strict=True):
        flags = [x for name, value in line.items() for x in (f"--{name.replace('_', '-')}", value)]
        alone = byhand("sample", "run", *USUAL, *flags, "--json", "--logprobs", cwd=folder)
        expected = json.loads(alone.stdout)
        assert each["logprobs"] == pytest.approx(expected.pop("logprobs"), abs=1e-6)
        assert {name: each[name] for name in ("prompt", "text")} == expected
        assert len(each["ids"]) == len(each["logprobs"]) == line.get("max_new_tokens", 9)
    plain = byhand("sample", "run", "--prompts", "-", *USUAL, cwd=folder, stdin=written(LINES))
    assert [json.loads(line).keys() for line in plain.stdout.splitlines()] == [{"prompt", "text", "ids"}] * 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "it is no JSON"),
        (b'"text"', "it must be an object with the text to continue"),
        (b'{"promt": "a"}', "it must be an object with the text to continue"),
        (b'{"prompt": "a", "topk": 3}', "'topk' is no setting. Use prompt, max_new_tokens, temperature, top_k,"),
        (b'{"prompt": "a", "top_k": true}', "top_k must be an integer"),
        (b'{"prompt": "a", "max_new_tokens": -1}', "max_new_tokens must be an integer from 0"),
        (b'{"prompt": "a", "temperature": "hot"}', "temperature must be a number"),
        (
            b'{"prompt": "a", "temperature": ' + b"9" * 400 + b"}",
            "temperature must be a number that is not too large.",
        ),
        (b'{"prompt": "a", "temperature": -1}', "temperature is -1, but must be 0 or more."),
        (b'{"prompt": "a", "stop": "<|end|>"}', "'<|end|>' is no special token"),
        (b'{"prompt": "\\ud800"}', "it is no JSON"),
        (b'{"prompt": "\xff"}', "it is no JSON"),
        (b"[" * 100, "it is no JSON"),
    ],
    ids=str,
)
def test_a_bad_line_is_one_line_with_its_number_before_anything_is_drawn(folder, line, said):
    done = byhand("sample", "run", "--prompts", "-", cwd=folder, stdin=b'{"prompt": "a"}\n\n' + line + b"\n")
    assert (done.returncode, done.stdout) == (2, b"")
    (message,) = done.stderr.decode().splitlines()
    assert message.startswith("error: line 3")
    assert said in message


def test_other_mistakes_are_one_line(folder):
    (folder / "empty").write_bytes(b"\n \n")
    for flags, said in (
        (["--prompts", "missing"], "cannot read --prompts 'missing'"),
        (["--prompts", "empty"], "'empty' holds no prompt."),
        (["--prompts", "-", "--prompt", "a"], "--prompt and --prompts are both given."),
        (["--prompt", "a", "--streams", "3"], "--streams is for --prompts."),
        (["--logprobs"], "--logprobs is for --json and --prompts."),
        (["--prompts", "-", "--streams", 0], "streams is 0, but must be between 1 and 1024."),
    ):
        done = byhand("sample", "run", *flags, cwd=folder)
        assert done.returncode == 2
        assert said in done.stderr.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no signals to one process")
def test_an_interrupt_keeps_the_lines_that_are_whole(folder):
    """The first text ends at once; the interrupt meets the second, which would never end."""
    (folder / "long").write_text(
        '{"prompt": "a", "max_new_tokens": 3}\n{"prompt": "b", "max_new_tokens": 1000000000}\n'
    )
    command = [sys.executable, "-m", "byhand", "sample", "run", "--prompts", "long", "--runtime", "numpy"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=pipe, stderr=pipe) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["prompt"] == "a"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err.decode().strip()) == (130, b"", "interrupted")
