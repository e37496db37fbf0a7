"""Checkpoints of a run with adapters: small, on one base, each whole in itself."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.dataset import ByteDataset
from byhand.errors import CheckpointError, ConfigError
from byhand.files.run_folder import MODEL
from byhand.memory import training_bytes
from byhand.model import declared, initial
from byhand.runs import checkpoint
from byhand.runs.contents import BASE, OPTIMIZER, Checkpoint
from byhand.runs.trainer import Trainer
from runs.saving import save

MODEL_CONFIG = ModelConfig(seq_len=8, d_model=8, n_layers=2, n_heads=2, lora=2)
CONFIG = TrainConfig(model=MODEL_CONFIG, optim=OptimConfig(lr=1e-2, warmup_steps=2), batch_size=2, eval_windows=3,
                     steps=9, runtime="numpy")  # fmt: skip
TEXT = np.frombuffer(b"the quick brown fox jumps over the lazy dog; " * 20, dtype=np.uint8)


def trainer(start=None):
    start = start or Checkpoint(CONFIG, initial(declared(CONFIG.model), 1), {}, {"step": 0, "text": {}})
    return Trainer(CONFIG, *ByteDataset(TEXT).split(0.1, 8), start)


def saved(run, *steps):
    """Train and save after these steps; return the trainer."""
    made = trainer()
    while made.step < steps[-1]:
        made.update()
        if made.step in steps:
            made.save(run)
    return made


def same(loaded, made):
    expected = made.checkpoint()
    for name, array in expected.parameters.items():
        np.testing.assert_array_equal(loaded.parameters[name], array)
    assert loaded.parameters.keys() == expected.parameters.keys()
    assert {k: set(m) for k, m in loaded.moments.items()} == {k: set(m) for k, m in expected.moments.items()}


def test_the_base_is_on_the_disk_once_and_each_checkpoint_is_whole(tmp_path):
    run = tmp_path / "run"
    made = saved(run, 1, 2, 3)
    one, two = run / "step-00000002", run / "step-00000003"
    assert os.path.samefile(one / BASE, two / BASE)
    assert os.stat(two / BASE).st_nlink == 2, "the one that is gone has a link still"
    assert not os.path.samefile(one / MODEL, two / MODEL)
    assert sum(os.path.getsize(two / name) for name in (MODEL, OPTIMIZER)) < os.path.getsize(two / BASE)
    shutil.copytree(two, tmp_path / "copy")
    for path in (run, two, tmp_path / "copy"):
        same(checkpoint.load(path), made)


def test_without_links_each_has_a_copy(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(1, "no links here")

    monkeypatch.setattr(os, "link", refused)
    made = saved(tmp_path, 1, 2)
    assert not os.path.samefile(tmp_path / "step-00000001" / BASE, tmp_path / "step-00000002" / BASE)
    same(checkpoint.load(tmp_path), made)


def test_a_damaged_base_is_refused_and_never_linked_again(tmp_path):
    saved(tmp_path, 1)
    first = tmp_path / "step-00000001"
    content = bytearray((first / BASE).read_bytes())
    content[-3] ^= 1
    (first / BASE).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"base.safetensors does not have the SHA-256 of its manifest"):
        checkpoint.load(tmp_path)
    made = trainer()
    made.update(), made.update()
    made.save(tmp_path)
    assert not os.path.samefile(first / BASE, tmp_path / "step-00000002" / BASE)
    same(checkpoint.load(tmp_path), made)


def test_another_base_is_not_linked(tmp_path):
    saved(tmp_path, 1)
    other = Checkpoint(CONFIG, initial(declared(CONFIG.model), 2), {}, {"step": 0, "text": {}})
    made = trainer(other)
    made.update(), made.update()
    made.save(tmp_path)
    assert not os.path.samefile(tmp_path / "step-00000001" / BASE, tmp_path / "step-00000002" / BASE)
    same(checkpoint.load(tmp_path), made)


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path):
    saved(tmp_path, 3)
    whole, again = saved(tmp_path / "whole", 7), trainer(checkpoint.load(tmp_path))
    while again.step < 7:
        again.update()
    moments = again.checkpoint().moments["v"]
    for name, array in whole.checkpoint().moments["v"].items():
        np.testing.assert_array_equal(moments[name], array)
    same(again.checkpoint(), whole)
    again.save(tmp_path)
    assert os.path.samefile(tmp_path / "step-00000003" / BASE, tmp_path / "step-00000007" / BASE)


def test_several_hosts_save_parts_of_it(tmp_path):
    made = saved(tmp_path / "one", 2)
    whole = made.checkpoint()
    assert not [said for said in save(tmp_path / "run", whole, hosts=3) if isinstance(said, Exception)]
    same(checkpoint.load(tmp_path / "run"), made)


def test_memory_counts_gradients_and_moments_of_adapters_alone():
    full, adapted = (training_bytes(replace(CONFIG, model=replace(MODEL_CONFIG, lora=n)), 0) for n in (0, 2))
    shapes = declared(MODEL_CONFIG).values()
    frozen, trained = (sum(np.prod(p.shape) for p in shapes if p.trained is kind) for kind in (False, True))
    assert full - adapted == 4 * (4 * frozen - frozen - 4 * trained)


def test_averages_are_refused():
    with pytest.raises(ConfigError, match="ema averages all weights, but with lora most are frozen"):
        replace(CONFIG, optim=OptimConfig(ema=0.9))


def test_a_save_that_is_killed_leaves_the_one_before_and_its_base(tmp_path, monkeypatch):
    """At each file that it writes, links, or renames; what is left over goes with the next save."""

    class Killed(BaseException):
        pass

    made, points = saved(tmp_path, 1), 0
    real = {"link": os.link, "fsync": os.fsync, "rename": os.rename}
    made.update()
    while True:
        left = points

        def counted(name):
            def call(*arguments, **more):
                nonlocal left
                if left == 0:
                    raise Killed
                left -= 1
                return real[name](*arguments, **more)

            return call

        with monkeypatch.context() as patched:
            for name in real:
                patched.setattr(os, name, counted(name))
            try:
                made.save(tmp_path)
                break
            except Killed:
                points += 1
        loaded = checkpoint.load(tmp_path)
        assert loaded.step in (1, 2)
        loaded.model()
    assert points > 8, "too few points to prove anything"
    same(checkpoint.load(tmp_path), made)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    assert os.path.samefile(tmp_path / "step-00000001" / BASE, tmp_path / "step-00000002" / BASE)
