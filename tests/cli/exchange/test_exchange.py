"""`byhand import`, `byhand export` and `byhand train --init-from` as a user gives them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from byhand.config import OptimConfig, TrainConfig
from byhand.generation import Sampling, generate
from byhand.interop.hugging_face.tokens import of_folder
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.symbols import visible_bytes
from cli.inside import byhand
from cli.process import TINY, error_line, write_text
from interop import foreign_cases as foreign
from interop.run_cases import GPT2, LLAMA, parameters
from interop.tokenizer_cases import write as write_tokenizer

TEXT = "the quick brown fox"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of bytes, and one of byte pairs with a padded vocabulary, each exported in both forms."""
    folder = tmp_path_factory.mktemp("exchange")
    write_text(folder / "text.txt")
    flags = [*TINY, "--no-lm-head-bias", "--runtime", "numpy", "--data", "text.txt"]
    assert byhand("train", *flags, "--out", "bytes", cwd=folder).returncode == 0
    symbols = [*visible_bytes(), "th", "qu"]
    words = BytePairTokenizer(
        {s: i for i, s in enumerate(symbols)}, [("t", "h"), ("q", "u")], special={"<|endoftext|>": 258}
    )
    config = TrainConfig(model=replace(LLAMA, vocab_size=272))
    state = {"step": 0, "text": {}}
    checkpoint.save(folder / "pairs", Checkpoint(config, parameters(config.model), {}, state, tokenizer=words))
    for run in ("bytes", "pairs"):
        for goal in ("hf", "gguf"):
            done = byhand("export", run, "--to", goal, "--out", f"{run}-{goal}", cwd=folder)
            assert done.returncode == 0, done.stderr.decode()
    return folder


def sampled(place, run, **flags):
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", value)]
    done = byhand("sample", run, "--prompt", TEXT, "--max-new-tokens", 12, "--runtime", "numpy", *words, cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_a_model_of_another_program_is_sampled_as_it_is(place):
    for path in ("pairs-hf", "pairs-hf/model.safetensors", "pairs-gguf", "pairs-gguf/model.gguf"):
        assert sampled(place, path) == sampled(place, "pairs")


@pytest.mark.parametrize("goal", ["hf", "gguf"])
@pytest.mark.parametrize("run", ["bytes", "pairs"])
def test_a_run_that_went_out_and_came_back_writes_the_same_text(place, run, goal, tmp_path):
    path = place / f"{run}-{goal}"
    done = byhand("import", path, "--out", tmp_path / "again", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Try: byhand sample" in done.stdout
    again = byhand("import", path, "--out", tmp_path / "again", cwd=place)
    assert b"again holds a run already. Choose another folder with --out; `byhand info " in again.stderr
    assert sampled(place, tmp_path / "again", temperature=0) == sampled(place, run, temperature=0)
    assert sampled(place, tmp_path / "again", temperature=5) == sampled(place, run, temperature=5)
    before, after = checkpoint.load(place / run), checkpoint.load(tmp_path / "again")
    assert after.tokenizer.ids_digest == before.tokenizer.digest
    assert all(np.array_equal(after.parameters[name], array) for name, array in before.parameters.items())
    facts = json.loads(byhand("info", tmp_path / "again", "--json", cwd=place).stdout)
    assert facts["imported"].endswith("gpt2" if run == "bytes" else "llama")
    assert facts["model"]["d_ff"] == after.config.model.ff_width
    if goal == "hf":
        folder = shutil.copytree(path, tmp_path / "chats")
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        assert b"Try: byhand chat" in byhand("import", folder, "--out", tmp_path / "chat", cwd=place).stdout


def test_an_imported_run_is_evaluated_explained_and_tuned(place, tmp_path):
    run = tmp_path / "run"
    assert byhand("import", place / "bytes-hf", "--out", run, cwd=place).returncode == 0
    losses = [
        byhand("eval", of, "--data", "text.txt", "--runtime", "numpy", cwd=place).stdout for of in ("bytes", run)
    ]
    assert losses[0] == losses[1]
    done = byhand("explain", run, "--prompt", TEXT[:9], "blocks.0.mlp.act[0,3,5]", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    flags = ["--steps", 4, "--runtime", "numpy", "--data", "text.txt"]
    done = byhand("train", "--init-from", run, *flags, "--seq-len", 8, "--out", tmp_path / "tuned", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    tuned, before = checkpoint.load(tmp_path / "tuned"), checkpoint.load(run)
    assert tuned.step == 4
    assert tuned.config.model == replace(before.config.model, seq_len=8)
    assert tuned.config.optim.lr == 1e-4
    moved = np.abs(tuned.parameters["wpe"] - before.parameters["wpe"][:8]).max()
    assert 0 < moved < 1e-3
    error = error_line(byhand("train", "--resume", run, "--data", "text.txt", cwd=place))
    assert f"{run} was imported, not trained. Tune it with `byhand train --init-from {run}`." in error


def test_adapters_are_tuned_resumed_sampled_and_exported(place, tmp_path):
    flags = ["--lora", 2, "--steps", 4, "--save-interval", 2, "--runtime", "numpy", "--data", "text.txt"]
    done = byhand("train", "--init-from", "bytes", *flags, "--out", tmp_path / "run", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    assert b", of which 512 are trained" in done.stderr
    tuned, before = checkpoint.load(tmp_path / "run"), checkpoint.load(place / "bytes")
    assert tuned.config.optim.lr == 1e-3
    for name, array in before.parameters.items():
        np.testing.assert_array_equal(tuned.parameters[name], array)
    assert json.loads(byhand("info", tmp_path / "run", "--json", cwd=place).stdout)["trained"] == 512
    assert byhand("train", "--resume", tmp_path / "run", "--steps", 5, cwd=place).returncode == 0
    for goal in ("hf", "peft"):
        assert byhand("export", tmp_path / "run", "--to", goal, "--out", tmp_path / goal, cwd=place).returncode == 0
    assert byhand("import", tmp_path / "hf", "--out", tmp_path / "a", cwd=place).returncode == 0
    done = byhand("import", tmp_path / "peft", "--base", "bytes-hf", "--out", tmp_path / "b", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    texts = [sampled(place, tmp_path / run, temperature=0) for run in ("run", "a", "b")]
    assert texts[1:] == texts[:1] * 2
    again = ["--lora", 2, "--lora-on", "lm_head.w", *flags[2:], "--out", tmp_path / "again"]
    assert byhand("train", "--init-from", tmp_path / "run", *again, cwd=place).returncode == 0
    merged = checkpoint.load(tmp_path / "a").parameters["blocks.0.mlp.w_fc"]
    np.testing.assert_array_equal(checkpoint.load(tmp_path / "again").parameters["blocks.0.mlp.w_fc"], merged)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--lora", 2], "--lora trains adapters of a model that is trained already. Add --init-from RUN."),
        (
            ["--lora", 2, "--init-from", "bytes", "--lora-on", "wte"],
            "lora_on names 'wte', but the matrices are attn.",
        ),
        (["--lora", -1, "--init-from", "bytes"], "--lora is -1, but must be at least 0"),
        (["--lora", 2, "--lora-alpha", 0, "--init-from", "bytes"], "--lora-alpha is 0, but must be above 0"),
        (["--lora-alpha", 4, "--init-from", "bytes"], "--lora-alpha changes nothing without --lora 8."),
        (
            ["--lora", 2, "--init-from", "bytes", "--ema", 0.9],
            "--ema averages all weights, but with --lora most are frozen. Use only one of them.",
        ),
        (["--lora", 2, "--resume", "bytes"], "--lora cannot change a run that is resumed"),
    ],
)
def test_adapters_that_cannot_be_are_refused(place, flags, words, tmp_path):
    out = [] if "--resume" in flags else ["--out", tmp_path / "x"]
    assert words in error_line(byhand("train", *flags, "--data", "text.txt", *out, cwd=place))
    assert not (tmp_path / "x").exists()


def test_tuning_keeps_the_tokenizer_and_does_not_begin_at_random(place, tmp_path):
    flags = ["--steps", 1, "--lr", "1e-9", "--runtime", "numpy", "--data", "text.txt", "--out", tmp_path / "tuned"]
    done = byhand("train", "--init-from", "pairs", *flags, "--eval-windows", 4, "--batch-size", 2, cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    tuned, before = checkpoint.load(tmp_path / "tuned"), checkpoint.load(place / "pairs")
    assert tuned.tokenizer.content == before.tokenizer.content
    for name, array in before.parameters.items():
        np.testing.assert_allclose(tuned.parameters[name], array, atol=1e-7)
    more = ["--runtime", "numpy", "--steps", 2]
    assert byhand("train", "--init-from", tmp_path / "tuned", *more, "--data", "text.txt", cwd=place).returncode == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--d-model", 32],
            "--d-model cannot change the model of bytes. Leave it out, or train without",
        ),
        (["--seq-len", 17], "the model of bytes knows 16 positions. Use --seq-len 16 or less."),
        (["--tokenizer", "pairs-hf"], "bytes has a tokenizer. Leave out --tokenizer"),
        (["--minutes", 1], "--init-from trains on one host, for a number of --steps"),
        (["--resume", "bytes"], "--init-from cannot change a run that is resumed"),
    ],
)
def test_what_tuning_cannot_do_is_said(place, flags, words, tmp_path):
    done = byhand("train", "--init-from", "bytes", *flags, "--data", "text.txt", "--out", tmp_path / "x", cwd=place)
    assert words in error_line(done)
    assert not (tmp_path / "x").exists()


def test_quantised_files_come_back_as_float32(place, tmp_path):
    sizes = []
    for dtype in ("f32", "F16", "q8_0", "q4_0"):
        out = tmp_path / dtype
        done = byhand("export", "pairs", "--to", "gguf", "--out", out, "--dtype", dtype, cwd=place)
        assert done.returncode == 0, done.stderr.decode()
        assert byhand("import", out / "model.gguf", "--out", tmp_path / f"{dtype}-run", cwd=place).returncode == 0
        sampled(place, tmp_path / f"{dtype}-run")
        sizes.append((out / "model.gguf").stat().st_size)
    like = ["--like", out / "model.gguf", "--out", tmp_path / "again"]
    done = byhand("export", tmp_path / "q4_0-run", "--to", "gguf", *like, cwd=place)
    assert b"tensors keep their bytes from" in done.stderr
    written = (tmp_path / "again" / "model.gguf").read_bytes()
    assert written.endswith((out / "model.gguf").read_bytes()[-4096:])  # the keys say more of the tokenizer
    assert sizes == sorted(set(sizes), reverse=True)


def test_a_tokenizer_is_asked_for_where_there_is_none(place, tmp_path):
    config = foreign.settings("llama", 0) | {"vocab_size": 272}
    foreign.write_folder(tmp_path / "in", config, foreign.drawn(foreign.shapes(config)))
    out = ["--out", tmp_path / "run"]
    error = error_line(byhand("import", tmp_path / "in", *out, cwd=place))
    assert "has no tokenizer for its 272 tokens. Name one with --tokenizer" in error
    for named, kind in (("bytes", "byte"), ("pairs-hf", "bpe"), ("pairs-hf/tokenizer.json", "bpe")):
        run = tmp_path / named.replace("/", "-")
        done = byhand("import", tmp_path / "in", "--out", run, "--tokenizer", named, cwd=place)
        assert done.returncode == 0, done.stderr.decode()
        assert checkpoint.load(run).tokenizer.kind == kind
    error = error_line(byhand("import", tmp_path / "in", *out, "--tokenizer", tmp_path, cwd=place))
    assert "has no tokenizer.json, and no vocab.json with merges.txt" in error
    config = foreign.settings("llama", 0) | {"vocab_size": 200}
    foreign.write_folder(tmp_path / "small", config, foreign.drawn(foreign.shapes(config)))
    error = error_line(byhand("import", tmp_path / "small", *out, "--tokenizer", "pairs-hf", cwd=place))
    assert "the bpe tokenizer has 259 tokens, but the model's vocab_size is 200" in error
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_written_is_refused_before_anything_is(place, tmp_path):
    flags = [*TINY, "--runtime", "numpy", "--steps", 1, "--data", "text.txt", "--out", tmp_path / "biased"]
    done = byhand("train", *flags, cwd=place)
    assert done.returncode == 0
    for goal, name in (("hf", "transformers"), ("gguf", "GGUF")):
        done = byhand("export", tmp_path / "biased", "--to", goal, "--out", tmp_path / "out", cwd=place)
        assert f"{name} cannot store this model: lm_head_bias is true" in (error := error_line(done))
        assert "Train a model with --no-lm-head-bias." in error
    assert not (tmp_path / "out").exists()
    done = byhand("export", "bytes", "--to", "hf", "--out", tmp_path / "out", "--dtype", "q8_0", cwd=place)
    assert "q8_0 is for a GGUF only. Use --to gguf, or --dtype float32, float16 or bfloat16." in error_line(done)
    assert "--out names no folder" in error_line(byhand("export", "bytes", "--to", "hf", "--out", "", cwd=place))


def test_a_folder_of_the_user_is_left_as_it_is(place, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    error = error_line(byhand("import", "bytes-hf", "--out", tmp_path, cwd=place))
    assert "holds 'mine.txt' and is not a run of byhand" in error
    assert "holds 'mine.txt'. Choose a new" in error_line(
        byhand("export", "bytes", "--to", "gguf", "--out", tmp_path, cwd=place)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing", None, "cannot read"),
        ("text", b"hello", "is neither a GGUF nor a checkpoint of llm.c, llama2.c or nanoGPT"),
        ("empty", b"", "is neither a GGUF nor a checkpoint of llm.c, llama2.c or nanoGPT"),
    ],
)
def test_what_is_no_model_is_said(place, name, content, words, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert words in error_line(byhand("import", tmp_path / name, "--out", tmp_path / "run", cwd=place))


def test_averaged_weights_go_out_and_are_tuned(place, tmp_path):
    flags = [*TINY, "--no-lm-head-bias", "--ema", 0.9, "--runtime", "numpy", "--data", "text.txt", "--out"]
    assert byhand("train", *flags, tmp_path / "run", cwd=place).returncode == 0
    due = checkpoint.load(tmp_path / "run")
    assert not np.array_equal(due.averages["wte"], due.parameters["wte"])
    assert byhand("export", tmp_path / "run", "--to", "hf", "--out", tmp_path / "hf", cwd=place).returncode == 0
    assert byhand("import", tmp_path / "hf", "--out", tmp_path / "again", cwd=place).returncode == 0
    assert np.array_equal(checkpoint.load(tmp_path / "again").parameters["wte"], due.averages["wte"])
    more = ["--steps", 1, "--lr", "1e-9", "--runtime", "numpy", "--data", "text.txt", "--out", tmp_path / "tuned"]
    assert byhand("train", "--init-from", tmp_path / "run", *more, cwd=place).returncode == 0
    np.testing.assert_allclose(checkpoint.load(tmp_path / "tuned").parameters["wte"], due.averages["wte"], atol=1e-7)


def test_float64_goes_out_as_float32(place, tmp_path):
    arrays = {name: array.astype("float64") for name, array in parameters(GPT2).items()}
    config = TrainConfig(model=GPT2, dtype="float64")
    checkpoint.save(tmp_path / "run", Checkpoint(config, arrays, {}, {"step": 0, "text": {}}))
    for goal in ("hf", "gguf"):
        assert byhand("export", tmp_path / "run", "--to", goal, "--out", tmp_path / goal, cwd=place).returncode == 0
        again = tmp_path / f"{goal}-run"
        assert byhand("import", tmp_path / goal, "--out", again, cwd=place).returncode == 0
        assert np.array_equal(checkpoint.load(again).parameters["wte"], arrays["wte"].astype("float32"))


def test_a_text_ends_at_the_token_that_stop_names(place):
    flags = ["--prompt", TEXT, "--max-new-tokens", 900, "--runtime", "numpy", "--temperature", 9]
    whole = byhand("sample", "pairs", *flags, cwd=place).stdout
    assert whole.count(b"<|endoftext|>") > 0
    ended = byhand("sample", "pairs", *flags, "--stop", "<|endoftext|>", cwd=place)
    assert ended.stdout == whole.partition(b"<|endoftext|>")[0] + b"\n"
    told = json.loads(byhand("sample", "pairs", *flags, "--stop", "<|endoftext|>", "--json", cwd=place).stdout)
    assert TEXT + told["text"] == ended.stdout.decode()[:-1]


def test_texts_begin_and_end_as_the_model_was_trained(tmp_path):
    """Its end tokens end a text unless it is told otherwise; a prompt, and each document, begins with its BOS."""
    write_tokenizer("several ends", tmp_path / "in", 2)
    done = byhand("import", "in", "--out", "run", cwd=tmp_path)
    assert b"tokens: bpe; begins with <a>; ends at <b>, <c>, <d>" in done.stderr
    flags = ["--temperature", 0, "--max-new-tokens", 20, "--runtime", "numpy", "--json"]
    ended, whole = (
        json.loads(byhand("sample", "run", "--prompt", "hello", *flags, *more, cwd=tmp_path).stdout)["text"]
        for more in ([], ["--ignore-eos"])
    )
    cut = min(whole.index(end) for end in ("<b>", "<c>", "<d>") if end in whole)
    assert ended == whole[:cut] != ""
    (tmp_path / "prompts").write_text('{"prompt": ""}\n{"prompt": "hello"}\n')
    found = byhand("sample", "run", "--prompts", "prompts", *flags[:-1], cwd=tmp_path).stdout.splitlines()
    loaded = checkpoint.load(tmp_path / "run")
    model, (bos,) = loaded.model(), loaded.tokenizer.encode("<a>")
    due = generate(model, [bos], 20, Sampling(temperature=0.0), stop=loaded.ends, runtime="numpy")
    assert [json.loads(line)["text"] for line in found] == [
        loaded.tokenizer.decode(due).decode(errors="replace"),
        ended,
    ]
    for name in "xy":
        (tmp_path / name).write_text(f"hello the {name}")
    asked = ["--data", "x", "--json", "--runtime", "numpy"]
    assert json.loads(byhand("eval", "run", *asked, cwd=tmp_path).stdout)["bytes"] == len("hello the x")
    flags = ["--data", "x", "y", "--steps", 1, "--seq-len", 4, "--val-fraction", 0.5, "--runtime", "numpy"]
    assert byhand("train", "--init-from", "run", *flags, "--out", "tuned", cwd=tmp_path).returncode == 0
    assert byhand("export", "tuned", "--to", "hf", "--out", "out", cwd=tmp_path).returncode == 0
    assert of_folder(tmp_path / "out").content == loaded.tokenizer.content


def test_tuning_makes_every_rate_as_much_smaller_as_the_first(place, tmp_path):
    flags = ["--optimizer", "muon", "--steps", 1, "--runtime", "numpy", "--data", "text.txt", "--batch-size", 2]
    done = byhand("train", "--init-from", "bytes", *flags, "--out", tmp_path / "tuned", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    usual, optim = OptimConfig(), checkpoint.load(tmp_path / "tuned").config.optim
    assert (optim.lr, optim.muon_lr) == pytest.approx((1e-4, usual.muon_lr * 1e-4 / usual.lr))
    more = ["--muon-lr", 0.01, "--lr", 3e-4, "--min-lr", 0, "--out", tmp_path / "chosen"]
    assert byhand("train", "--init-from", "bytes", *flags, *more, "--vector-lr", 1e-3, cwd=place).returncode == 0
    chosen = checkpoint.load(tmp_path / "chosen").config.optim
    assert (chosen.lr, chosen.min_lr, chosen.muon_lr, chosen.vector_lr) == (3e-4, 0, 0.01, 1e-3)
    plain = ["--steps", 1, "--runtime", "numpy", "--data", "text.txt", "--out", tmp_path / "plain"]
    assert byhand("train", "--init-from", "bytes", *plain, cwd=place).returncode == 0
    assert checkpoint.load(tmp_path / "plain").config.optim.muon_lr == usual.muon_lr
    error = error_line(byhand("train", "--init-from", "bytes", "--preset", "gpt2", *flags, cwd=place))
    assert "--preset gpt2 names a model, and --init-from another" in error


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--rope-base", 5], "--rope-base changes nothing without --positions rotary."),
        (["--muon-lr", 0.1], "--muon-lr changes nothing without --optimizer muon."),
        (["--head-lr", 0.1, "--tied-embeddings"], "--head-lr changes nothing without --no-tied-embeddings."),
        (["--no-final-norm", "--norm-position", "post"], "--no-final-norm changes nothing without --norm-position "),
    ],
)
def test_flags_without_effect_are_refused(flags, words, place, tmp_path):
    assert words in error_line(
        byhand("train", *TINY, *flags, "--data", "text.txt", "--out", tmp_path / "x", cwd=place)
    )


def test_a_number_of_averaged_weights_is_explained_as_it_is_used(place, tmp_path):
    flags = [*TINY, "--ema", 0.9, "--runtime", "numpy", "--data", "text.txt", "--out", tmp_path / "run"]
    assert byhand("train", *flags, cwd=place).returncode == 0
    found = checkpoint.load(tmp_path / "run")
    for more, arrays in (([], found.averages), (["--last"], found.parameters)):
        done = byhand("explain", tmp_path / "run", "wte[116,2]", "--json", *more, cwd=place)
        assert json.loads(done.stdout)["value"] == pytest.approx(float(arrays["wte"][116, 2]), rel=1e-6)
    assert b"weights averaged" in byhand("explain", tmp_path / "run", "wte[116,2]", cwd=place).stderr
    assert b"weights of the last step" in byhand("explain", tmp_path / "run", "d wte[116,2]", cwd=place).stderr


def test_a_tied_head_has_its_name(place, tmp_path):
    flags = [*TINY, "--tied-embeddings", "--runtime", "numpy", "--data", "text.txt", "--out", tmp_path / "run"]
    assert byhand("train", *flags, cwd=place).returncode == 0
    done = byhand("explain", tmp_path / "run", "lm_head.w[3,5]", "--prompt", "the", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    assert b"transpose" in done.stdout
    assert "wte[5,3]" in done.stdout.decode()


def test_a_packaged_model_is_one_for_every_command(place, tmp_path, monkeypatch):
    monkeypatch.setattr("byhand.interop.packaged.KNOWN", {"toy": ("pairs-gguf", "toy-pairs")})
    monkeypatch.syspath_prepend(place)

    def said(*words):
        done = byhand(*words, cwd=place)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    said("import", "toy", "--out", tmp_path / "run")
    for words in (["eval", "--data", "text.txt", "--runtime", "numpy"], ["explain", "logits[0,0,1]"]):
        assert said(words[0], "toy", *words[1:]) == said(words[0], tmp_path / "run", *words[1:])
    ours, theirs = (json.loads(said("info", of, "--json")) for of in (tmp_path / "run", "toy"))
    assert {key: ours[key] for key in ours if key != "checkpoints"} == theirs | {"run": ours["run"]}
    for of, out in (("toy", "named"), (tmp_path / "run", "imported")):
        said("export", of, "--to", "gguf", "--out", tmp_path / out)
    named, imported = (tmp_path / out / "model.gguf" for out in ("named", "imported"))
    assert named.read_bytes() == imported.read_bytes()
    assert b"a token: " in said("plan", "toy")
    tuned = []
    for start in ("toy", tmp_path / "run"):
        flags = [
            "--steps",
            2,
            "--runtime",
            "numpy",
            "--data",
            "text.txt",
            "--out",
            out := tmp_path / f"from-{len(tuned)}",
        ]
        said("train", "--init-from", start, *flags)
        tuned.append(checkpoint.load(out).parameters["wte"])
    np.testing.assert_array_equal(*tuned)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "--resume", "bytes-hf"], "Make a run of it with `byhand import bytes-hf --out runs/bytes-hf`"),
        (["plot", "bytes-gguf"], "`byhand import bytes-gguf --out runs/bytes-gguf`"),
        (["plot", "bytes-gguf/model.gguf"], "`byhand import bytes-gguf/model.gguf --out runs/model`"),
        (["plot", "bytes-hf/model.safetensors"], "`byhand import bytes-hf --out runs/bytes-hf`"),
        (["train", "text.txt"], "unexpected argument 'text.txt'. Use --data text.txt. See byhand train --help."),
        (["import", "someone/a-model", "--out", "x"], "`hf download someone/a-model --local-dir a-model`"),
        (["import", "someone", "--out", "x"], "cannot read someone: No such file"),
        (["import", "https://a.b/c", "--out", "x"], "'https://a.b/c' is an address, and byhand downloads nothing."),
        (["train", "--data", "https://a.b/c"], "https://a.b/c is an address, and byhand downloads nothing."),
        (["train", "--device", "cuda"], "there is no option '--device'. Use --runtime xla"),
        (["train", "--epochs=3"], "there is no option '--epochs'. Use --minutes M, or --steps N."),
        (["where", "--device", "cuda", "x"], "there is no option '--device'. See"),
        (["generate"], "there is no command 'generate'. Did you mean sample?"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_refused_with_the_command_that_helps(words, told, place):
    assert told in error_line(byhand(*words, cwd=place))
    assert not (place / "x").exists()
