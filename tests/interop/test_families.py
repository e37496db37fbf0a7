"""Every family of the exchange: in all places that name it, exported as transformers computes it, or refused."""

import json
import random
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ByhandError, ConfigError
from byhand.interop import exchange, families
from byhand.interop.gguf.model import KNOWN
from byhand.interop.hugging_face.families import FAMILIES, LACKING, STABLELM
from byhand.interop.hugging_face.settings import as_json
from byhand.runs.contents import Checkpoint
from hostile import foreign_models as hostile
from interop import export_cases as exports
from interop import foreign_cases as foreign
from interop.another_family import STARCODER2
from interop.run_cases import GPT2, WHOLE, logits, parameters
from model_cases import drawn_config, each_choice

STORED = json.loads(exports.FIXTURE.read_text(encoding="utf-8"))
STARTS = ("transformers cannot store this model", "GGUF cannot store this model", "transformers refuses ")
TOKENS = [[72, 101, 108, 108, 111]]


FOREIGN = json.loads(exports.FIXTURE.with_name("transformers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("found", "place"),
    [
        (foreign.KINDS, "KINDS and settings() of tests/interop/foreign_cases.py, with a config.json of the family"),
        (
            {name.split()[0] for name in WHOLE},
            "WHOLE of tests/interop/run_cases.py, with a model that the family has",
        ),
        ({*hostile.KINDS} & {*FAMILIES}, "KINDS of tests/hostile/foreign_models.py, with folders to damage"),
        (
            {case["config"]["model_type"] for case in FOREIGN},
            "tests/fixtures/exchange: run python tests/oracle/test_transformers.py, which writes it",
        ),
    ],
)
def test_every_family_is_tested(found, place):
    missing = set(FAMILIES) - set(found)
    assert not missing, f"add {', '.join(missing)} to {place}"
    assert set(found) == set(FAMILIES)


def test_a_family_that_needs_more_is_refused_by_what_it_needs(tmp_path):
    assert not LACKING.keys() & FAMILIES.keys()
    for name, lacking in LACKING.items():
        (tmp_path / "config.json").write_text(json.dumps({"model_type": name}))
        with pytest.raises(ByhandError) as error:
            exchange.read(tmp_path)
        assert lacking in str(error.value)
        assert str(error.value).isprintable()


def test_cases_of_exports_are_stored():
    assert STORED.keys() == exports.CASES.keys(), "run python tests/oracle/test_transformers.py, which stores them"


@pytest.mark.parametrize("name", exports.CASES)
def test_transformers_computes_of_an_export_what_the_model_computes(name, tmp_path, monkeypatch):
    """transformers computed the stored logits of a folder with exactly these settings and tensors."""
    _, config = exports.CASES[name]
    folder, case = exports.exported(name, tmp_path / "out", monkeypatch.setitem), STORED[name]
    given = exports.contents(folder)
    assert given["config"] == case["config"], "run python tests/oracle/test_transformers.py and look at the change"
    assert {n: shape for n, (shape, _) in given["tensors"].items()} == {
        n: shape for n, (shape, _) in case["tensors"].items()
    }
    for n, (_, total) in case["tensors"].items():
        assert given["tensors"][n][1] == pytest.approx(total, abs=1e-2), n
    ours = logits(config, parameters(config, seed=3), exports.TOKENS, "float32")
    np.testing.assert_allclose(ours[..., :: exports.EVERY], case["logits"], atol=1e-4)
    found = exchange.read(folder)
    np.testing.assert_allclose(logits(found.config, found.arrays, exports.TOKENS, "float32"), ours, atol=1e-4)


def test_a_folder_is_written_one_tensor_at_a_time_as_the_library_writes_it(tmp_path):
    config = replace(WHOLE["llama"], d_model=128, n_layers=8)
    run = Checkpoint(TrainConfig(model=config), parameters(config), {}, {"step": 0})
    size = sum(array.nbytes for array in run.parameters.values())
    tracemalloc.start()
    exchange.write(run, "hf", tmp_path / "out")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < size / 2
    content = (tmp_path / "out" / "model.safetensors").read_bytes()
    assert content == save(load(content), metadata={"format": "pt"})


def test_a_part_of_a_head_that_is_rotated_is_always_written(tmp_path, monkeypatch):
    for name, part in (
        ("llama", 1.0),
        ("stablelm", 0.5),
        ("stablelm with biases", 0.8),
        ("starcoder2", 1),
    ):
        config = exports.contents(exports.exported(name, tmp_path / name, monkeypatch.setitem))["config"]
        assert config["partial_rotary_factor"] == config["rope_parameters"]["partial_rotary_factor"] == part


def test_transformers_rounds_the_part_of_a_head_to_the_part_that_is_meant():
    widths = (*range(2, 100, 7), 80, 128, 160, 192, 256)
    for width, rotated in ((w, rotated) for w in widths for rotated in range(2, w + 1, 2)):
        config = ModelConfig(d_model=width, positions="rotary", rope_fraction=rotated / width)
        config = replace(config, norm_affine=True, activation="swiglu", attention_bias="none")
        part = as_json(STABLELM, config, {})["partial_rotary_factor"]
        assert int(width * part) == config.rotary_width == rotated


def near(seed: int) -> ModelConfig | None:
    """Return a model of a family with one to three settings drawn at random; None if they do not go together."""
    chance, drawn = random.Random(seed), drawn_config(seed)
    base = WHOLE[chance.choice(sorted(WHOLE))]
    names = chance.sample(sorted(set(vars(drawn)) - {"vocab_size", "d_model"}), chance.randint(1, 3))
    try:
        return replace(base, **{name: getattr(drawn, name) for name in names})
    except ConfigError:
        return None


@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("goal", ["hf", "gguf"])
def test_any_model_comes_back_or_is_refused_in_one_line(goal, count, tmp_path):
    """Each choice alone, each family in both pairings; models at random, three near a family for each other one."""
    choices = [ModelConfig(**chosen) for base in (GPT2, WHOLE["llama"]) for chosen in each_choice(**vars(base))]
    choices += [replace(base, rope_pairing=pairs) for base in WHOLE.values() for pairs in ("halves", "neighbours")]
    drawn = [replace(drawn_config(seed), vocab_size=256) for seed in range(count)]
    refusals, written = [], 0
    for i, config in enumerate([*choices, *drawn, *filter(None, map(near, range(3 * count)))]):
        arrays = parameters(config)
        run = Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0})
        try:
            exchange.write(run, goal, tmp_path / str(i))
        except ByhandError as error:
            refusals.append(str(error))
            continue
        found = exchange.read(tmp_path / str(i))
        text, atol = [TOKENS[0][: config.seq_len]], 1e-9
        if config.rope_scaling == "llama3" if goal == "gguf" else config.scaled_embeddings:
            atol = 1e-6  # factors, and gains less 1, are stored as float32
        np.testing.assert_allclose(
            logits(found.config, found.arrays, text), logits(config, arrays, text), atol=atol, err_msg=str(config)
        )
        written += 1
    assert all(line.isprintable() and line.startswith(STARTS) for line in refusals)
    assert min(written, len(refusals)) > 20


@pytest.mark.parametrize("family", [*FAMILIES.values(), *KNOWN.values(), STARCODER2], ids=lambda family: family.name)
def test_a_setting_that_a_family_does_not_name_must_have_its_default(family, monkeypatch):
    @dataclass(frozen=True)
    class Later(ModelConfig):
        layer_scale: bool = False
        residual_gain: float = 1.0
        memory_slots: int | None = None

    monkeypatch.setattr(families, "ModelConfig", Later)
    usual = family.usual() | {"n_heads": 2}
    assert family.problems(Later(**usual)) == []
    for change, difference, advice in (
        ({"layer_scale": True}, "layer_scale is true, which {} models lack", "with --no-layer-scale"),
        (
            {"residual_gain": 0.5},
            "residual_gain is 0.5, which {} models lack",
            "with --residual-gain 1.0",
        ),
        ({"memory_slots": 4}, "memory_slots is 4, which {} models lack", "without --memory-slots"),
    ):
        assert family.problems(Later(**usual | change)) == [(difference.format(family.name), advice)]
