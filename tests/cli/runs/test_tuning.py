"""A model is tuned on windows shorter than its context, which stays; what a run takes is known before it begins."""

import json
from dataclasses import replace

import pytest

import byhand as bh
from byhand.budget import probe
from byhand.cli.runs import cost
from byhand.runs import checkpoint
from cli.inside import byhand
from cli.process import error_line, write_text

MODEL = bh.ModelConfig(seq_len=2048, d_model=16, n_heads=2, positions="rotary")
TRAIN = ("train", "--init-from", "base", "--steps", 2, "--batch-size", 2, "--eval-windows", 2, "--runtime", "numpy")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model of a long context, a text, and conversations of at most 73 bytes."""
    place = tmp_path_factory.mktemp("tuning")
    arrays = {name: p.data for name, p in bh.TinyGPT(MODEL).parameters().items()}
    config = bh.TrainConfig(model=MODEL, steps=1, runtime="numpy")
    checkpoint.save(
        place / "base", checkpoint.Checkpoint(config, arrays, {}, {"step": 0, "text": {}, "imported": {}})
    )
    (place / "base/run.json").write_text("{}")
    write_text(place / "text.txt", 30000)
    turns = [[{"role": "user", "content": "say"}, {"role": "assistant", "content": "a" * n}] for n in range(20, 50)]
    (place / "c.jsonl").write_text("".join(json.dumps({"messages": each}) + "\n" for each in turns))
    return place


def trained(place, out, *flags):
    done = byhand(*TRAIN, *flags, "--out", out, cwd=place)
    assert done.returncode == 0, done.stderr
    return checkpoint.load(place / out).config, done.stderr.decode()


def test_the_window_is_what_the_text_needs_and_the_context_stays(place):
    config, said = trained(place, "on-text", "--data", "text.txt")
    assert (config.model.seq_len, config.window, config.length) == (2048, 1024, 1024)
    assert "context 2048, windows of 1024" in said
    assert "of 2048 tokens" in said  # two windows a step
    config, _ = trained(place, "on-talks", "--chat", "c.jsonl")
    assert (config.model.seq_len, config.window) == (2048, 80)
    config, _ = trained(place, "asked", "--data", "text.txt", "--window", 64)
    assert (config.model.seq_len, config.window) == (2048, 64)
    config, _ = trained(place, "short", "--data", "text.txt", "--seq-len", 64)
    assert (config.model.seq_len, config.window) == (64, None)


def test_steps_read_the_text_about_three_times_unless_they_are_given(place, monkeypatch):
    """27,000 bytes for training, of 128 a step; few steps at least, and as many at most as a new run has."""
    monkeypatch.setattr(cost, "step_seconds", lambda config: 3.0)
    small = ("train", "--init-from", "base", "--batch-size", 2, "--eval-windows", 2, "--runtime", "numpy")

    def said(*flags):
        done = byhand(*small, *flags, "--dry-run", cwd=place)
        assert done.returncode == 0, done.stderr
        return done.stderr.decode(), done.stdout.decode()

    notice, figures = said("--data", "text.txt", "--window", 64)
    assert "tuning: 633 steps, about 3 passes over the training part of the text; --steps N changes it" in notice
    assert "633 steps read 81,024 tokens, the text about 3 times" in figures
    assert "with 3 evaluations" in figures
    assert "tuning: 20 steps, about 15 passes" in said("--data", "text.txt", "--window", 64, "--batch-size", 320)[0]
    assert "tuning: 2,000 steps, about 0.59 passes" in said("--data", "text.txt", "--window", 4)[0]
    assert "tuning" not in said("--data", "text.txt", "--window", 64, "--steps", 5)[0]
    done = byhand(*small, "--chat", "c.jsonl", "--lora", 2, "--eval-interval", 0, "--out", "lasts", cwd=place)
    config = checkpoint.load(place / "lasts").config
    assert f"tuning: {config.steps} steps, about 3" in done.stderr.decode()
    assert (config.steps, config.eval_interval, config.optim.warmup_steps, config.window) == (30, 0, 2, 80)


def test_conversations_beyond_the_window_lose_their_beginning_and_this_is_said(place):
    _, said = trained(place, "cut", "--chat", "c.jsonl", "--window", 60)
    assert "conversations cut at the beginning, to 61 tokens" in said


def test_a_run_of_windows_goes_on_bit_for_bit(place):
    for out, steps in (("whole", 2), ("halves", 1)):
        trained(place, out, "--chat", "c.jsonl", "--steps", steps, "--schedule", "constant", "--warmup-steps", 0)
    assert byhand("train", "--resume", "halves", "--steps", 2, cwd=place).returncode == 0
    whole, halves = (checkpoint.load(place / out) for out in ("whole", "halves"))
    assert whole.config.window == halves.config.window == 80
    assert all((array == halves.parameters[name]).all() for name, array in whole.parameters.items())


def test_a_dry_run_says_memory_time_and_tokens_and_writes_nothing(place, monkeypatch):
    monkeypatch.setattr(cost, "step_seconds", lambda config: 3.0)
    before = sorted(place.iterdir())
    for flags in (("--chat", "c.jsonl"), ("--data", "text.txt", "--window", 80)):
        done = byhand(*TRAIN, *flags, "--dry-run", "--steps", 500, "--eval-interval", 0, cwd=place)
        assert done.returncode == 0, done.stderr
        said = done.stdout.decode()
        assert "context 2048, windows of 80" in said
        assert "\nmemory: 0." in said
        assert "a step of 2 × 80 tokens takes about 3 s\n" in said
        assert "500 steps read 80,000 tokens, " in said
        assert "take about 25m 01s with 1 evaluation" in said
    assert sorted(place.iterdir()) == before


def test_a_slow_step_is_said_with_what_makes_it_a_minute(place, monkeypatch):
    monkeypatch.setattr(cost, "step_seconds", lambda config: 240.0)
    monkeypatch.setattr(cost, "WORTH", 0)
    _, said = trained(place, "slow", "--chat", "c.jsonl", "--batch-size", 4, "--grad-accum", 3)
    assert "a step of 12 × 80 tokens in 3 micro-batches of 4 takes about 4m 00s; " in said
    assert "--batch-size 3 --grad-accum 1 or a shorter --window makes it shorter" in said


def test_plan_says_what_a_run_takes(place, monkeypatch):
    monkeypatch.setattr(probe, "_timed", lambda *_: 0.5)
    done = byhand("plan", "base", cwd=place)
    assert done.returncode == 0, done.stderr
    head, memory, step, token = done.stdout.decode().splitlines()
    assert "context 2048, windows of 1024" in head
    assert memory.startswith("memory: 0.")
    assert step.startswith("a step of 12 × 1024 tokens takes about ")
    assert token.startswith("a token: 0.")


def test_blocks_count_as_the_second_of_two_and_windows_in_proportion(monkeypatch):
    """A block takes 2 s for 32 windows, the rest 1 s, and a whole vocabulary 5 s more."""
    monkeypatch.setattr(
        probe, "_timed", lambda _, layers, vocab, rows: (2 * layers + 1 + 5 * (vocab > 256)) * rows / 32
    )
    deep = bh.ModelConfig(vocab_size=4096, seq_len=64, d_model=16, n_layers=10, n_heads=2)
    config = bh.TrainConfig(model=deep, batch_size=64, grad_accum=3)
    assert probe.step_seconds(config) == pytest.approx(6 * (20 + 1 + 5))
    patterned = replace(deep, layer_pattern="wwwg", attention_window=8)
    assert probe.step_seconds(replace(config, model=patterned)) == pytest.approx(6 * (20 + 1 + 5))
    shallow = replace(config, model=replace(deep, n_layers=2))
    assert probe.step_seconds(shallow) == pytest.approx(6 * (4 + 1 + 5))


def test_a_real_estimate_is_near_a_real_step():
    config = bh.TrainConfig(model=replace(MODEL, n_layers=3), window=64, batch_size=2, runtime="numpy")
    assert 0 < probe.step_seconds(config) < 10


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--window", 4096), "window is 4096, but the model's seq_len is 2048. Use --window 2048."),
        (("--window", 0), "--window is 0, but must be at least 1"),
    ],
)
def test_what_cannot_be_is_one_line(place, flags, expected):
    assert expected in error_line(byhand(*TRAIN, "--data", "text.txt", *flags, "--out", "not", cwd=place))
    assert not (place / "not").exists()


def test_windows_of_a_new_run(place):
    line = error_line(byhand("train", "--resume", "base", "--dry-run", cwd=place))
    assert "--dry-run is for a new run on one host. `byhand plan RUN` says" in line
    new = ("train", "--data", "text.txt", "--preset", "tiny", "--steps", 1, "--window", 16, "--runtime", "numpy")
    line = error_line(byhand(*new, "--out", "new", cwd=place))
    assert "--window leaves later positions untrained" in line
    assert "--minutes trains on whole contexts" in error_line(byhand(*new[:5], *new[7:], "--minutes", 1, cwd=place))
    done = byhand(*new, "--positions", "rotary", "--out", "new", cwd=place)
    assert done.returncode == 0, done.stderr
    assert checkpoint.load(place / "new").config.length == 16
