"""A checkpoint is whole or absent, and nothing is read without a manifest that verifies."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as write_safetensors

from byhand.config import ModelConfig, TrainConfig, to_dict
from byhand.errors import ByhandError, CheckpointError, DataError
from byhand.files import run_folder, sealed, writing
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.runs import checkpoint, metrics, stored
from byhand.runs.contents import FILES, OPTIMIZER, STATE, TOKENIZER, part_name
from byhand.runs.run import resume
from byhand.runs.trainer import Progress
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from files.test_writing import killed
from runs.saving import CONFIG, example, expect, expect_refused, parts_of, reseal, save, saved_at

SYMBOLS = [*"abcdefghi", "ab", "abc"]
BPE = BytePairTokenizer({symbol: i for i, symbol in enumerate(SYMBOLS)}, [("a", "b"), ("ab", "c")])


EACH = pytest.mark.parametrize("hosts", [1, 2, 3])


@EACH
def test_what_was_saved_comes_back(tmp_path, hosts):
    path = saved_at(tmp_path, 7, hosts)
    assert path.name == "step-00000007"
    assert {*os.listdir(path)} == {"config.json", STATE, MANIFEST, *parts_of(hosts)}
    assert (tmp_path / "latest").read_text() == "step-00000007\n"
    assert run_folder.is_checkpoint(path)
    assert run_folder.is_run(tmp_path)
    loaded = checkpoint.load(tmp_path)
    expect(loaded, example(7))
    assert loaded.path == path
    alone = checkpoint.load(tmp_path, moments=False)
    assert alone.moments == {}
    expect(replace(alone, moments=example(7).moments), example(7))


@EACH
def test_before_the_first_update_there_are_no_moments(tmp_path, hosts):
    save(tmp_path, replace(example(), moments={}, state={"step": 0, "text": {}}), hosts)
    loaded = checkpoint.load(tmp_path)
    assert loaded.step == 0
    assert not any(loaded.moments.values())


def test_transposed_views_are_stored_as_they_read(tmp_path):
    saved = example()
    wte = np.asfortranarray(saved.parameters["wte"])
    assert not wte.flags.c_contiguous
    saved.parameters = {**saved.parameters, "wte": wte}
    checkpoint.save(tmp_path, saved)
    np.testing.assert_array_equal(checkpoint.load(tmp_path).parameters["wte"], wte)


@EACH
def test_older_checkpoints_go_only_after_a_newer_one_is_safe(tmp_path, hosts):
    for step in range(1, 6):
        saved_at(tmp_path, step, hosts)
    assert sorted(os.listdir(tmp_path)) == ["latest", "step-00000004", "step-00000005"]


def test_saving_after_falling_back_keeps_the_new_one(tmp_path):
    """A damaged newer checkpoint must not push out the one just written."""
    for step in (1, 9):
        checkpoint.save(tmp_path, example(step))
    (tmp_path / "step-00000009" / FILES[0]).write_bytes(b"")
    checkpoint.save(tmp_path, example(2), keep=1)
    assert checkpoint.load(tmp_path).step == 2


@EACH
def test_a_damaged_checkpoint_of_the_same_step_is_written_anew(tmp_path, hosts):
    """Also by another number of hosts."""
    for count in (hosts, 2):
        path = saved_at(tmp_path, 3, hosts)
        (path / parts_of(hosts)[-1]).write_bytes(b"short")
        saved_at(tmp_path, 3, count)
        assert {*parts_of(count)} == {name for name in os.listdir(path) if name.endswith(".safetensors")}
        expect(checkpoint.load(tmp_path), example(3))
        shutil.rmtree(path)


@EACH
def test_the_same_step_is_saved_once_and_another_runs_is_refused(tmp_path, hosts):
    path = saved_at(tmp_path, 3, hosts)
    before = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in path.iterdir()}
    saved_at(tmp_path, 3, hosts)
    said = save(tmp_path, replace(example(4), state=example(3).state), hosts)
    assert all("step-00000003 belongs to another run" in str(error) for error in said)
    assert {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in path.iterdir()} == before
    expect(checkpoint.load(tmp_path), example(3))


def damage(path: Path, kind: str) -> None:
    name, _, what = kind.partition(":")
    content = (path / name).read_bytes()
    if what == "missing":
        (path / name).unlink()
    elif what == "truncated":
        (path / name).write_bytes(content[:-1])
    elif what == "empty":
        (path / name).write_bytes(b"")
    elif what == "altered":
        (path / name).write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])


def files_of(hosts):
    return (*parts_of(hosts), "config.json", STATE, MANIFEST, TOKENIZER)


@pytest.mark.parametrize("how", ["missing", "truncated", "empty", "altered"])
@pytest.mark.parametrize(("hosts", "name"), [(hosts, name) for hosts in (1, 2) for name in files_of(hosts)])
def test_damage_is_found_and_the_older_checkpoint_is_used(tmp_path, hosts, name, how, caplog):
    for step in (1, 2):
        (newest, *_) = save(tmp_path, replace(example(step), tokenizer=BPE), hosts)
    damage(newest, f"{name}:{how}")
    size = f"{name} has .* bytes, not"
    said = {"missing": f"is not whole: {name} is missing", "altered": f"{name} does not have the SHA-256"}
    expect_refused(tmp_path, "step-00000002" if name == MANIFEST else said.get(how, size))
    (warning,) = caplog.messages
    assert "step-00000002" in warning
    assert warning.endswith(" Going on from step-00000001.")


@pytest.mark.parametrize("hosts", [1, 2])
@given(st.integers(0, 6), st.integers(0, 10**9), st.integers(1, 255))
def test_any_changed_byte_is_found(tmp_path_factory, hosts, which, where, change):
    """Every byte of every file matters, the manifest's own too."""
    run = tmp_path_factory.mktemp("run")
    path, names = saved_at(run, 1, hosts), files_of(hosts)[:-1]
    file = path / names[which % len(names)]
    content = bytearray(file.read_bytes())
    content[where % len(content)] ^= change
    file.write_bytes(content)
    assert checkpoint.defect(path)
    shutil.rmtree(run)


def test_no_checkpoint_no_run_and_all_damaged_are_told_apart(tmp_path):
    with pytest.raises(CheckpointError, match="there is no run"):
        checkpoint.load(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        checkpoint.load(tmp_path)
    path = checkpoint.save(tmp_path, example())
    damage(path, f"{FILES[0]}:missing")
    with pytest.raises(CheckpointError, match=r"model.safetensors is missing. No older one is whole"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize(
    ("where", "bad", "words"),
    [("parameters", np.nan, "wte"), ("moments", np.inf, "moment v of wte"), ("averages", -np.inf, "the average of ")],
)
def test_what_loading_would_refuse_is_not_saved(tmp_path, where, bad, words):
    made = example(3, replace(CONFIG, optim=replace(CONFIG.optim, ema=0.5)))
    made.averages = {name: array.copy() for name, array in made.parameters.items()}
    arrays = made.moments["v"] if where == "moments" else getattr(made, where)
    arrays["wte"][:] = bad
    with pytest.raises(CheckpointError, match=f"^{words}.* holds NaN or infinity; it was not saved"):
        checkpoint.save(tmp_path, made)
    assert not any(tmp_path.glob("*"))


def test_weights_of_another_shape_are_refused(tmp_path):
    other = TrainConfig(model=ModelConfig(vocab_size=11, seq_len=8, d_model=8, n_heads=2))
    with pytest.raises(CheckpointError, match=r"model.safetensors could not be read again: wte is \(11, 4\)"):
        checkpoint.save(tmp_path, replace(example(1), config=other))
    path = checkpoint.save(tmp_path, example(1))
    rewrite(path, "config.json", sealed.as_json(to_dict(other)))
    stored.forget(path)
    with pytest.raises(CheckpointError, match=r"model.safetensors has 2,\d+ bytes, but .* its arrays alone have"):
        checkpoint.load_model(tmp_path)


@EACH
@pytest.mark.parametrize("prefix", [checkpoint.TEMPORARY, ".removing-"])
def test_what_a_kill_left_behind_is_cleared_away(tmp_path, hosts, prefix):
    left = tmp_path / f"{prefix}step-00000001"
    left.mkdir()
    for name in (FILES[0], part_name(OPTIMIZER, 6, 9)):
        (left / name).write_bytes(b"half")
    saved_at(tmp_path, 1, hosts)
    assert not left.exists()
    assert checkpoint.load(tmp_path).step == 1


def damage_silently(path: Path) -> None:
    """Change a byte, not the size."""
    damage(path, f"{OPTIMIZER}:altered")


def unreadable(path: Path, monkeypatch) -> None:
    """Refuse the file as a disk with a bad sector does; this user may be root, whom no mode keeps out."""
    real = os.open

    def refuse(opened, *arguments, **options):
        if Path(opened) == path / MODEL:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(opened))
        return real(opened, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)


def of_a_later_version(path: Path) -> None:
    content = (path / MANIFEST).read_bytes()
    (path / MANIFEST).write_bytes(content.replace(b'"version": 1', b'"version": 2'))


def with_a_later_setting(path: Path) -> None:
    config = json.loads((path / "config.json").read_bytes())
    rewrite(path, "config.json", json.dumps({**config, "of_tomorrow": 1}).encode())


def with_a_later_file(path: Path) -> None:
    (path / "experts.safetensors").write_bytes(b"of tomorrow")
    reseal(path)


def stamp(path: Path) -> tuple[int, int, int]:
    """Return what writing a file changes; reading it changes the time of access."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


UNKNOWN = {
    "read error": (unreadable, r"cannot be read: model.safetensors: Input/output error\. Make it readable, or move"),
    "version": (of_a_later_version, r"of another version of byhand: manifest.json has version 2\. Use that version"),
    "setting": (with_a_later_setting, r"of another version of byhand: .*of_tomorrow"),
    "file": (with_a_later_file, r"of another version of byhand: it holds experts.safetensors\."),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_may_be_whole_is_neither_passed_over_nor_replaced(tmp_path, monkeypatch, kind):
    harm, said = UNKNOWN[kind]
    checkpoint.save(tmp_path, example(1))
    path = checkpoint.save(tmp_path, example(2))
    harm(path, *[monkeypatch] * (harm is unreadable))
    monkeypatch.setattr(stored, "_known", set())  # as in a process that comes later
    before = {name: stamp(path / name) for name in os.listdir(path)}
    for refused in (lambda: checkpoint.load(tmp_path), lambda: checkpoint.save(tmp_path, example(2))):
        with pytest.raises(CheckpointError, match=rf"step-00000002.* {said}"):
            refused()
    assert {name: stamp(path / name) for name in os.listdir(path)} == before
    path.rename(tmp_path / "away")
    assert checkpoint.load(tmp_path).step == 1


@pytest.mark.parametrize("kind", ["manifest.json:missing", "manifest.json:altered", "of another step"])
def test_what_nothing_shows_to_be_of_this_run_is_set_aside(tmp_path, kind):
    """It has the names of a checkpoint's files, and may be a model of its owner's."""
    path = checkpoint.save(tmp_path, example(2))
    if kind == "of another step":
        other = checkpoint.save(tmp_path / "other", example(3))
        shutil.rmtree(path)
        shutil.copytree(other, path)
    else:
        damage(path, kind)
    before = {name: (path / name).read_bytes() for name in os.listdir(path)}
    for name in ("damaged-step-00000002", "damaged-step-00000002-2"):
        checkpoint.save(tmp_path, example(2))
        assert not checkpoint.defect(path)
        assert {file: (tmp_path / name / file).read_bytes() for file in os.listdir(tmp_path / name)} == before
        shutil.rmtree(path)
        shutil.copytree(tmp_path / name, path)
    assert [p.name for p in run_folder.checkpoints(tmp_path)] == [path.name]


@pytest.mark.parametrize("harm", [damage_silently, lambda p: damage(p, f"{MODEL}:truncated")])
def test_damaged_ones_do_not_count_among_those_kept(tmp_path, harm):
    """With keep=2 and the last one damaged, the whole one before it must stay beside the new one."""
    checkpoint.save(tmp_path, example(1))
    harm(checkpoint.save(tmp_path, example(2)))
    checkpoint.save(tmp_path, example(3), keep=2)
    assert not checkpoint.defect(tmp_path / "step-00000001")
    checkpoint.save(tmp_path, example(4), keep=2)
    whole = [p.name for p in sorted(tmp_path.glob("step-*")) if not checkpoint.defect(p)]
    assert whole == ["step-00000003", "step-00000004"]
    # the damaged one is older than both, and so gone
    assert sorted(p.name for p in tmp_path.glob("step-*")) == whole


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_what_is_removed_is_byhands_own(tmp_path):
    """Checkpoints with a file of the owner's in them, links, and names that are nearly byhand's stay."""
    elsewhere = checkpoint.save(tmp_path / "elsewhere", example(2))
    run = tmp_path / "run"
    mine = checkpoint.save(run, example(1))
    (mine / "notes").write_text("mine")
    (run / elsewhere.name).symlink_to(elsewhere)
    kept = [mine / "notes"]
    for name in (".writing-novel", ".writing-step-1", ".removing-step-00000001", ".writing-step-00000009", "step-7"):
        (run / name).mkdir()
        (run / name / "chapter").write_text("mine")
        kept.append(run / name / "chapter")
    (run / "latest").write_text("mine")
    for step in (5, 6, 7):
        checkpoint.save(run, example(step), keep=1)
    assert all(path.read_text() == "mine" for path in [*kept, run / "latest"])
    assert not checkpoint.defect(elsewhere)
    assert (run / elsewhere.name).is_symlink()
    assert not checkpoint.defect(run / "step-00000007")
    assert not (run / "step-00000006").exists()


@EACH
def test_a_failure_before_anything_is_written_is_told_by_all(tmp_path, hosts):
    saved_at(tmp_path, 1, hosts)
    (tmp_path / "step-00000002").write_text("mine")
    said = save(tmp_path, example(2), hosts)
    assert re.search(r"step-00000002 blocks a checkpoint.*then resume", str(said[0]))
    assert [str(error) for error in said[1:]] == [f"host 0: {said[0]}"] * (hosts - 1)
    for text in ({"path": float("nan")}, {"path": object()}, {"a": 10**500}, {"path": "x" * (1 << 21)}):
        said = save(tmp_path, replace(example(), state={"step": 4, "text": text}), hosts)
        assert "the trainer's state" in str(said[0])
        assert [str(error) for error in said[1:]] == [f"host 0: {said[0]}"] * (hosts - 1)
    assert sorted(os.listdir(tmp_path)) == ["latest", "step-00000001", "step-00000002"]
    assert (tmp_path / "step-00000002").read_text() == "mine"


def test_a_kill_while_the_last_checkpoint_is_saved_leaves_nothing_behind(tmp_path):
    """Resuming the run removes it, even if there is nothing left to train."""
    config = replace(CONFIG, steps=2, keep=1)
    for at in range(100):
        run = tmp_path / str(at)
        checkpoint.save(run, example(1, config), keep=1)
        was_killed = killed(at, lambda: checkpoint.save(run, example(2, config), keep=1))  # noqa: B023 (called at once)
        if checkpoint.load(run).step == 2:
            with resume(run, {}) as again:
                assert again.text is None
        else:
            checkpoint.save(run, example(2, config), keep=1)
        assert set(os.listdir(run)) - {"lock"} == {"step-00000002", "latest"}
        assert (run / "latest").read_text() == "step-00000002\n"
        if not was_killed:
            break
    assert at > 15


def test_metrics_are_durable_before_the_checkpoint_that_has_passed_them(tmp_path, monkeypatch):
    calls, synced, renamed = [], os.fsync, os.rename

    def sync(descriptor):
        calls.append(os.fstat(descriptor).st_ino)
        synced(descriptor)

    def rename(old, new):
        calls.append(Path(new).name)
        renamed(old, new)

    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n')
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", rename)
    checkpoint.save(tmp_path, example(1))
    assert calls.index((tmp_path / "metrics.jsonl").stat().st_ino) < calls.index("step-00000001")


@pytest.mark.parametrize("done", range(6))
def test_a_kill_while_pruning_leaves_nothing_behind(tmp_path, monkeypatch, done, caplog):
    """The process ends after some of the removals: the next save removes the rest."""
    checkpoint.save(tmp_path, example(1))

    class Killed(BaseException):
        pass

    left = done

    def unlink_until_killed(path, missing_ok=False, unlink=Path.unlink):
        nonlocal left
        if ".removing-" in str(path):
            if not left:
                raise Killed
            left -= 1
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_until_killed)
    if done < 5:
        with pytest.raises(Killed):
            checkpoint.save(tmp_path, example(2), keep=1)
    else:  # all five files are gone, the folder is not
        monkeypatch.setattr(Path, "rmdir", lambda path: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            checkpoint.save(tmp_path, example(2), keep=1)
    monkeypatch.undo()
    assert checkpoint.load(tmp_path).step == 2
    assert not caplog.messages
    checkpoint.save(tmp_path, example(3), keep=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest", "step-00000003"]


def test_what_this_process_wrote_is_not_read_again_to_prune(tmp_path, monkeypatch):
    """Saving costs no second reading of what is kept."""
    for step in range(1, 4):
        checkpoint.save(tmp_path, example(step), keep=2)
        monkeypatch.setattr(stored, "read", lambda *_: pytest.fail("it was read"))


def fail_to_write(monkeypatch, name):
    def create(path, content, create=checkpoint.write_new):
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        create(path, content)

    monkeypatch.setattr(checkpoint, "write_new", create)


@pytest.mark.parametrize("older", [True, False])
@pytest.mark.parametrize(("hosts", "name"), [(hosts, name) for hosts in (1, 2) for name in files_of(hosts)[:-1]])
def test_a_full_disk_is_told_by_all_and_leaves_what_was_there(tmp_path, monkeypatch, hosts, name, older):
    if older:
        saved_at(tmp_path, 1, hosts)
    fail_to_write(monkeypatch, name)
    said, guilty = save(tmp_path, example(2), hosts), int("00002-of" in name)
    rest, again = ("step-00000001 is still whole", "resume") if older else (
        "there is no older checkpoint", "run the same command again"
    )  # fmt: skip
    line = f"cannot write {tmp_path / 'step-00000002' / name}: No space left on device; {rest}. Free some space and "
    line += again
    for index, error in enumerate(said):
        assert isinstance(error, CheckpointError if index == guilty else ByhandError)
        assert str(error).startswith(line if index == guilty else f"host {guilty}: {line}")
        assert str(error).isprintable()
    assert sorted(os.listdir(tmp_path)) == (["latest", "step-00000001"] if older else [])
    if older:
        expect(checkpoint.load(tmp_path), example(1))
    monkeypatch.undo()
    saved_at(tmp_path, 2, hosts)
    expect(checkpoint.load(tmp_path), example(2))


@pytest.mark.parametrize(
    ("number", "remedy"), [(28, "Free some space and"), (13, "Make it writable and"), (5, "Check its disk and")]
)
def test_a_line_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch, number, remedy):
    monkeypatch.setattr(writing, "_write", lambda *_: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
    progress = Progress(1, 2, 5.5, 0.1, 1.0, 32, 1000.0)
    with pytest.raises(CheckpointError, match=f"{remedy} run the same command again"):
        metrics.append(tmp_path, progress)
    monkeypatch.undo()
    checkpoint.save(tmp_path, example(1))
    monkeypatch.setattr(writing, "_write", lambda *_: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
    with pytest.raises(CheckpointError, match=f"{remedy} resume"):
        metrics.append(tmp_path, progress)


def rewrite(path: Path, name: str, content: bytes) -> None:
    """Put other content into a checkpoint whose manifest then verifies: only its parts can tell that it is wrong."""
    (path / name).write_bytes(content)
    reseal(path, FILES)


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    path = checkpoint.save(tmp_path / "a", example(5))
    other = checkpoint.save(tmp_path / "b", example(6))
    for name, said in ((STATE, "does not match its name"), (OPTIMIZER, "optimizer")):
        before = (path / name).read_bytes()
        foreign = b"{}" if name == OPTIMIZER else (other / name).read_bytes()
        if name == OPTIMIZER:
            foreign = write_safetensors({"m.wte": np.zeros((11, 4), np.float32)})
        rewrite(path, name, foreign)
        with pytest.raises(CheckpointError, match=said):
            checkpoint.load(path)
        rewrite(path, name, before)
    assert checkpoint.load(path).step == 5


def test_a_renamed_checkpoint_is_refused_and_a_copy_with_a_name_of_its_own_is_not(tmp_path):
    path = checkpoint.save(tmp_path, example(5))
    shutil.copytree(path, tmp_path / "best")
    assert checkpoint.load(tmp_path / "best").step == 5
    path.rename(tmp_path / "step-00000099")
    with pytest.raises(CheckpointError, match="does not match its name"):
        checkpoint.load(tmp_path)


def test_steps_are_ordered_as_numbers(tmp_path):
    for step in (99_999_999, 100_000_000):
        checkpoint.save(tmp_path, example(step))
    assert checkpoint.load(tmp_path).step == 100_000_000


def test_a_run_that_saves_and_prunes_can_be_read_at_any_moment(tmp_path):
    """One process saves with keep=1 as fast as it can; another must always find a whole checkpoint."""
    checkpoint.save(tmp_path / "run", example(1))
    code = (
        "import sys, itertools; from pathlib import Path; from dataclasses import replace\n"
        "from byhand.runs import checkpoint\n"
        "run, enough = map(Path, sys.argv[1:]); c = checkpoint.load(run)\n"
        "for step in itertools.takewhile(lambda _: not enough.exists(), itertools.count(2)):\n"
        "    checkpoint.save(run, replace(c, state={'step': step, 'text': {}}), keep=1)\n"
    )
    enough = tmp_path / "enough"
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run"), str(enough)])
    seen = []
    try:
        while writer.poll() is None and len(set(seen)) < 6:
            seen.append(checkpoint.load(tmp_path / "run").step)
    finally:
        enough.touch()
        writer.wait()
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) == 6


def test_a_checkpoint_of_bytes_has_the_files_it_always_had(tmp_path):
    path = checkpoint.save(tmp_path, example())
    assert {*os.listdir(path)} == {*FILES, MANIFEST}
    assert checkpoint.load(tmp_path).tokenizer is BYTES


def test_another_tokenizer_is_stored_and_goes_with_its_checkpoint(tmp_path):
    for step in (1, 2, 3):
        path = checkpoint.save(tmp_path, replace(example(step), tokenizer=BPE), keep=2)
        assert {*os.listdir(path)} == {*FILES, MANIFEST, TOKENIZER}
        assert not checkpoint.defect(path)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000002", "step-00000003"]
    for moments in (True, False):
        found = checkpoint.load(tmp_path, moments).tokenizer
        assert found.digest == BPE.digest
        assert found.encode("abcab") == [10, 9]


def test_a_file_that_the_manifest_does_not_name_is_no_tokenizer(tmp_path):
    path = checkpoint.save(tmp_path, example())
    (path / TOKENIZER).write_bytes(BPE.content)
    assert checkpoint.load(tmp_path).tokenizer is BYTES


def test_a_tokenizer_of_another_vocabulary_is_refused_and_damage(tmp_path):
    config = replace(CONFIG, model=replace(CONFIG.model, vocab_size=10))
    with pytest.raises(DataError, match="has 11 tokens, but the model's vocab_size is 10"):
        checkpoint.save(tmp_path, replace(example(1, config), tokenizer=BPE))
    path = checkpoint.save(tmp_path, example(1, config))
    (path / TOKENIZER).write_bytes(BPE.content)
    reseal(path)
    with pytest.raises(CheckpointError, match=r"damaged: tokenizer.json: the bpe tokenizer has 11 tokens, but .* 10"):
        checkpoint.load(tmp_path)
    assert checkpoint.defect(path)


@pytest.mark.parametrize("there", [True, False], ids=["another", "none"])
def test_another_tokenizer_of_the_same_size_is_found(tmp_path, there):
    """Also if the manifest was rewritten; checkpoints from before the state had its digest still load."""
    path = checkpoint.save(tmp_path, replace(example(), tokenizer=BPE))
    other = BytePairTokenizer({c: i for i, c in enumerate([*"lkjihgfedc", "lk"])}, [("l", "k")])
    assert other.vocab_size == BPE.vocab_size
    (path / TOKENIZER).write_bytes(other.content)
    reseal(path, (*FILES, TOKENIZER)[: len(FILES) + there])
    with pytest.raises(CheckpointError, match=r"tokenizer.json is not the tokenizer that the run began with\."):
        checkpoint.load(tmp_path)
    state = json.loads((path / STATE).read_bytes())
    del state["tokenizer"]
    (path / STATE).write_bytes(json.dumps(state).encode())
    reseal(path, (*FILES, TOKENIZER)[: len(FILES) + there])
    assert checkpoint.load(tmp_path).tokenizer.digest == (other if there else BYTES).digest


def test_a_tokenizer_that_changed_after_it_was_verified_is_found(tmp_path):
    path = checkpoint.save(tmp_path, replace(example(), tokenizer=BPE))
    assert not checkpoint.defect(path)
    (path / TOKENIZER).write_bytes(BPE.content + b" ")
    assert "tokenizer.json has" in str(checkpoint.defect(path))
    (path / TOKENIZER).unlink()
    assert "tokenizer.json is missing" in str(checkpoint.defect(path))
