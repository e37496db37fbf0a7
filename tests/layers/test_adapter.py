"""Adapters: what is declared, that they begin as nothing, their gradients, and that merging changes only rounding."""

from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.errors import ConfigError
from byhand.model import declared, initial

BASE = bh.ModelConfig(vocab_size=11, seq_len=6, d_model=8, n_layers=2, n_heads=4, n_kv_heads=2, norm_affine=True)
CONFIG = replace(BASE, lora=3)
MODELS = [
    CONFIG,
    replace(CONFIG, lora_on="*", activation="swiglu", positions="rotary", lora_alpha=1),
    replace(CONFIG, tied_embeddings=True, norm_position="post", attention_bias="none", mlp_bias=False),
]


def arrays(config, dtype="float32", begun=True):
    """Return the arrays of a model, and of adapters that are as at the beginning or have learned something."""
    found = initial(declared(config), 1, dtype)
    rng = np.random.default_rng(0)
    learned = {n: rng.standard_normal(a.shape).astype(dtype) / 4 for n, a in found.items() if n.endswith("_b")}
    return found if begun else found | learned


def batch(config):
    return np.random.default_rng(2).integers(0, config.vocab_size, (2, 3, config.seq_len))


def test_all_but_adapters_is_frozen_and_each_matrix_of_a_block_has_one():
    found = declared(CONFIG)
    assert {n for n, p in found.items() if p.trained} == {
        f"blocks.{i}.{w}_{end}" for i in range(2) for w in ("attn.w_qkv", "attn.w_proj", "mlp.w_fc", "mlp.w_out")
        for end in "ab"
    }  # fmt: skip
    assert declared(BASE) == {n: replace(p, trained=True) for n, p in found.items() if not p.trained}
    assert [found[f"blocks.1.attn.w_qkv_{end}"].shape for end in "ab"] == [(8, 3), (3, 16)]
    assert found["blocks.0.attn.w_qkv_a"].std > 0 == found["blocks.0.attn.w_qkv_b"].std


def test_patterns_name_matrices_without_their_blocks():
    found = declared(replace(CONFIG, lora_on="attn.w_qkv, lm_head.*"))
    trained = {n for n, p in found.items() if p.trained}
    assert trained == {
        f"{w}_{end}" for w in ("blocks.0.attn.w_qkv", "blocks.1.attn.w_qkv", "lm_head.w") for end in "ab"
    }
    with pytest.raises(ConfigError, match=r"lora_on names 'wte', but the matrices are attn.w_qkv, .*lm_head.w"):
        declared(replace(CONFIG, lora_on="mlp.*,wte"))


@pytest.mark.parametrize("config", MODELS)
def test_at_the_beginning_the_logits_are_the_bases_to_the_bit(config):
    begun, tokens = arrays(config), batch(config)[0]
    plain = replace(config, lora=0)
    base = bh.TinyGPT(plain, arrays={n: begun[n] for n in declared(plain)})
    made = bh.TinyGPT(config, arrays=begun).forward_logits(tokens).data
    np.testing.assert_array_equal(made, base.forward_logits(tokens).data)


@pytest.mark.parametrize("config", MODELS)
def test_merged_it_computes_the_same_and_leaves_no_adapter(config):
    model = bh.TinyGPT(config, arrays=arrays(config, "float64", begun=False))
    merged, tokens = model.merged(), batch(config)[0]
    assert merged.config == replace(config, lora=0, lora_alpha=None, lora_on=BASE.lora_on)
    assert merged.parameters().keys() == declared(merged.config).keys()
    expected = model.forward_logits(tokens).data
    np.testing.assert_allclose(merged.forward_logits(tokens).data, expected, rtol=1e-12, atol=1e-12)
    without = bh.TinyGPT(merged.config, arrays={n: model.parameters()[n].data for n in merged.parameters()})
    assert np.abs(without.forward_logits(tokens).data - expected).max() > 0.01, "the adapters do nothing"
    assert merged.merged() is merged


@pytest.mark.parametrize("config", MODELS)
def test_gradients_are_central_differences_and_frozen_arrays_have_none(config):
    held = arrays(config, "float64", begun=False)
    model = bh.TinyGPT(config, arrays=held)
    model.loss(*batch(config)).backward()
    rng = np.random.default_rng(5)
    for name, parameter in model.parameters().items():
        if not declared(config)[name].trained:
            assert parameter.grad is None
            continue
        index = tuple(rng.integers(0, n) for n in parameter.shape)
        kept, losses = held[name][index], []
        for step in (1e-5, -1e-5):
            held[name][index] = kept + step
            losses.append(bh.TinyGPT(config, arrays=held).loss(*batch(config)).item())
        held[name][index] = kept
        assert parameter.grad[index] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-5, abs=1e-9), name


def test_an_optimizer_of_all_parameters_leaves_the_base():
    model = bh.TinyGPT(CONFIG, arrays=arrays(CONFIG))
    before = {n: p.data.tobytes() for n, p in model.parameters().items()}
    model.loss(*batch(CONFIG)).backward()
    bh.AdamW(lr=0.1).step(model.parameters())
    changed = {n for n, p in model.parameters().items() if p.data.tobytes() != before[n]}
    assert changed == {n for n, p in declared(CONFIG).items() if p.trained}
