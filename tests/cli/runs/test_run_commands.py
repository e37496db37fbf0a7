"""`sample`, `eval`, `info` and `plot` on one trained run."""

import json
import shutil
import subprocess
import sys
from shlex import quote

import pytest

from cli.inside import byhand
from cli.process import PATIENCE, TINY, environment, error_line, write_text


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    text = write_text(folder / "text.txt")
    done = byhand("train", *TINY, "--data", text, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def sample(run, *arguments, **extra):
    done = byhand("sample", run, *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_sample_continues_its_prompt_and_repeats_with_its_seed(run):
    text = sample(run, "--prompt", "the quick", "--max-new-tokens", 50)
    assert text.startswith("the quick")
    assert text == sample(run, "--prompt", "the quick", "--max-new-tokens", 50)
    assert text != sample(run, "--prompt", "the quick", "--max-new-tokens", 50, "--seed", 2)


@pytest.mark.parametrize("length", [0, 1, 16, 160])
def test_prompts_of_any_length_and_no_difference_without_the_cache(run, length):
    prompt = ("the quick brown fox " * 8)[:length]
    arguments = ["--prompt", prompt, "--max-new-tokens", 40, "--temperature", 0]
    with_cache = sample(run, *arguments, "--json")
    assert with_cache == sample(run, *arguments, "--no-cache", "--json")
    assert json.loads(with_cache)["prompt"] == prompt


def test_ascii_only(run):
    text = sample(run, "--max-new-tokens", 300, "--temperature", 3, "--ascii-only")
    assert all(c in "\t\n" or " " <= c <= "~" for c in text)
    assert len(text.rstrip("\n")) >= 250


def test_split_characters_are_held_back_and_broken_ones_shown(run):
    text = sample(run, "--prompt", "é€😀", "--max-new-tokens", 200, "--temperature", 5)
    assert text.startswith("é€😀")
    assert "\ufffd" in text  # bytes drawn at random are seldom UTF-8
    assert sample(run, "--prompt", "-", "--max-new-tokens", 0, stdin="né".encode()) == "né\n"


def test_bytes_are_streamed_as_they_come(run):
    command = [sys.executable, "-m", "byhand", "sample", str(run), "--ascii-only", "--max-new-tokens", "100000000"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert len(process.stdout.read(300)) == 300
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_closed_pipe_is_no_error(run):
    sample = f"{sys.executable} -m byhand sample {quote(str(run))} --runtime numpy --ascii-only --max-new-tokens 5000"
    done = subprocess.run(
        ["sh", "-c", f"{sample} | head -c 10"], env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.stderr == b""


def test_eval_in_words_and_json(run):
    text = run.parent / "text.txt"
    said = byhand("eval", run, "--data", text)
    assert b"nats per byte" in said.stdout
    result = json.loads(byhand("eval", run, "--data", text, "--json").stdout)
    assert result["tokens"] == text.stat().st_size - 1
    assert result["bpb"] == pytest.approx(result["loss"] / 0.6931471805599453)
    closer = json.loads(byhand("eval", run, "--data", text, "--json", "--stride", 1).stdout)
    assert (closer["stride"], closer["tokens"]) == (1, result["tokens"])


def test_info_names_the_checkpoints(run):
    said = byhand("info", run).stdout.decode()
    assert "step-00000006    whole" in said
    facts = json.loads(byhand("info", run, "--json").stdout)
    assert facts["step"] == "6 of 6"
    assert facts["model"]["d_model"] == 16
    assert (facts["model"]["d_ff"], facts["model"]["n_kv_heads"]) == (64, facts["model"]["n_heads"])
    assert "d_ff             64\n" in said
    one = json.loads(byhand("info", run / "step-00000004", "--json").stdout)
    assert one["step"] == "4 of 6"


def test_info_says_what_computed_a_run(run):
    used = json.loads((run / "step-00000006" / "trainer_state.json").read_bytes())["used"]
    facts = json.loads(byhand("info", run, "--json").stdout)
    assert facts["computed by"] == {**used, "dtype": "float32"}
    assert f"computed by:\n  runtime          {used['runtime']}\n" in byhand("info", run).stdout.decode().replace(
        f"  blas             {used.get('blas')}\n", ""
    )


def test_plot_draws_in_the_terminal_and_writes_a_png(run, tmp_path):
    done, of_a_checkpoint = (byhand("plot", folder) for folder in (run, run / "step-00000004"))
    assert done.returncode == 0, done.stderr
    assert "loss in nats per byte" in done.stdout.decode()
    assert of_a_checkpoint.stdout == done.stdout
    shutil.copytree(run / "step-00000004", tmp_path / "copy")
    alone = error_line(byhand("plot", "copy", cwd=tmp_path))
    assert alone == "error: copy is a checkpoint without its run. Give the run folder."
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert (run / "loss.png").read_bytes().startswith(b"\x89PNG")


BAD = [
    (["sample", "missing"], "there is no run missing"),
    (["sample", "RUN", "--top-k", "0"], "--top-k is 0, but must be at least 1. Use 40."),
    (["sample", "RUN", "--temperature", "-1"], "--temperature is -1.0, but must be between 0 and 1e+06. Use 0.8."),
    (["sample", "RUN", "--temperature", "1e39"], "--temperature is 1e+39, but must be between 0 and 1e+06. Use 0.8."),
    (["sample", "RUN", "--max-new-tokens", "-1"], "--max-new-tokens is -1, but must be at least 0. Use 300."),
    (["sample", "RUN", "--seed", "-1"], "--seed is -1, but must be at least 0. Use 1."),
    (["sample", "RUN", "--prompt", "-x"], "--prompt needs a value (one that begins with - is written --prompt=-x)"),
    (["sample", "RUN", "--top-k", "1.5"], "--top-k 1.5 is not an integer"),
    (["plot", "RUN", "--png", "RUN"], "cannot write"),
    *(
        (["plot", "RUN", "--png", name], f"--png {name} does not end with .png. Name a PNG")
        for name in ("x.svg", "x.txt")
    ),
    (["sample"], "byhand sample needs RUN."),
    (["eval", "RUN", "--data", "missing"], "there is no file or folder missing"),
    (["eval", "RUN"], "--data"),
    (["eval", "RUN", "--data", "RUN/latest", "--stride", "99"], "stride is 99"),
    (["info", "missing"], "there is no run missing"),
    (["info", "not there"], '`byhand train --out "not there"`'),
    (["plot", "missing"], "there is no run missing"),
    (["trian"], "Did you mean train"),
    *((["import", run, "--out", "x"], "is byhand's own. Use it directly") for run in ("RUN", "RUN/step-00000004")),
    (
        ["tokenizer"],
        "byhand tokenizer needs one of train, encode, decode, inspect, convert. See byhand tokenizer --help.",
    ),
    (["bench"], "byhand bench needs one of train, generate. See byhand bench --help."),
]
READERS = [
    ["sample", "RUN"], ["eval", "RUN", "--data", "RUN"], ["info", "RUN"], ["plot", "RUN"], ["explain", "RUN", "loss"],
    ["export", "RUN", "--to", "hf", "--out", "x"], ["train", "--resume", "RUN"], ["train", "--init-from", "RUN"],
]  # fmt: skip
BAD += [
    ([a.replace("RUN", "RUN/latest") for a in reader], "latest is a file, not a run. Give the folder that `byhand")
    for reader in READERS
]


@pytest.mark.parametrize(("arguments", "expected"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line(run, arguments, expected):
    line = error_line(byhand(*(a.replace("RUN", str(run)) for a in arguments)))
    assert expected in line


def test_a_temperature_too_small_to_divide_by_is_greedy(run):
    arguments = ["--prompt", "the", "--max-new-tokens", 20]
    assert sample(run, *arguments, "--temperature", "1e-300") == sample(run, *arguments, "--temperature", 0)


def test_a_vocabulary_beyond_bytes_still_writes_bytes(run, tmp_path):
    wide = byhand(
        "train", *TINY, "--vocab-size", 400, "--data", run.parent / "text.txt", "--out", "wide", cwd=tmp_path
    )
    assert wide.returncode == 0, wide.stderr
    assert sample(tmp_path / "wide", "--max-new-tokens", 200)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_streams(run, closed):
    sample = f"{sys.executable} -m byhand sample {quote(str(run))} --runtime numpy --prompt a --max-new-tokens 5"
    done = subprocess.run(
        ["sh", "-c", f"{sample} {closed}"], env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_info_of_one_checkpoint_is_of_its_step(run):
    facts = json.loads(byhand("info", ".", "--json", cwd=run / "step-00000004").stdout)
    assert (facts["step"], set(facts["checkpoints"])) == ("4 of 6", {"step-00000004", "step-00000006"})
    assert facts["val/loss"] != json.loads(byhand("info", run, "--json").stdout)["val/loss"]
