"""`train_gpt` as its user meets it: lines, files, exit codes."""

import json
import re
import subprocess
import sys

import pytest

from byhand.cli.seed.train_gpt import main
from byhand.cli.seed.train_gpt_flags import Flags
from byhand.interop.seed_program import checkpoint as files
from byhand.tokenizers.symbols import visible_bytes
from interop.golden import FLAGS, RUN, TEXT, golden
from interop.test_seed_training import PRINTED, SYNTHETIC, losses

SMALL = ["--batch", "3", "--seq", "8", "--dmodel", "12", "--layers", "2", "--lr", "0.01", "--seed", "57"]


@pytest.fixture
def train_gpt(monkeypatch, capfdbinary):
    """Run the console script; return its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["train_gpt", *map(str, arguments)])
        code = main()
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return run


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(SYNTHETIC)
    return path


@pytest.fixture
def saved(train_gpt, text, tmp_path):
    assert train_gpt("--data", text, *SMALL, "--steps", 2, "--save", tmp_path / "a")[0] == 0
    return tmp_path / "a"


def test_defaults_are_the_seed_programs():
    defaults = Flags()
    assert (defaults.steps, defaults.batch, defaults.seq, defaults.dmodel) == (200, 4, 64, 64)
    assert (defaults.layers, defaults.seed, defaults.lr) == (1, 1, 3e-4)


def test_training_prints_the_seeds_losses_and_saves(train_gpt, text, tmp_path):
    code, out, err = train_gpt("--data", text, *SMALL, "--steps", 20, "--save", tmp_path / "new" / "a")
    lines = out.decode().splitlines()
    assert (code, err) == (0, "")
    assert losses(lines) == PRINTED
    assert lines[-1] == f"saved checkpoint '{tmp_path / 'new' / 'a'}' at step 20 (with optimizer state)"
    assert files.load(str(tmp_path / "new" / "a")).optimizer.t == 20


def test_save_opt_0(train_gpt, text, tmp_path):
    code, out, _ = train_gpt("--data", text, *SMALL, "--steps", 1, "--save", tmp_path / "a", "--save-opt", 0)
    assert code == 0
    assert out.decode().splitlines()[-1] == f"saved checkpoint '{tmp_path / 'a'}' at step 1"
    assert json.loads((tmp_path / "a.json").read_text())["has_optim_state"] is False


@golden
def test_the_golden_run_line_by_line(train_gpt, tmp_path):
    sanity = ["--sanity-offset", 1000, "--sanity-ctx", 32]
    prefix = tmp_path / "seed_a"
    code, out, _ = train_gpt("--data", TEXT, *FLAGS, "--steps", 60, "--save", prefix, "--save-opt", 1, *sanity)
    lines = out.decode().splitlines()
    log = RUN.with_suffix(".train.log").read_text().splitlines()

    def without_time_and_path(line):
        return re.sub(r"time=\S+s|'.*'", "", line)

    assert code == 0
    assert [without_time_and_path(line) for line in lines[: len(log)]] == [
        without_time_and_path(line) for line in log
    ]
    assert (tmp_path / "seed_a.json").read_bytes() == RUN.with_suffix(".json").read_bytes()
    again = train_gpt("--data", TEXT, "--load", RUN, "--steps", 0, *sanity)[1].decode().splitlines()

    def numbers(lines):
        return [float(n) for n in re.findall(r"(?:id|p)=([\d.]+)", "\n".join(lines))]

    assert numbers(again) == pytest.approx(numbers(lines[len(log) :]), abs=1e-5)
    assert re.sub(r"p=\S+", "", again[4]) == "  1) id=32    tok=' '"


def test_a_loaded_run_counts_on_and_keeps_its_settings(train_gpt, text, saved, tmp_path):
    code, out, err = train_gpt("--data", text, "--load", saved, "--steps", 10, "--lr=9", "--save", tmp_path / "b")
    assert code == 0
    steps = [line.split("  loss")[0] for line in out.decode().splitlines()[:-1]]
    assert steps == ["step 3  (1/10)", "step 12  (10/10)"]
    assert err == "note: --lr: the loaded checkpoint's own values are used\n"
    again = files.load(str(tmp_path / "b"))
    assert (again.step, again.optimizer.t, again.model.config.d_model) == (12, 12, 12)
    assert again.optimizer.lr == pytest.approx(0.01)


def test_a_prompt_is_continued_the_same_way_each_time(train_gpt, saved):
    first, second, other = (
        train_gpt("--load", saved, "--prompt", "To", "--gen", 30, "--seed", s)[1] for s in (1, 1, 2)
    )
    assert first == second != other
    assert first.startswith(b"To")
    assert len(first) == 2 + 30 + 1


def test_a_prompt_longer_than_the_window_and_an_empty_one(train_gpt, saved):
    prompt = "abc" * 20
    assert len(train_gpt("--load", saved, "--prompt", prompt, "--gen", 4)[1]) == 60 + 4 + 1
    assert len(train_gpt("--load", saved, "--prompt", "", "--gen", 4)[1]) == 4 + 1
    assert len(train_gpt("--load", saved, "--prompt", "", "--topk", 3)[1]) == 200 + 1
    assert train_gpt("--load", saved) == (0, b"", "")


def test_temperature_zero_is_greedy(train_gpt, saved):
    greedy = [train_gpt("--load", saved, "--prompt", "a", "--gen", 8, "--temp", 0, "--seed", s)[1] for s in (1, 2)]
    assert greedy[0] == greedy[1] == train_gpt("--load", saved, "--prompt", "a", "--gen", 8, "--topk", 1)[1]


def test_ascii_only_and_escape_bytes(train_gpt, saved):
    plain = train_gpt("--load", saved, "--prompt", "a", "--gen", 200, "--ascii-only", 1)[1]
    assert all(byte in b"\n\t" or 32 <= byte < 127 for byte in plain)
    raw = train_gpt("--load", saved, "--prompt", "a", "--gen", 200)[1]
    shown = train_gpt("--load", saved, "--prompt", "a", "--gen", 200, "--escape-bytes", 1)[1]
    assert any(byte >= 128 for byte in raw)
    assert shown.isascii()
    assert shown.decode("unicode_escape").encode("latin-1") == raw


def test_next_token_lists(train_gpt, saved):
    once = train_gpt("--load", saved, "--prompt", "a", "--gen", 3, "--print-next-top", 2)[1]
    assert once.count(b"Top-2 next tokens\n") == 1
    assert re.search(rb"  2\) id=\d+  p=0\.\d+  tok='", once)
    each = train_gpt("--load", saved, "--prompt", "a", "--gen", 3, "--print-next-top-each-step", 1)[1]
    assert each.count(b"Top-10 next tokens\n") == 3
    assert each.endswith(once.split(b"\n", 3)[-1])
    assert train_gpt("--load", saved, "--gen", 0, "--print-next-top", 1)[1].count(b"\n") == 2


@pytest.fixture
def bpe(tmp_path):
    """A vocabulary of 256 tokens, in GPT-2's form: one pair takes the place of a byte that no text has."""
    symbols = list(visible_bytes())
    symbols[0xFF] = "he"
    (tmp_path / "vocab.json").write_text(json.dumps({s: i for i, s in enumerate(symbols)}), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n", encoding="utf-8")
    return ["--tokenizer", "bpe", "--bpe-vocab", tmp_path / "vocab.json", "--bpe-merges", tmp_path / "merges.txt"]


def test_bpe_prompt(train_gpt, saved, bpe):
    one, two = (
        train_gpt("--load", saved, *tokenizer, "--prompt", "he", "--gen", 0, "--print-next-top", 1)[1]
        for tokenizer in (bpe, [])
    )
    assert one != two  # one token against two
    assert train_gpt("--load", saved, *bpe, "--prompt", "the", "--gen", 5)[1].startswith(b"the")


def test_bpe_tokens_that_the_model_lacks(train_gpt, saved, bpe, tmp_path):
    ids = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    ids["he"] = 300
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    code, _, err = train_gpt("--load", saved, *bpe, "--prompt", "he")
    assert code == 2
    assert "the token 300, but the model's ids go from 0 to 255" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--data"),
        (["--data", "nowhere"], "cannot read nowhere"),
        (["--data", "."], "cannot read .: it is a folder"),
        (["--data", "EMPTY"], "is empty"),
        (["--data", "SHORT"], "1,023 bytes, but at least 1,024"),
        (["--data", "TEXT", "--seq", "2000"], "2,000 bytes, but at least 2,001"),
        (["--data", "TEXT", "--steps", "-1"], "--steps is -1"),
        (["--data", "TEXT", "--batch", "0"], "--batch is 0"),
        (["--data", "TEXT", "--dmodel", "1.5"], "1.5"),
        (["--data", "TEXT", "--lr", "nan"], "--lr is nan"),
        (["--data", "TEXT", "--seed", str(2**64)], "2^64"),
        (["--data", "TEXT", "--seed", "9" * 5000], "has 5,000 digits"),
        (["--data", "TEXT", "--steps", "9" * 20], "--steps is 99999999999999999999, but must be at most"),
        (["--data", "TEXT", "--layers", "9" * 20], "--layers is 99999999999999999999, but must be at most 1,024"),
        (["--data", "TEXT", "--batch", "9" * 12], "must be at most 65,536"),
        (["--data", "TEXT", "--dmodel", "9000"], "parameters, but the original program's recipe is for at most"),
        (["--data", "TEXT", "--layers", "1000", "--dmodel", "4096"], "parameters, but"),
        (["--data", "TEXT", "--lr", "1e39"], "--lr is 1e+39, but must be at most"),
        (["--data", "TEXT", "--lr=-inf"], "--lr is -inf"),
        (["--data", "TEXT", "--temp", "inf"], "--temp is inf"),
        (["--data", "TEXT", "--sanity-next-from-data", "9" * 12], "must be at most"),
        (["--data", "TEXT", "--save-opt", "2"], "--save-opt"),
        (["--data", "TEXT", "--stepz", "2"], "--stepz"),
        (["--data", "TEXT", "--tokenizer", "bpe"], "--bpe-vocab"),
        (["--data", "TEXT", "--bpe-merges", "x"], "does not use --bpe-merges"),
        (["--load", "nowhere"], "cannot read nowhere.json"),
        (["--load", "SAVED", "--sanity-offset", "0"], "no text to check"),
        (["--load", "SAVED", "--temp", "-1"], "--temp is -1"),
        (["--load", "SAVED", "--data", "TEXT", "--sanity-offset", "1992"], "Use at most 1991"),
        (
            ["--load", "SAVED", "--data", "TEXT", "--sanity-offset", "0", "--sanity-ctx", "9"],
            "seq_len",
        ),
        (["--load", "SAVED", "--data", "TEXT", "--save", "TEXT/a"], "cannot make the folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(train_gpt, text, saved, tmp_path, arguments, words):
    (tmp_path / "short").write_bytes(SYNTHETIC[:1023])
    (tmp_path / "empty").write_bytes(b"")
    places = {"TEXT": text, "SAVED": saved, "SHORT": tmp_path / "short", "EMPTY": tmp_path / "empty"}
    named = re.compile("^(TEXT|SAVED|SHORT|EMPTY)")
    code, out, err = train_gpt(*(named.sub(lambda m: str(places[m[0]]), a) for a in arguments))
    assert (code, out) == (2, b"")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_run_that_diverges_stops_without_saving(train_gpt, text, tmp_path):
    code, out, err = train_gpt("--data", text, *SMALL, "--lr", 1e30, "--steps", 9, "--save", tmp_path / "a")
    assert code == 2
    assert out.count(b"\n") == 1
    assert re.fullmatch(r"error: the loss became \S+ at step \d\. Lower --lr\.\n", err)
    assert not list(tmp_path.glob("a.*"))


def test_debug_shows_the_traceback(train_gpt):
    code, _, said = train_gpt("--steps", 3, "--debug")
    assert code == 2
    assert said.startswith("Traceback")
    assert "no text to train on" in said.splitlines()[-1]


def test_as_a_process_of_its_own(text, saved):
    code = "import sys; from byhand.__main__ import train_gpt; sys.exit(train_gpt())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--load", saved, "--data", text, "--steps", "1", "--prompt", "a", "--gen", "3"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(rb"step 3  \(1/1\)  loss=\S+  time=\S+s\r?\na", done.stdout)


def test_generated_bytes_are_escaped_in_capitals(train_gpt, saved, monkeypatch):
    monkeypatch.setattr("byhand.cli.seed.train_gpt_program.draw", lambda *arguments: 0x0E)
    code, out, _ = train_gpt("--load", saved, "--prompt", "ab\\", "--gen", 2, "--escape-bytes", 1)
    assert (code, out) == (0, rb"ab\\\x0E\x0E" + b"\n")


def test_many_initial_weights_are_announced(train_gpt, text):
    code, _, said = train_gpt("--data", text, "--steps", 0, "--dmodel", 320, "--seq", 8)
    assert code == 0
    assert said == "drawing 1,398,336 initial weights one by one, as the original program does\n"
