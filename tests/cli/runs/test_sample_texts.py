"""`byhand sample` with several texts, stop texts, and prompts that are cut."""

import json
import re

import pytest

from byhand.cli.runs.prompts import Prompt
from byhand.cli.runs.texts import EncodedPrompt
from byhand.config import ModelConfig, TrainConfig
from byhand.tokenizers.byte import BYTES
from cli.inside import byhand, write_run
from cli.process import error_line

USUAL = ["--max-new-tokens", 40, "--runtime", "numpy", "--ascii-only"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("texts")
    write_run(made / "run", TrainConfig(model=ModelConfig(seq_len=8, d_model=8)))
    return made


def said(folder, *flags, stdin=b"", usual=USUAL):
    done = byhand("sample", "run", *usual, *flags, cwd=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def lines(folder, *flags):
    return [json.loads(line) for line in said(folder, *flags, "--json")[0].splitlines()]


def test_samples_are_the_texts_of_consecutive_seeds(folder):
    alone = [lines(folder, "--prompt", "ab", "--seed", seed)[0] for seed in (4, 5, 6)]
    assert lines(folder, "--prompt", "ab", "--seed", 4, "--samples", 3, "--streams", 2) == alone
    assert len({each["text"] for each in alone}) == 3
    shown, _ = said(folder, "--prompt", "ab", "--seed", 4, "--samples", 3)
    assert shown == "".join(f"--- {i + 1} of 3, seed {i + 4} ---\nab{alone[i]['text']}\n" for i in range(3))


def test_each_of_several_prompts_is_continued(folder):
    alone = [lines(folder, f"--prompt={prompt}")[0] for prompt in ("ab", "-x", "standard")]
    flags = ["--prompt", "ab", "--prompt=-x", "--prompt", "-"]
    shown, _ = said(folder, *flags, stdin=b"standard\r\n")
    assert shown == "".join(
        f"--- {i + 1} of 3, seed 1 ---\n{each['prompt']}{each['text']}\n" for i, each in enumerate(alone)
    )


def test_a_text_ends_before_the_first_stop_text(folder):
    (whole,) = lines(folder, "--logprobs")
    stop = whole["text"][20:23]
    cut = whole["text"].index(stop)
    (ended,) = lines(folder, "--logprobs", "--stop", "never there", "--stop", stop)
    assert ended == {name: whole[name] if name == "prompt" else whole[name][:cut] for name in whole}
    assert said(folder, "--stop", stop)[0] == whole["text"][:cut] + "\n"
    line = json.dumps({"prompt": "", "stop": ["never there", stop]}).encode()
    assert json.loads(said(folder, "--prompts", "-", stdin=line)[0])["text"] == whole["text"][:cut]


@pytest.mark.parametrize("stops", [(), ("€b", "never")])
@pytest.mark.parametrize("count", [2, 4])
def test_a_character_is_held_back_until_it_is_whole(stops, count):
    ids = list("€a".encode())[:count]
    given = EncodedPrompt.of("prompt", Prompt(max_new_tokens=count, stop=stops), b"x", BYTES, 256, frozenset())
    (text,) = given.texts(BYTES, None, False)
    text.stream.status, shown = "running", []
    for token in ids:
        text.stream.take([token])
        shown.append(text.more())
    held = "" if stops else "€"  # the beginning of a stop text
    assert shown == (["", "\ufffd"] if count == 2 else ["", "", held, "a" if held else "€a"])


def test_what_is_left_of_a_stop_text_at_the_end_is_shown(folder):
    (whole,) = lines(folder)
    assert said(folder, "--stop", whole["text"][-3:] + "no more")[0] == whole["text"] + "\n"


def test_one_newline_at_the_end_of_standard_input_is_the_shells(folder):
    for given, read in (
        (b"ab\n", "ab\n"),
        (b"ab\r\n", "ab\n"),
        (b"ab\n\n", "ab\n\n"),
        (b"a\nb", "a\nb\n"),
        (b"\n", "\n"),
    ):
        assert said(folder, "--prompt", "-", "--max-new-tokens", 0, stdin=given)[0] == read


def test_what_is_cut_of_a_prompt_is_said(folder):
    shown, told = said(folder, "--prompt", "0123456789ab")
    assert shown.startswith("0123456789ab")
    assert told == "prompt: its first 4 bytes of 12 are cut, as the model reads at most 8\n"
    assert said(folder, "--prompt", "01234567")[1] == ""
    assert said(folder, "--prompt", "a", "--prompt", "012345678", "--samples", 2)[1].startswith(
        "prompt 2: its first 1 byte of 9 are cut"
    )
    told = said(folder, "--prompts", "-", stdin=b'{"prompt": "a"}\n{"prompt": "0123456789"}')[1]
    assert told == "line 2 of 'standard input': its first 2 bytes of 10 are cut, as the model reads at most 8\n"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--min-p", 1.5], "--min-p is 1.5, but must be between 0 and 1. Use 0.05."),
        (["--min-p", "nan"], "--min-p is nan, but must be a finite number."),
        (["--repetition-penalty", 0], "--repetition-penalty is 0.0, but must be between 0.01 and 100. Use 1.1."),
        (["--frequency-penalty", 3], "--frequency-penalty is 3.0, but must be between -2 and 2. Use 0.5."),
        (["--logit-bias", "5"], "--logit-bias 5 is not ID=NUMBER."),
        (["--logit-bias", "5=inf"], "--logit-bias is inf for the token 5, but must be between -1e+06 and 1e+06,"),
        (["--logit-bias", "999=1"], "logit_bias names the token 999, but the ids end at 255. Leave it out."),
        (["--samples", 0], "--samples is 0, but must be at least 1. Use 1."),
        (["--samples", 10**7], "--samples is 10000000, but can be at most 1000000. Use a smaller one."),
        (["--samples", 2, "--temperature", 0], "--samples is 2, but at --temperature 0 all are the same text."),
        (["--stop", ""], "--stop is '', but must have 1 to 1,000 bytes."),
        (["--stop", "x" * 1001], "but must have 1 to 1,000 bytes."),
        (["--prompt", "-", "--prompt", "-"], "--prompt - is given twice, but standard input can be read once."),
        (["--stop"], "--stop needs a value"),
    ],
    ids=str,
)
def test_wrong_values_are_one_line(folder, flags, error):
    assert error in error_line(byhand("sample", "run", *flags, cwd=folder))


def test_stats_say_what_was_read_and_how_fast(folder):
    (plain,), (found,) = lines(folder, "--prompt", "abc"), lines(folder, "--prompt", "abc", "--stats")
    assert {name: found.pop(name) for name in ("read", "reused")} == {"read": 3, "reused": 0}
    assert found.pop("first_token_s") > 0
    assert found.pop("tokens_per_s") > 0
    assert found == plain
    (told,) = said(folder, "--prompt", "abc", "--stats")[1].splitlines()
    assert re.fullmatch(
        r"read 3 tokens of the prompt, reused 0; first token after [\d.e-]+ s, then [\d.]+ tokens/s", told
    )
    told = said(folder, "--prompt", "0123456789", "--max-new-tokens", 1, "--stats")[1]
    assert re.search(r"read 8 tokens of the prompt, reused 0; first token after [\d.e-]+ s\n", told)
