import math

import pytest

from byhand.config import ModelConfig
from byhand.layers.parameter import flat, map_tree, ones, residual_std, weight, zeros
from byhand.model import declared

TREE = {"wte": 1, "blocks": {"0": {"attn": {"w": 2}, "ln_1": {}}, "1": {}}, "lm_head": {"b": 3}}


def test_leaves_go_by_dotted_names_in_their_order():
    assert list(flat(TREE).items()) == [("wte", 1), ("blocks.0.attn.w", 2), ("lm_head.b", 3)]


def test_a_named_tree_has_the_same_form_and_keeps_layers_without_parameters():
    assert map_tree(TREE, str.upper) == {
        "wte": "WTE",
        "blocks": {"0": {"attn": {"w": "BLOCKS.0.ATTN.W"}, "ln_1": {}}, "1": {}},
        "lm_head": {"b": "LM_HEAD.B"},
    }


def test_only_weights_are_drawn_and_decay():
    width, heads = ("width", 2), ("heads", 3)
    made = (weight(width, heads), zeros(heads), ones(heads))
    assert [(p.shape, p.mean, p.std, p.decays) for p in made] == [
        ((2, 3), 0.0, 0.02, True),
        ((3,), 0.0, 0.0, False),
        ((3,), 1.0, 0.0, False),
    ]


def test_packed_parts_lengthen_the_last_axis_alone():
    packed = weight(("width", 2), ("heads", 5), packed=3)
    assert (packed.shape, packed.axes, packed.packed) == ((2, 15), ("width", "heads"), 3)
    assert zeros(("heads", 5), packed=3).shape == (15,)


def test_every_axis_of_every_array_of_a_model_is_named():
    for name, parameter in declared(ModelConfig(n_layers=2, norm_affine=True)).items():
        assert len(parameter.axes) == len(parameter.shape), name


@pytest.mark.parametrize("n_layers", [1, 8])
def test_all_projections_together_add_the_variance_of_one_weight(n_layers):
    assert math.isclose(2 * n_layers * residual_std(n_layers) ** 2, 0.02**2)
