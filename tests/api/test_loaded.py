import inspect
import subprocess
import sys

import numpy as np
import pytest

import byhand as bh
from byhand.api import loaded as room
from byhand.interop.seed_program.checkpoint import SeedCheckpoint, save
from byhand.runs.checkpoint import load
from cli.inside import byhand


def test_importing_the_package_imports_its_version_alone():
    code = "import sys, byhand; print([m for m in sys.modules if m.startswith(('byhand', 'numpy'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['byhand.version', 'byhand']"


def test_a_text_is_continued_as_the_command_does(trained):
    settings = {"max_new_tokens": 12, "temperature": 0.7, "top_k": 9, "seed": 4, "runtime": "numpy"}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    done = byhand("sample", trained.folder, "--prompt", "the ", *flags)
    said = trained.generate("the ", **settings)
    assert f"the {said}\n" == done.stdout.decode()
    assert "".join(trained.stream("the ", **settings)) == said
    assert trained.generate(b"the ", **settings) == said


def test_an_engine_is_kept_for_each_way_to_compute(trained, monkeypatch):
    loaded = bh.load(trained)
    made = []
    engine = room.Engine
    monkeypatch.setattr(room, "Engine", lambda *given, **how: made.append(how) or engine(*given, **how))
    for settings in ({}, {"seed": 2}, {"top_k": 3}, {"no_cache": True}, {}, {"no_cache": True}):
        loaded.generate("a", max_new_tokens=3, runtime="numpy", **settings)
    assert [how["cache"] for how in made] == [True, False]


def test_texts_that_are_left_or_read_by_turns_disturb_no_other(trained):
    settings = {"max_new_tokens": 8, "runtime": "numpy"}
    alone = [trained.generate(prompt, **settings) for prompt in ("the ", "fox")]
    left, one, two = trained.stream("dog", **settings), *(trained.stream(p, **settings) for p in ("the ", "fox"))
    next(left)
    said = ["", ""]
    for pieces in zip(one, two, strict=False):
        said = [before + piece for before, piece in zip(said, pieces, strict=True)]
        left.close()
    assert [said[0] + "".join(one), said[1] + "".join(two)] == alone


def test_weights_that_change_count_for_the_next_text(trained):
    loaded = bh.load(trained)
    settings = {"max_new_tokens": 9, "runtime": "numpy"}
    before = loaded.generate("the ", **settings)
    for parameter in loaded.model.parameters().values():
        parameter.data = parameter.data[::-1].copy()
    assert loaded.generate("the ", **settings) != before


def test_a_text_ends_before_a_stop_text(trained):
    settings = {"max_new_tokens": 40, "seed": 5, "runtime": "numpy", "ascii_only": True}
    whole = trained.generate("the ", **settings)
    stop = whole[10:12]
    assert trained.generate("the ", stop=stop, **settings) == whole[: whole.index(stop)]
    assert "".join(trained.stream("the ", stop=["\0", stop], **settings)) == whole[: whole.index(stop)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temprature": 1.0}, "generate has no setting 'temprature'. Did you mean temperature?"),
        ({"prompts": "x"}, "generate has no setting 'prompts'"),
        ({"temperature": -1}, "temperature is -1, but must be between 0 and 1e\\+06"),
        ({"temperature": "hot"}, "temperature is 'hot', but must be a number"),
        ({"max_new_tokens": 2.5}, "max_new_tokens is 2.5, but must be a whole number"),
        ({"runtime": "gpu"}, "runtime is 'gpu'. Use one of auto"),
        ({"ascii_only": 1}, "ascii_only is 1, but must be true or false"),
    ],
)
def test_settings_that_cannot_be_are_refused(trained, settings, said):
    with pytest.raises(bh.ByhandError, match=said):
        trained.generate("x", **settings)


def test_the_signature_has_the_settings_of_sampling():
    names = inspect.signature(bh.Loaded.generate).parameters
    assert {"prompt", "temperature", "top_k", "top_p", "seed", "max_new_tokens", "stop", "runtime"} <= names.keys()
    assert not {"prompts", "json", "streams"} & names.keys()


def test_what_is_exported_is_loaded_and_says_the_same(tmp_path, trained):
    settings = {"max_new_tokens": 20, "temperature": 0.0, "runtime": "numpy"}
    files = bh.export(trained, tmp_path / "hf")
    assert {"config.json", "model.safetensors"} <= {path.name for path in files}
    (gguf,) = bh.export(str(trained.path), str(tmp_path / "gguf"), to="gguf", dtype=None)
    for path in (tmp_path / "hf", gguf):
        other = bh.load(path)
        assert other.generate("the ", **settings) == trained.generate("the ", **settings)
        assert (other.metrics, other.loss) == ([], None)
        assert f"<{path}: " in repr(other)
    again = bh.export(bh.load(gguf), tmp_path / "again")
    assert again[-1].read_bytes() == files[-1].read_bytes()


def test_the_original_programs_file_is_read(tmp_path):
    model = bh.TinyGPT(bh.ModelConfig(seq_len=8, d_model=8), seed=3)
    save(str(tmp_path / "seed"), SeedCheckpoint(model, bh.AdamW(), 7))
    read = bh.load(tmp_path / "seed.bin")
    for name, parameter in model.parameters().items():
        np.testing.assert_array_equal(read.model.parameters()[name].data, parameter.data)
    done = byhand("import", tmp_path / "seed.bin", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "run").state["imported"] == "the original program"


QUESTION, ANSWER = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run, place: bh.load(place / "none"), "cannot read"),
        (lambda run, place: bh.load(123), "path is 123, but must be the path of a run or of a model."),
        (lambda run, place: bh.export(None, place), "path is None, but must be the path of a run or of a model."),
        (lambda run, place: bh.load(run.folder.parent), "holds 1 run. Give one of them, such as .*run."),
        (lambda run, place: run.generate(123), "the prompt is 123, but must be a text. Give a str, or bytes."),
        (lambda run, place: run.stream(["a"]), "the prompt is .*, but must be a text"),
        (lambda run, place: run.chat(123), "messages is 123, but must be a question, or a list of messages"),
        (lambda run, place: run.chat(b"a"), "messages is b'a', but must be a question"),
        (lambda run, place: run.chat([]), "there is no message, so there is nothing to answer. End with"),
        (lambda run, place: run.chat([QUESTION, ANSWER]), "the last message is from assistant, so there is nothing"),
        (lambda run, place: run.chat({"messages": [QUESTION], 1: 2}), "messages: 1 beside the messages is not read"),
        (lambda run, place: bh.export(run, None), "out is None, but must be the path of a folder"),
        (lambda run, place: run.chat(QUESTION), "messages has no list of messages"),
        (lambda run, place: run.generate("a", threads=-1), "threads is -1, but must be at least 0."),
        (lambda run, place: bh.load(run, tokenizer="bytes"), "is a run, which has its tokenizer"),
        (lambda run, place: bh.export(run, place / "x", to="onnx"), "to is 'onnx'. Use one of hf, gguf, peft"),
        (lambda run, place: bh.export(run, place / "x", dtype="q8_0"), "q8_0 is for a GGUF only"),
        (lambda run, place: bh.export(run, ""), "out names no folder"),
        (lambda run, place: bh.export(run, run.folder), "holds"),
    ],
)
def test_models_and_folders_that_cannot_be_are_refused(tmp_path, trained, call, said):
    with pytest.raises(bh.ByhandError, match=said):
        call(trained, tmp_path)
