"""The losses that our model prints are those of the original program, digit by digit."""

import re

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.corpus.dataset import ByteDataset
from byhand.corpus.text_file import TextFile
from byhand.errors import DataError, NonFiniteError
from byhand.interop.seed_program import checkpoint as files
from byhand.interop.seed_program.training import require_text, start, train
from interop import seed_from_facts as facts
from interop.golden import RUN, TEXT, golden

SYNTHETIC = bytes((i * i * 7 + i // 3) % 96 + 32 for i in range(2000))
SHAPE = {"batch": 3, "t": 8, "c": 12, "layers": 2, "lr": 0.01, "seed": 57}
# By seed_from_facts, on the synthetic text; all far enough from a half that no processor rounds them otherwise.
PRINTED = {1: "6.4158", 10: "5.65653", 20: "4.83173"}


def dataset(content: bytes) -> ByteDataset:
    return ByteDataset(np.frombuffer(content, np.uint8), "the text")


def small():
    return start(ModelConfig(seq_len=8, d_model=12, n_layers=2), 0.01, 57)


def losses(lines):
    return {int(n): loss for n, loss in re.findall(r"step (\d+) .*loss=(\S+)", "\n".join(lines))}


def key_bias(name, array):
    """A bias on the keys shifts a whole row of scores and changes nothing; its gradient is rounding alone, which
    AdamW scales up to full steps. Return the array without that third."""
    return np.delete(array, np.s_[len(array) // 3 : 2 * len(array) // 3]) if name.endswith("b_qkv") else array


def test_losses_and_weights_are_those_of_the_facts():
    checkpoint = small()
    lines = list(train(checkpoint, dataset(SYNTHETIC), 20, 3, 57))
    expected, weights = facts.run(SYNTHETIC, 20, **SHAPE)
    assert [f"{expected[n - 1]:g}" for n in PRINTED] == list(PRINTED.values())
    assert losses(lines) == PRINTED
    assert checkpoint.step == checkpoint.optimizer.t == 20
    for name, parameter in checkpoint.model.parameters().items():
        assert parameter.dtype == np.float32
        np.testing.assert_allclose(
            key_bias(name, parameter.data), key_bias(name, weights[name]), atol=2e-5, err_msg=name
        )


@golden
def test_the_golden_run():
    config = ModelConfig(seq_len=32, d_model=48, n_layers=2)
    checkpoint = start(config, 0.001, 7)
    lines = list(train(checkpoint, ByteDataset(TextFile(TEXT)), 60, 4, 7))
    log = RUN.with_suffix(".train.log").read_text().splitlines()

    def without_time(line):
        return re.sub(r"time=\S+s", "", line)

    assert [without_time(line) for line in lines] == [without_time(line) for line in log[:-1]]
    theirs = files.load(str(RUN)).model.parameters()
    for name, parameter in checkpoint.model.parameters().items():
        ours, golden_array = key_bias(name, parameter.data), key_bias(name, theirs[name].data)
        np.testing.assert_allclose(ours, golden_array, rtol=0, atol=1e-5, err_msg=name)


def test_a_line_for_the_first_step_and_each_tenth():
    lines = list(train(small(), dataset(SYNTHETIC), 21, 2, 1))
    assert [line[: line.index("  loss")] for line in lines] == [
        "step 1  (1/21)",
        "step 10  (10/21)",
        "step 20  (20/21)",
    ]
    assert all(re.search(r"  loss=\d\.\d{1,5}  time=[\de.-]+s$", line) for line in lines)


def test_zero_steps_change_nothing():
    checkpoint = small()
    before = checkpoint.model.parameters()["wte"].data
    assert list(train(checkpoint, dataset(SYNTHETIC), 0, 2, 1)) == []
    assert checkpoint.step == 0
    assert checkpoint.model.parameters()["wte"].data is before


def test_a_loss_that_is_not_finite_stops_before_the_update():
    checkpoint = small()
    checkpoint.model.parameters()["lm_head.b"].data[3] = np.nan
    before = checkpoint.model.parameters()["wte"].data
    with pytest.raises(NonFiniteError, match="nan at step 1"):
        list(train(checkpoint, dataset(SYNTHETIC), 3, 2, 1))
    assert checkpoint.step == 0
    assert checkpoint.model.parameters()["wte"].data is before


@pytest.mark.parametrize(
    ("size", "seq_len", "words"),
    [(1023, 8, "1,023 bytes, but at least 1,024"), (1500, 2000, "at least 2,001 .*--seq 1499")],
)
def test_short_texts_are_refused(size, seq_len, words):
    with pytest.raises(DataError, match=words):
        require_text(dataset(SYNTHETIC[:size]), seq_len)


def test_the_shortest_text_is_read_to_its_last_byte():
    text = dataset(SYNTHETIC[:1024])
    require_text(text, 1023)
    assert list(train(start(ModelConfig(seq_len=1023, d_model=4), 0.01, 1), text, 1, 1, 1))
