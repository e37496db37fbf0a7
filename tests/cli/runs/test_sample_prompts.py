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
    {"prompt": "a", "min_p": 0.01, "repetition_penalty": 1.5, "stop": "\u07ff\u07ff"},
    {"prompt": "b", "frequency_penalty": 1.5, "presence_penalty": 0.5, "logit_bias": {"65": 4}},
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
        words = {n: "65=4" if n == "logit_bias" else value for n, value in line.items()}
        flags = [x for name, value in words.items() for x in (f"--{name.replace('_', '-')}", value)]
        alone = byhand("sample", "run", *USUAL, *flags, "--json", "--logprobs", cwd=folder)
        expected = json.loads(alone.stdout)
        assert each["logprobs"] == pytest.approx(expected.pop("logprobs"), abs=1e-6)
        assert {name: each[name] for name in ("prompt", "text", "ids")} == expected
        assert len(each["ids"]) == len(each["logprobs"]) == line.get("max_new_tokens", 9)
    plain = byhand("sample", "run", "--prompts", "-", *USUAL, cwd=folder, stdin=written(LINES))
    assert [json.loads(line).keys() for line in plain.stdout.splitlines()] == [{"prompt", "text", "ids"}] * len(LINES)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "it is not valid JSON"),
        (b'"text"', "it must be an object with the text to continue"),
        (b'{"promt": "a"}', "it must be an object with the text to continue"),
        (b'{"prompt": "a", "prompt": "b"}', "it is not valid JSON (the key 'prompt' twice)."),
        (
            b'{"prompt": "a", "topk": 3}',
            "'topk' is not a setting. Use prompt, max_new_tokens, stop, samples, temperature, top_k,",
        ),
        (b'{"prompt": "a", "top_k": true}', "top_k is true, but must be a whole number."),
        (b'{"prompt": "a", "top_k": 0}', "top_k is 0, but must be at least 1. Use 40."),
        (b'{"prompt": "a", "seed": null}', "seed is null, but must be a whole number, such as 1."),
        (b'{"prompt": "a", "max_new_tokens": -1}', "max_new_tokens is -1, but must be at least 0. Use 300."),
        (b'{"prompt": "a", "temperature": "hot"}', "temperature is 'hot', but must be a number, such as 0.8."),
        (b'{"prompt": "a", "temperature": ' + b"9" * 400 + b"}", "but must be a finite number, such as 0.8."),
        (b'{"prompt": "a", "temperature": -1}', "temperature is -1, but must be between 0 and 1e+06. Use 0.8."),
        (b'{"prompt": "a", "stop": ""}', "stop is '', but must have 1 to 1,000 bytes."),
        (b'{"prompt": "a", "stop": ["b", 1]}', "stop is ['b', 1], but must be text in quotes, or a list of such"),
        (b'{"prompt": "a", "stop": null}', "stop is null, but must be text in quotes, or a list of such texts."),
        (b'{"prompt": "a", "stop": "\\ud800"}', "it is not valid JSON"),
        (b'{"prompt": "a", "min_p": 2}', "min_p is 2, but must be between 0 and 1. Use 0.05."),
        (
            b'{"prompt": "a", "repetition_penalty": 0}',
            "repetition_penalty is 0, but must be between 0.01 and 100. Use 1.1.",
        ),
        (
            b'{"prompt": "a", "logit_bias": [1]}',
            'logit_bias is [1], but must map ids to numbers: {"50256": -100}.',
        ),
        (b'{"prompt": "a", "samples": 0}', "samples is 0, but must be at least 1. Use 1."),
        (b'{"prompt": "a", "samples": 2, "temperature": 0}', "samples is 2, but at temperature 0 all are the same"),
        (b'{"prompt": "\\ud800"}', "it is not valid JSON"),
        (b'{"prompt": "\xff"}', "it is not valid JSON"),
        (b"[" * 100, "it is not valid JSON"),
    ],
    ids=str,
)
def test_a_bad_line_is_one_line_with_its_number_before_anything_is_drawn(folder, line, said):
    done = byhand("sample", "run", "--prompts", "-", cwd=folder, stdin=b'{"prompt": "a"}\n\n' + line + b"\n")
    assert (done.returncode, done.stdout) == (2, b"")
    (message,) = done.stderr.decode().splitlines()
    assert message.startswith("error: line 3 of 'standard input': ")
    assert said in message


@pytest.mark.parametrize("name", ["max_new_tokens", "top_k", "seed"])
@pytest.mark.parametrize("digits", [20, 400])
def test_numbers_have_the_same_bound_in_a_line_and_as_flags(folder, name, digits):
    number = "9" * digits
    line = f'{{"prompt": "a", "{name}": {number}}}'.encode()
    in_a_line = byhand("sample", "run", "--prompts", "-", cwd=folder, stdin=line)
    flag = f"--{name.replace('_', '-')}"
    as_flag = byhand("sample", "run", flag, number, cwd=folder)
    for done, named in ((in_a_line, f"line 1 of 'standard input': {name}"), (as_flag, flag)):
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.decode().startswith(f"error: {named} is ")
        assert "but can be at most" in done.stderr.decode()


def test_other_mistakes_are_one_line(folder):
    (folder / "empty").write_bytes(b"\n \n")
    for flags, said in (
        (["--prompts", "missing"], "cannot read --prompts 'missing'"),
        (["--prompts", "empty"], "'empty' holds no prompt."),
        (["--prompts", "-", "--prompt", "a"], "--prompt changes nothing with --prompts"),
        (
            ["--prompts", "-", "--json"],
            "--json changes nothing with --prompts, which names the texts and prints JSON",
        ),
        (["--prompt", "a", "--streams", "8"], "--streams changes nothing for a single text. Leave it out."),
        (["--logprobs"], "--logprobs changes nothing without --prompts or --json."),
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


def test_names_of_other_programs_and_a_prompt_without_its_flag(folder):
    theirs = byhand("sample", "run", "--temp", 0, "--n-predict", 5, "--repeat-penalty", 1.1, cwd=folder)
    ours = byhand("sample", "run", "--temperature", 0, "--max-tokens", 5, "--repetition-penalty", 1.1, cwd=folder)
    assert (theirs.returncode, theirs.stdout) == (0, ours.stdout)
    assert b'Use --prompt "to be".' in byhand("sample", "run", "to be", cwd=folder).stderr
