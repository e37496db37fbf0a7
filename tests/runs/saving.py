"""Checkpoints saved by one host or by several, in the same words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import CheckpointError
from byhand.files import sealed
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.model import TinyGPT
from byhand.runs import checkpoint
from byhand.runs import hosts as hosts_of_a_run
from byhand.runs.contents import OPTIMIZER, Checkpoint, part_name
from thread_group import on_hosts

CONFIG = TrainConfig(model=ModelConfig(vocab_size=11, seq_len=8, d_model=4, n_heads=2))


def example(step=1, config=CONFIG, seed=None):
    """Return a checkpoint of a step, with numbers of its own."""
    parameters = {n: p.data for n, p in TinyGPT(config.model, seed=seed or step).parameters().items()}
    moments = {n: np.full_like(p, step) for n, p in parameters.items()}
    return Checkpoint(
        config, parameters, {"m": moments, "v": {n: 2 * a for n, a in moments.items()}}, {"step": step, "text": {}}
    )


def part(saved, index, count):
    """Return one host's arrays: some rows of most, all or nothing of a few."""

    def cut(arrays):
        found = {}
        for i, (name, array) in enumerate(arrays.items()):
            begin, end = (len(array) * k // count for k in (index, index + 1))
            if i % 3 == 0 and i % count == index:
                found[name] = array
            elif i % 3 and begin < end:
                box = [f"{begin}:{end}", *(f"0:{n}" for n in array.shape[1:])]
                found[f"{name}[{','.join(box)}]"] = array[begin:end]
        return found

    return replace(saved, parameters=cut(saved.parameters), moments={k: cut(a) for k, a in saved.moments.items()})


def save(run, saved, hosts=1, keep=2):
    """Save on several hosts; return each one's result, a path or an error."""
    if hosts > 1:
        return on_hosts(hosts, lambda group: hosts_of_a_run.save(run, part(saved, group.index, hosts), keep, group))
    return on_hosts(1, lambda group: checkpoint.save(run, saved, keep))


def saved_at(run, step=1, hosts=1, **more):
    """Save the example of a step, and return its path."""
    said = save(run, example(step, **more), hosts)
    assert said == [run / f"step-{step:08d}"] * hosts
    return said[0]


def parts_of(hosts):
    """Return the files of arrays: the model's, then the optimizer's."""
    kinds = (MODEL, OPTIMIZER)
    return [*kinds] if hosts == 1 else [part_name(kind, i, hosts) for kind in kinds for i in range(hosts)]


def expect(loaded, saved):
    """Hold what was loaded against what was saved."""
    assert (loaded.config, loaded.state) == (saved.config, saved.state)
    for found, due in ((loaded.parameters, saved.parameters), *((loaded.moments[k], saved.moments[k]) for k in "mv")):
        assert list(found) == list(due)
        for name in due:
            np.testing.assert_array_equal(found[name], due[name], err_msg=name)
            assert found[name].dtype == due[name].dtype


def reseal(path, files=None):
    """Rewrite the manifest, of these files or of all: then only the parts show that a checkpoint is wrong."""
    names = files or [p.name for p in path.iterdir() if p.name != MANIFEST]
    entries = sealed.entries({name: [(path / name).read_bytes()] for name in names})
    (path / MANIFEST).write_bytes(sealed.manifest(entries))


def expect_refused(run, what):
    """The newest checkpoint is refused in one line, and an older one is taken."""
    with pytest.raises(CheckpointError, match=what) as caught:
        checkpoint.load(run / "step-00000002")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert checkpoint.load(run).step == 1
    assert checkpoint.newest_whole(run) == run / "step-00000001"
