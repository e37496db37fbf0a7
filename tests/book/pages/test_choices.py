"""What the page about design choices says in prose about its generated numbers."""

import math

import numpy as np
import pytest

from book.pages.asked import answers_of
from byhand.config import ModelConfig
from byhand.errors import ByhandError
from byhand.model import parameter_shapes
from pages.answers.models import gpt2, sizes_of

PAGE = answers_of("guides/design-choices")


def test_without_random_numbers_only_the_heads_bias_learns():
    loss, learning, _ = PAGE.first_loss(0.0)
    assert loss == pytest.approx(math.log(256))
    assert learning == 1
    model = PAGE.drawn(PAGE.SMALL, 0.0)
    model.loss(*PAGE._text()).backward()
    assert [n for n, p in model.parameters().items() if np.asarray(p.grad).any()] == ["lm_head.b"]


def test_larger_initial_numbers_make_the_first_loss_worse():
    losses = [PAGE.first_loss(std)[0] for std in (0.0, 0.01, 0.02, 0.1, 0.5, 1.0)]
    assert losses == sorted(losses)
    assert losses[-1] > 22
    assert f"{losses[0]:.1f}" == "5.5"


def test_smaller_projections_keep_the_stream_at_one_size():
    shallow, *deeper = (PAGE.stream_spread(depth, scaled=True) for depth in (1, 4, 12))
    assert deeper == pytest.approx([shallow] * len(deeper), rel=0.05)
    growing = [PAGE.stream_spread(depth, scaled=False) for depth in (1, 4, 12)]
    assert growing == sorted(growing)
    assert growing[-1] > 2 * growing[0]


def test_only_pre_norm_shrinks_the_last_gradient_with_depth():
    pre, post = ([PAGE.block_gradients(position, n)[1] for n in (2, 12)] for position in ("pre", "post"))
    assert pre[1] < pre[0] / 2
    assert post[1] > post[0]


def test_the_scale_keeps_spread_and_slope():
    narrow, wide = PAGE.score_statistics(4), PAGE.score_statistics(256)
    assert wide[0][0] == pytest.approx(16, rel=0.05)
    assert wide[1][0] == pytest.approx(1, rel=0.05)
    assert wide[0][2] < narrow[0][2] / 5
    assert wide[1][2] == pytest.approx(narrow[1][2], rel=0.05)
    assert (f"{math.sqrt(768):.1f}", f"{math.sqrt(64) / math.sqrt(768):.2f}") == ("27.7", "0.29")


def test_every_parameter_is_of_one_kind():
    for kinds in (["wte"], [".*", "wte"]):
        with pytest.raises(ByhandError, match="of no kind, or of two"):
            sizes_of(kinds, ModelConfig())


def test_shares_of_the_sizes_that_the_prose_names():
    own, large = ({n: math.prod(shape) for n, shape in parameter_shapes(c).items()} for c in (ModelConfig(), gpt2))
    assert 0.18 < own["lm_head.w"] / sum(own.values()) < 0.2
    assert 0.3 < large["wte"] / sum(large.values()) < 1 / 3
