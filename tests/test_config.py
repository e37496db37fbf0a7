import dataclasses
import json
import math

import pytest

from byhand.config import DataConfig, ModelConfig, OptimConfig, TrainConfig, from_dict, to_dict
from byhand.engine.equation import with_role
from byhand.errors import ByhandError, ConfigError

WRONG = [  # (config, settings, what the message says)
    (ModelConfig, {"vocab_size": 0}, "vocab_size is 0, but must be at least 1. Use 256."),
    (ModelConfig, {"seq_len": -1}, "seq_len is -1, but must be at least 1. Use 64."),
    (ModelConfig, {"d_model": 0}, "d_model is 0, but must be at least 1. Use 64."),
    (ModelConfig, {"n_layers": 0}, "n_layers is 0, but must be at least 1. Use 1."),
    (ModelConfig, {"n_heads": 0}, "n_heads is 0, but must be at least 1. Use 1."),
    (ModelConfig, {"d_ff": 0}, "d_ff is 0, but must be at least 1. Use 1."),
    (ModelConfig, {"d_model": 10, "n_heads": 4}, "n_heads 4 does not divide d_model 10. Use n_heads 2 or 5."),
    (ModelConfig, {"d_model": 7, "n_heads": 3}, "n_heads 3 does not divide d_model 7. Use n_heads 1 or 7."),
    (ModelConfig, {"norm_position": "mid"}, "norm_position is 'mid'. Use one of pre, post, output, both."),
    (
        ModelConfig,
        {"activation": "tanh"},
        f"activation is 'tanh'. Use one of {', '.join(with_role('activation', 'gate'))}.",
    ),
    (ModelConfig, {"d_model": "64"}, "d_model is '64', but must be a whole number, such as 64."),
    (ModelConfig, {"d_model": 64.0}, "d_model is 64.0, but must be a whole number, such as 64."),
    (ModelConfig, {"n_layers": True}, "n_layers is true, but must be a whole number, such as 1."),
    (ModelConfig, {"causal": 1}, "causal is 1, but must be true or false."),
    (ModelConfig, {"d_ff": "wide"}, "d_ff is 'wide', but must be a whole number."),
    (ModelConfig, {"layer_pattern": "gx"}, "layer_pattern has 'x', but knows g, w and n. Use wwwwwg."),
    (ModelConfig, {"layer_pattern": "g" * 1025}, "layer_pattern has 1025 letters, but may have 1024. Use fewer."),
    (
        ModelConfig,
        {"layer_pattern": "gw"},
        "layer_pattern has layers with a window (w), but its size is not given. Use attention_window 256.",
    ),
    (
        ModelConfig,
        {"layer_pattern": "g", "attention_window": 4},
        "attention_window is for the layers w of layer_pattern, which has none. Leave it out.",
    ),
    (
        ModelConfig,
        {"layer_pattern": "gn"},
        "layers n of layer_pattern lack rotary positions, but positions is learned. Use g.",
    ),
    (
        ModelConfig,
        {"rope_window_base": 100.0},
        "rope_window_base is for the layers w of layer_pattern, which has none. Use rope_base.",
    ),
    (
        ModelConfig,
        {"layer_pattern": "w", "attention_window": 4, "rope_window_base": 1},
        "rope_window_base is 1, but must be above 1. Use 10000.",
    ),
    (
        ModelConfig,
        {"attention_divisor": 0},
        "attention_divisor is 0, but must be from 1e-06 to 1e+06. Leave it out, or use 1.",
    ),
    (DataConfig, {"val_fraction": 0.0}, "val_fraction is 0.0, but must lie between 0 and 1. Use 0.1."),
    (DataConfig, {"val_fraction": 1}, "val_fraction is 1, but must lie between 0 and 1. Use 0.1."),
    (DataConfig, {"data": 3}, "data is 3, but must be text in quotes, such as 'python-stdlib'."),
    (OptimConfig, {"lr": -0.1}, "lr is -0.1, but must be at least 0. Use 0.003."),
    (OptimConfig, {"lr": math.nan}, "lr is nan, but must be a finite number, such as 0.003."),
    (OptimConfig, {"lr": math.inf}, "lr is inf, but must be a finite number, such as 0.003."),
    (OptimConfig, {"lr": True}, "lr is true, but must be a number, such as 0.003."),
    (OptimConfig, {"lr": 0.1, "min_lr": 0.2}, "min_lr 0.2 must lie between 0 and lr 0.1. Lower min_lr."),
    (OptimConfig, {"lr": 0.1, "min_lr": -0.2}, "min_lr -0.2 must lie between 0 and lr 0.1. Lower min_lr."),
    (OptimConfig, {"warmup_steps": -1}, "warmup_steps is -1, but must be at least 0. Use 100."),
    (OptimConfig, {"weight_decay": -1}, "weight_decay is -1, but must be at least 0. Use 0.1."),
    (OptimConfig, {"grad_clip": -1.0}, "grad_clip is -1.0, but must be at least 0. Use 1.0."),
    (OptimConfig, {"beta1": 1.0}, "beta1 is 1.0, but must be at least 0 and below 1. Use 0.9."),
    (OptimConfig, {"beta2": -0.1}, "beta2 is -0.1, but must be at least 0 and below 1. Use 0.9."),
    (OptimConfig, {"eps": 0.0}, "eps is 0.0, but must be positive. Use 1e-8."),
    (OptimConfig, {"muon_lr": -1.0}, "muon_lr is -1.0, but must be at least 0. Use 0.02."),
    (OptimConfig, {"head_lr": -1.0}, "head_lr is -1.0, but must be at least 0. Leave it out for lr 0.003."),
    (OptimConfig, {"ema": 1.0}, "ema is 1.0, but must be at least 0 and below 1. Use 0.9."),
    (OptimConfig, {"cooldown": 0.0}, "cooldown is 0.0, but must be above 0 and at most 1. Use 0.6."),
    (
        OptimConfig,
        {"lr": 0.0, "optimizer": "muon"},
        "lr is 0, but another learning rate is not: the schedule scales all alike. Use --lr 1e-3.",
    ),
    (OptimConfig, {"decay": "some"}, "decay is 'some'. Use one of all, matrices."),
    (TrainConfig, {"steps": 0}, "steps is 0, but must be at least 1. Use 1000."),
    (TrainConfig, {"batch_size": 0}, "batch_size is 0, but must be at least 1. Use 12."),
    (TrainConfig, {"grad_accum": 0}, "grad_accum is 0, but must be at least 1. Use 1."),
    (TrainConfig, {"eval_windows": 0}, "eval_windows is 0, but must be at least 1. Use 200."),
    (TrainConfig, {"keep": 0}, "keep is 0, but must be at least 1. Use 2."),
    (TrainConfig, {"seed": -1}, "seed is -1, but must be at least 0. Use 1."),
    (TrainConfig, {"save_interval": -5}, "save_interval is -5, but must be at least 0. Use 500."),
    (TrainConfig, {"eval_interval": -5}, "eval_interval is -5, but must be at least 0. Use 250."),
    (TrainConfig, {"dtype": "float16"}, "dtype is 'float16'. Use one of float32, float64, bfloat16."),
    (TrainConfig, {"steps": 10**13}, "steps is 10000000000000, but can be at most 1000000000000. Use a smaller one."),
    (TrainConfig, {"model": {"d_model": 4}}, "model is {'d_model': 4}, but must be ModelConfig."),
]


@pytest.mark.parametrize(("cls", "settings", "message"), WRONG, ids=[f"{c.__name__}-{s}" for c, s, _ in WRONG])
def test_a_wrong_setting_is_one_line_that_says_what_to_do(cls, settings, message):
    with pytest.raises(ConfigError) as error:
        cls(**settings)
    assert str(error.value) == message
    assert isinstance(error.value, ByhandError)


@pytest.mark.parametrize("cls", [ModelConfig, DataConfig, OptimConfig, TrainConfig])
def test_configs_are_frozen_and_documented(cls):
    config = cls()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(config, dataclasses.fields(cls)[0].name, 1)
    assert cls() == config


def test_widths_follow_from_the_model():
    assert ModelConfig(d_model=12, n_heads=3).head_width == 4
    assert ModelConfig(d_model=12).ff_width == 48
    assert ModelConfig(d_model=12, d_ff=5).ff_width == 5
    assert TrainConfig(batch_size=3, grad_accum=2, model=ModelConfig(seq_len=10)).tokens_per_step == 60
    assert OptimConfig(lr=0.5).floor_lr == 0.05
    assert OptimConfig(lr=0.5, min_lr=0.0).floor_lr == 0.0


CONFIG = TrainConfig(
    model=ModelConfig(d_model=12, n_heads=3, d_ff=7, norm_position="post", tied_embeddings=True),
    data=DataConfig(data="notes.txt", val_fraction=0.25),
    optim=OptimConfig(lr=1, min_lr=0.25, decay="all"),
    steps=7,
    dtype="float64",
)


def test_a_config_survives_json():
    values = json.loads(json.dumps(to_dict(CONFIG)))
    assert from_dict(TrainConfig, values) == CONFIG
    assert values["model"]["d_ff"] == 7
    assert from_dict(ModelConfig, values["model"]) == CONFIG.model


def test_a_later_setting_is_written_only_when_it_is_not_the_default():
    @dataclasses.dataclass(frozen=True)
    class Grown:
        width: int = 4
        shape: str = dataclasses.field(default="round", metadata={"later": True})

    assert to_dict(Grown()) == {"width": 4}
    assert to_dict(Grown(shape="flat")) == {"width": 4, "shape": "flat"}
    for config in (Grown(), Grown(shape="flat")):
        assert from_dict(Grown, to_dict(config)) == config


def test_missing_keys_take_the_default():
    assert from_dict(TrainConfig, {"steps": 3, "model": {"d_model": 8}}) == TrainConfig(
        steps=3, model=ModelConfig(d_model=8)
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stesp": 3}, "config has an unknown key 'stesp'. Known keys: batch_size, data,"),
        ({"model": {"width": 3}}, "config.model has an unknown key 'width'. Known keys: activation,"),
    ],
)
def test_unknown_keys_are_named(values, message):
    with pytest.raises(ConfigError) as error:
        from_dict(TrainConfig, values)
    assert str(error.value).startswith(message)


def test_values_are_checked_on_the_way_in():
    with pytest.raises(ConfigError, match="n_heads 5 does not divide d_model 64"):
        from_dict(TrainConfig, {"model": {"n_heads": 5}})


def test_a_section_must_be_a_table():
    with pytest.raises(ConfigError, match=r"config\.model is 3, but must be a table of settings"):
        from_dict(TrainConfig, {"model": 3})
