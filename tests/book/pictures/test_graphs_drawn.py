"""Pictures of graphs show what is recorded: every application, shape and size, and who shares what."""

import numpy as np
import pytest

from book.pictures.drawn import texts
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures import blocks
from byhand.book.pictures.passes import BLOCK, pass_of, pass_through
from byhand.config import ModelConfig, TrainConfig
from pictures import graphs
from pictures.devices import BATCH, THREADS


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("block", ["ln_1", "qkv", "x_mid", "ln_2", "pre", "x_out"]),
        ("post-norm-block", ["qkv", "x_mid", "ln_1", "pre", "x_out", "ln_2"]),
    ],
)
def test_the_block_is_drawn_in_the_order_of_its_graph(name, order):
    words = texts(name)
    assert [word for word in words if word in order] == order
    config = ModelConfig(norm_position="post" if "post" in name else "pre")
    for application in blocks.block_of(pass_through(config, 1, 2)):
        assert application.name.rpartition(".")[2] in words


def test_the_stream_is_what_sums_and_norms_on_it_lead_back_to():
    for config, names in ((blocks.PRE, ["x", "x_mid", "x_out"]), (blocks.POST, None)):
        block = blocks.block_of(pass_through(config, 1, 2))
        found = [tensor.name.removeprefix(BLOCK) for tensor in blocks.stream_of(block)]
        assert found == (names or ["x", "x_mid", "ln_1", "x_out", "ln_2"])


def test_letters_of_shapes_stand_for_the_default_lengths():
    config = TrainConfig()
    model = config.model
    lengths = {
        "B": config.batch_size, "T": model.seq_len, "C": model.d_model, "3C": 3 * model.d_model, "H": model.n_heads,
        "D": model.head_width, "4C": model.ff_width, "V": model.vocab_size,
    }  # fmt: skip
    stages = graphs.stages()
    for stage in stages:
        assert tuple(lengths[letter] for letter in stage.letters) == stage.lengths
    passed = pass_through(model, config.batch_size, model.seq_len)
    assert sum(len(stage.names) for stage in stages) == 1 + len(passed.made)
    words = texts("shapes")
    for stage in stages:
        assert f"[{','.join(stage.letters)}]" in words
        assert f"[{','.join(map(str, stage.lengths))}]" in words


def test_the_graph_of_a_block_shows_sizes_of_values_and_gradients():
    gradients, words = pass_of("paper-gpt"), texts("block-graph")
    for name, value in gradients.trace.values.items():
        if name.startswith(BLOCK) and name in gradients.trace.made:
            for array in (value, gradients.by_name[name]):
                assert decimal(np.sqrt(np.mean(array**2)).item(), 3) in words


def test_gradients_add_up_where_the_stream_forks():
    gradients = pass_of("paper-gpt")
    for name in ("x", f"{BLOCK}x_mid"):
        parts = graphs.parts(gradients.trace.tensor(name))
        assert len(parts) == 2
        assert sum(parts) == pytest.approx(gradients.by_name[name][graphs.ELEMENT], rel=1e-12)


def test_threads_share_rows_and_parameters_as_the_plan_does():
    pytest.importorskip("llvmlite", reason="the loops runtime's compiler is not installed")
    from byhand.model import TinyGPT
    from byhand.runtimes.loops.run.training import LoopsSession

    session = LoopsSession(TinyGPT(ModelConfig()), _optimizer(), threads=THREADS)
    plan = session._planned("train", (BATCH, 4))
    words, first = texts("batch-on-threads"), 0
    for share in plan.shares:
        (summed,) = (call for call in share.calls if call.kernel == "sum_shares")
        assert sum(call.kernel == "barrier" for call in share.calls) == 2
        assert words.count(f"{summed.operands['n']:,}") >= 2
        assert words.count(f"∂ rows {first}–{first + share.batch - 1}") == THREADS
        first += share.batch
    assert first == BATCH


def _optimizer():
    from byhand.optim import AdamW

    return AdamW()
