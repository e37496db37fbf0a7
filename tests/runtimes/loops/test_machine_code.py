"""Compiled code: the same bits in the first start as in later ones, and never a damaged file's or another user's."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import byhand as bh
from byhand.corpus.dataset import ByteDataset
from byhand.runs.run import training
from byhand.runs.trainer import Trainer
from byhand.runtimes.loops.encode.tables import OPCODES, WIDTH
from byhand.runtimes.loops.machine import building, machine_code
from byhand.runtimes.loops.program.controls import STOPPED
from byhand.runtimes.loops.run import replay
from cli.process import PATIENCE
from runtimes.loops import processors

TEXT = bytes(range(1, 128)) * 16


def train(folder, name, cache, environment=None, threads=0):
    """Train a few steps in a process of its own; return the SHA-256 of the weights and the output."""
    text, run = folder / "text", folder / name
    text.write_bytes(TEXT)
    command = [sys.executable, "-m", "byhand", "train", "--data", str(text), "--out", str(run), "--preset", "tiny"]
    command += ["--steps", "8", "--seed", "9", "--runtime", "loops", "--threads", str(threads)]
    done = subprocess.run(
        command, env=os.environ | {"BYHAND_CACHE": str(cache)} | (environment or {}), capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    weights = (run / "step-00000008" / "model.safetensors").read_bytes()
    return hashlib.sha256(weights).hexdigest(), done.stderr


def objects(cache):
    return sorted(Path(cache).glob("loops-*/*.o"))


COSTLY = [
    "attention", "attention_back", "tiled_gemm", "cross_entropy", "column_sum", "embed", "normalise",
    "normalise_back", "bias_gelu", "activation_back", "embed_back", "sum_shares", "walk",
]  # fmt: skip
"""Kernels of a first start that other tests compile too, once for all: all but three."""


def with_costly(cache, environment):
    """Fill a cache with the costly kernels of the session's cache, where they are compiled unless they are there."""
    program = (
        "import sys\n"
        "from byhand.runtimes.loops.machine import building, machine_code\n"
        "building.addresses_of(sys.argv[1:])\n"
        "print(machine_code.folder())\n"
    )
    command = [sys.executable, "-c", program, *COSTLY]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    room = Path(done.stdout.strip())
    (cache / room.name).mkdir(mode=0o700, parents=True)
    for name in COSTLY:
        shutil.copy(room / f"{name}.o", cache / room.name)


@pytest.fixture(scope="module")
def first_starts(tmp_path_factory):
    """First starts in caches without most kernels, by processor: made when first asked for, as they take a while."""
    made = {}

    def start(name, threads=0):
        if name not in made:
            folder, environment = tmp_path_factory.mktemp(name), processors.SMALLER.get(name, {})
            with_costly(folder / "cache", environment)
            made[name] = folder, *train(folder, "first", folder / "cache", environment, threads)
        return made[name]

    return start


@pytest.mark.parametrize(
    ("name", "threads"),
    [
        ("host", 0),
        pytest.param("avx2", 1, marks=[pytest.mark.slow, pytest.mark.skipif(not processors.X86, reason="x86")]),
    ],
)
def test_a_first_start_computes_the_bits_of_every_later_one(first_starts, name, threads):
    """With most kernels missing from the cache and with a full one; also limited to AVX2."""
    folder, first, said = first_starts(name, threads)
    assert "compiling 3 kernels" in said
    made = [path.name for path in objects(folder / "cache")]
    assert "adamw.o" in made
    assert "sample.o" not in made, "a kernel was compiled that training does not need"
    later, said = train(folder, "later", folder / "cache", processors.SMALLER.get(name), threads)
    assert "compiling" not in said
    assert later == first


def test_a_kernel_compiles_to_the_same_bytes_whatever_was_compiled_before(tmp_path):
    program = (
        "import sys\n"
        "from byhand.runtimes.loops import compiler\n"
        "made = {name: compiler.object_code(name) for name in sys.argv[1:]}\n"
        "import hashlib\n"
        "print(*sorted(f'{name} {hashlib.sha256(code).hexdigest()}' for name, code in made.items()), sep='\\n')\n"
    )
    names = ["relu", "accumulate"]
    said = []
    for ordered in (names, names[::-1]):
        environment = os.environ | {"BYHAND_COMPILING": "1", "NUMBA_OPT": "0"}
        command = [sys.executable, "-c", program, *ordered]
        said.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
        )
    assert said[0].stdout == said[1].stdout
    assert len(said[0].stdout.splitlines()) == 2


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache with one kernel compiled, to be copied and damaged."""
    cache = tmp_path_factory.mktemp("warm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYHAND_CACHE", str(cache))
        building.addresses_of(["relu"])
        if machine_code.read("relu")[0] is None:  # this process had loaded it before, from another cache
            machine_code.keep("relu", dict(building._from_processes(["relu"]))["relu"])
    return cache


@pytest.fixture
def cache(warm, tmp_path, monkeypatch):
    shutil.copytree(warm, tmp_path / "cache")
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_code_that_is_whole_is_read(cache):
    assert machine_code.read("relu")[0]
    assert machine_code.read("gelu") == (None, "")


def test_every_damaged_file_is_refused(cache):
    (path,) = objects(cache)
    whole = path.read_bytes()
    damages = [b"", whole[:1], whole[:60], whole[:-1], whole + b"\0", b"\x80\x04pickle", b"\n" * 100]
    step = max(1, len(whole) // 100)
    damages += [whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :] for i in range(0, len(whole), step)]
    for damaged in damages:
        path.write_bytes(damaged)
        assert machine_code.read("relu") == (None, "is damaged")
    path.write_bytes(whole)
    assert machine_code.read("relu")[0] == whole.partition(b"\n")[2]


def test_one_kernels_code_does_not_pass_for_anothers(cache):
    (path,) = objects(cache)
    path.rename(path.with_name("gelu.o"))
    assert machine_code.read("gelu") == (None, "is damaged")


@pytest.mark.skipif(os.name == "nt", reason="modes and owners of POSIX")
def test_code_that_others_could_have_written_is_refused(cache):
    (path,) = objects(cache)
    path.chmod(0o666)
    code, why = machine_code.read("relu")
    assert code is None
    assert why.startswith("is not used: it belongs to another user, or others may write to it")


def test_damaged_code_is_compiled_anew_and_computes_the_same(first_starts):
    folder, first, _ = first_starts("host")
    whole = {path: path.read_bytes() for path in objects(folder / "cache")}
    emptied, flipped = sorted(whole, key=lambda path: len(whole[path]))[:2]  # the smallest compile fastest
    emptied.write_bytes(b"")
    flipped.write_bytes(whole[flipped][:-1] + bytes([whole[flipped][-1] ^ 1]))
    again, said = train(folder, "again", folder / "cache")
    assert again == first
    assert said.count("is damaged (and 1 more file); compiling it anew") == 1
    assert {path: path.read_bytes() for path in objects(folder / "cache")} == whole


@pytest.mark.parametrize("place", ["a file in the way", "no home"])
def test_where_nothing_can_be_kept_it_is_compiled_for_this_start_alone(monkeypatch, caplog, tmp_path, cache, place):
    code, _ = machine_code.read("relu")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "file"))
    if place == "no home":
        monkeypatch.setattr(machine_code, "cache_folder", lambda: None)
    monkeypatch.setattr(building, "_addresses", {})
    monkeypatch.setattr(building, "_from_processes", lambda kernels: [(name, code) for name in kernels])
    assert building.addresses_of(["relu"])["relu"]
    assert caplog.text.count("cannot keep compiled code in ") == 1
    assert "BYHAND_CACHE names another folder" in caplog.text


def test_a_compiling_process_that_dies_is_one_line(monkeypatch, cache):
    monkeypatch.setattr(building, "_addresses", {})
    monkeypatch.setattr(sys, "executable", shutil.which("true") or sys.executable)
    with pytest.raises(
        building.ConfigError,
        match=r"cannot compile the kernel gelu: its process ended with code 0.*Use the numpy runtime",
    ):
        building.addresses_of(["gelu"])


def test_an_interrupt_ends_the_compiling_processes(monkeypatch, cache):
    """It comes while the main thread waits for a kernel: nothing keeps compiling in the background."""
    started = []
    monkeypatch.setattr(building.Compiler, "_converse", lambda self: started.append(self.process))
    monkeypatch.setattr(building, "EVERY", 0.01)
    compiling = building._from_processes(["gelu", "sample"])
    assert next(compiling) == ("", b"")
    with pytest.raises(KeyboardInterrupt):
        compiling.throw(KeyboardInterrupt)
    assert started
    assert all(each.returncode is not None for each in started)


def test_a_kernel_whose_compiling_process_dies_is_given_to_another(monkeypatch, cache):
    started, begin = [], building.Compiler.__init__

    def first_dies(self, waiting, answers):
        begin(self, waiting, answers)
        started.append(self.process)
        if len(started) == 1:
            self.process.kill()

    monkeypatch.setattr(building.Compiler, "__init__", first_dies)
    monkeypatch.setattr(building, "_addresses", {})
    assert building.addresses_of(["gelu"])["gelu"]
    assert len(started) == 2


def test_a_compiling_process_ends_with_the_one_that_asks():
    """Also in the middle of a kernel: its standard input ends."""
    compiler = building.Compiler(building.queue.SimpleQueue(), building.queue.SimpleQueue())
    compiler.process.stdin.write(b"attention\n")
    compiler.process.stdin.close()
    assert compiler.process.wait(PATIENCE) == 0
    assert not compiler.process.stdout.read()
    compiler.close()


def test_what_surrounds_a_compiling_process_does_not_change_its_code(monkeypatch, cache, tmp_path):
    """Numba's variables, its file in the current folder, words that others print, modules of the same names."""
    code, _ = machine_code.read("relu")
    (tmp_path / "here").mkdir()
    for name in ("numba.py", "byhand.py", "signal.py"):
        (tmp_path / "here" / name).write_text("raise SystemExit('not this one')")
    (tmp_path / "here" / ".numba_config.yaml").write_text("opt: 3\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('byhands greet you')")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name, value in (("NUMBA_OPT", "3"), ("NUMBA_DISABLE_JIT", "1"), ("NUMBA_DEBUG", "1")):
        monkeypatch.setenv(name, value)
    (path,) = objects(cache)
    path.unlink()
    assert dict(building._from_processes(["relu"]))["relu"] == code


def test_a_row_whose_kernel_is_not_loaded_is_an_error_and_not_a_crash(monkeypatch):
    replay.ready(["zero"])
    table = np.zeros((1, WIDTH), np.int64)
    table[0, 0] = OPCODES["gelu"]
    memory = np.zeros(4, np.float32)
    resources = replay.Resources(
        memory, memory.view(np.int32), np.zeros(16), np.zeros(32, np.int64), np.zeros(3, np.int64)
    )
    none = np.zeros_like(replay._addresses)
    monkeypatch.setattr(replay, "_ADDRESSES", none.ctypes.data)
    with pytest.raises(RuntimeError, match="kernel gelu was not loaded"):
        replay.replay(table, 0, 1, 1, resources)


def test_nothing_is_compiled_any_more_once_a_run_is_prepared(monkeypatch, tmp_path):
    """So that no step's time counts it, and no interrupt waits for it."""
    model = bh.ModelConfig(vocab_size=256, seq_len=16, d_model=16, n_layers=1, n_heads=2)
    config = bh.TrainConfig(
        model=model, steps=3, batch_size=3, grad_accum=2, eval_interval=2, eval_windows=150, save_interval=1,
        runtime="loops", threads=2,
    )  # fmt: skip
    trainer = Trainer(config, *ByteDataset(TEXT * 4).split(0.4, 16))
    trainer.prepare()

    def compiles(kernels):
        raise AssertionError(f"{list(kernels)} were not prepared")

    monkeypatch.setattr(building, "addresses_of", compiles)
    assert [progress.step for progress in training(trainer, tmp_path)] == [1, 2, 3]


def test_rooms_that_nothing_has_used_for_long_go(tmp_path, monkeypatch):
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path))
    rooms = [tmp_path / f"loops-{digit * 16}" for digit in "012"]
    others = [tmp_path / "loops-", tmp_path / "corpus", tmp_path / "elsewhere"]
    for room in (*rooms, *others):
        room.mkdir()
        (room / "gelu.o").write_bytes(b"code")
        os.utime(room, (0, 0))
    os.utime(rooms[0])
    link = tmp_path / f"loops-{'3' * 16}"
    if os.name != "nt":
        link.symlink_to("elsewhere")
        os.utime(link, (0, 0), follow_symlinks=False)
    machine_code.keep("relu", b"code")
    own = machine_code.folder()
    assert {p.name for p in tmp_path.glob("loops-*")} >= {own.name, rooms[0].name, "loops-"}
    assert not rooms[1].exists()
    assert not rooms[2].exists()
    assert all((room / "gelu.o").exists() for room in others)
    assert link.is_symlink() or os.name == "nt"
    os.utime(own, (0, 0))
    assert machine_code.read("relu")[0] == b"code"
    assert own.stat().st_mtime > 0


def test_a_stop_ends_a_run_between_repetitions_never_within_the_rows():
    """A thread that skipped the rest of its rows would miss a barrier, and the others would wait there for ever."""
    replay.ready(["accumulate"])
    memory, signals = np.zeros(64, np.float32), np.zeros(32, np.int64)
    memory[:4], signals[STOPPED] = 1, 1
    table = np.zeros((2, WIDTH), np.int64)
    for row, y in zip(table, (16, 32), strict=True):
        row[:4] = OPCODES["accumulate"], 0, y, 4  # x, y, n
    resources = replay.Resources(memory, memory.view(np.int32), np.zeros(16), signals, np.zeros(3, np.int64))
    replay.replay(table, 0, 2, 3, resources)
    assert memory[[16, 32]].tolist() == [1, 1]
    replay.replay(table, 1, 2, 1, resources)
    assert memory[[16, 32]].tolist() == [1, 2]


def test_code_is_loaded_by_one_thread_at_a_time(monkeypatch):
    """LLVM's engine is one for the process: with two threads in it, it crashes."""
    inside, met = [], []

    def load(kernel, code):
        inside.append(kernel)
        time.sleep(0.001)  # another thread would come here now
        met.append(len(inside))
        inside.clear()
        return 1

    monkeypatch.setattr(building, "_addresses", {})
    monkeypatch.setattr(machine_code, "read", lambda name: (b"", ""))
    monkeypatch.setattr(machine_code, "load", load)
    kernels = [f"k{i}" for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(building.addresses_of, [kernels] * 8)) == [dict.fromkeys(kernels, 1)] * 8
    assert met == [1] * len(kernels)
