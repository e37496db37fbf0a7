"""Runs with Muon and averaged weights: saved, taken up bit for bit, and read as the average."""

from dataclasses import replace

import numpy as np
import pytest

from byhand.config import ModelConfig, OptimConfig, TrainConfig, to_dict
from byhand.corpus.dataset import ByteDataset
from byhand.errors import CheckpointError
from byhand.runs import checkpoint
from byhand.runs.contents import AVERAGE, OPTIMIZER
from byhand.runs.run import training
from byhand.runs.trainer import Trainer
from runtimes.registered import SUITED

TEXT = np.frombuffer(b"".join(b"line %d of a text; " % (i * i) for i in range(200)), dtype=np.uint8)
CONFIG = TrainConfig(
    model=ModelConfig(seq_len=8, d_model=8, n_layers=2, n_heads=2),
    optim=OptimConfig(lr=1e-2, warmup_steps=2, optimizer="muon", ema=0.9, schedule="linear", cooldown=0.5),
    steps=8,
    batch_size=3,
    eval_interval=4,
    eval_windows=5,
    save_interval=2,
    keep=9,
    runtime="numpy",
)


def trainer(config=CONFIG, start=None):
    train, val = ByteDataset(TEXT).split(0.1, config.model.seq_len)
    return Trainer(config, train, val, start)


def files(run, step):
    folder = run / f"step-{step:08d}"
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@pytest.fixture
def run(tmp_path):
    list(training(trainer(), tmp_path / "run"))
    return tmp_path / "run"


@pytest.mark.parametrize("runtime", SUITED)
def test_a_run_that_was_saved_before_its_first_step_ends_with_the_same_bits(tmp_path, runtime):
    """Later ones, with every runtime and update, are in `test_update_rules.py`."""
    config = replace(CONFIG, runtime=runtime, threads=2 if runtime == "loops" else 0)
    records = list(training(trainer(config), tmp_path / "whole"))
    trainer(config).save(tmp_path / "parts")
    rest = list(training(trainer(config, checkpoint.load(tmp_path / "parts")), tmp_path / "parts"))
    assert [r.val_loss for r in records] == [r.val_loss for r in rest]
    assert files(tmp_path / "whole", 8) == files(tmp_path / "parts", 8)


def test_the_model_of_a_run_is_the_average_unless_the_last_is_asked_for(run):
    loaded = checkpoint.load(run, moments=False)
    average, last = (loaded.model(which).parameters() for which in (True, False))
    assert loaded.of_average == "weights averaged with decay 0.9"
    for name, array in loaded.averages.items():
        np.testing.assert_array_equal(average[name].data, array)
        np.testing.assert_array_equal(last[name].data, loaded.parameters[name])
    assert (average["wte"].data != last["wte"].data).any()
    expected, val = trainer(replace(CONFIG, optim=OptimConfig())), checkpoint.load_model(run)
    for name, p in expected.model.parameters().items():
        p.data = val.parameters()[name].data
    taken_up = trainer(start=checkpoint.load(run))
    assert taken_up.evaluate() == pytest.approx(expected.evaluate(), rel=1e-6)


@pytest.mark.parametrize("name", [AVERAGE, OPTIMIZER])
def test_a_damaged_file_is_passed_over(run, name):
    path = run / "step-00000008" / name
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\x41")
    assert checkpoint.load(run).step == 6
    with pytest.raises(CheckpointError, match=name):
        checkpoint.load(run / "step-00000008")


def test_without_averages_a_run_has_no_file_and_no_setting_of_them(tmp_path):
    config = replace(CONFIG, optim=OptimConfig(warmup_steps=2))
    list(training(trainer(config), tmp_path))
    assert set(files(tmp_path, 8)) == {"model.safetensors", "optimizer.safetensors"}
    assert checkpoint.load(tmp_path).of_average == ""
    assert not {"ema", "optimizer", "muon_lr", "cooldown", "head_lr"} & set(to_dict(config)["optim"])
