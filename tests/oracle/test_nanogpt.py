"""Checkpoints of nanoGPT, saved by torch as its train.py does, and pickles that are none, read by byhand."""

import os

import numpy as np
import pytest

from byhand.errors import DataError
from byhand.interop import exchange
from interop.run_cases import logits
from interop.test_nanogpt import doubled
from oracle.torch_reference import F, torch

pytestmark = pytest.mark.oracle
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12, "vocab_size": 40}
IDS = [[3, 39, 0, 7, 7, 21, 12]]


def state(bias=True):
    """Return a state_dict as nanoGPT names it."""
    g = torch.Generator().manual_seed(1)
    c, shapes = (
        SIZES["n_embd"],
        {"wte": (SIZES["vocab_size"], SIZES["n_embd"]), "wpe": (SIZES["block_size"], SIZES["n_embd"])},
    )
    for i in range(SIZES["n_layer"]):
        shapes |= {f"h.{i}.ln_1": (c,), f"h.{i}.attn.c_attn": (3 * c, c), f"h.{i}.attn.c_proj": (c, c)}
        shapes |= {f"h.{i}.ln_2": (c,), f"h.{i}.mlp.c_fc": (4 * c, c), f"h.{i}.mlp.c_proj": (c, 4 * c)}
    found = {}
    for name, shape in {**shapes, "ln_f": (c,)}.items():
        found[f"transformer.{name}.weight"] = 0.3 * torch.randn(shape, generator=g) + (len(shape) == 1)
        if bias and name not in ("wte", "wpe"):
            found[f"transformer.{name}.bias"] = 0.3 * torch.randn(shape[:1], generator=g)
    return {**found, "lm_head.weight": found["transformer.wte.weight"]}


def checkpoint(model):
    args = {**SIZES, "dropout": 0.0, "bias": any(name.endswith("bias") for name in model)}
    return {
        "model": model, "optimizer": {"state": {}, "param_groups": []}, "model_args": args, "iter_num": 5,
        "best_val_loss": torch.tensor(1.5), "config": {"out_dir": "out"},
    }  # fmt: skip


def theirs(p, ids):
    """Return the logits by nanoGPT's forward pass."""
    n, heads = SIZES["n_embd"], SIZES["n_head"]
    get = lambda name: (p[f"transformer.{name}.weight"], p.get(f"transformer.{name}.bias"))  # noqa: E731
    x = get("wte")[0][ids] + get("wpe")[0][: ids.shape[1]]
    for i in range(SIZES["n_layer"]):
        q, k, v = F.linear(F.layer_norm(x, (n,), *get(f"h.{i}.ln_1")), *get(f"h.{i}.attn.c_attn")).split(n, -1)
        q, k, v = (part.view(*ids.shape, heads, -1).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + F.linear(y, *get(f"h.{i}.attn.c_proj"))
        h = F.gelu(F.linear(F.layer_norm(x, (n,), *get(f"h.{i}.ln_2")), *get(f"h.{i}.mlp.c_fc")))
        x = x + F.linear(h, *get(f"h.{i}.mlp.c_proj"))
    return F.linear(F.layer_norm(x, (n,), *get("ln_f")), p["lm_head.weight"])


@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
@pytest.mark.parametrize("bias", [True, False])
def test_logits(bias, prefix, tmp_path):
    model = state(bias)
    torch.save(checkpoint({prefix + name: t for name, t in model.items()}), tmp_path / "ckpt.pt")
    found = exchange.read(tmp_path / "ckpt.pt")
    assert found.config.mlp_bias is bias
    assert found.config.activation == "gelu_exact"
    due = theirs(model, torch.tensor(IDS)).detach().numpy()
    assert np.abs(logits(found.config, found.arrays, IDS, "float32") - due).max() <= 1e-4
    assert np.ptp(due) > 1


def test_negated_tensors_and_the_masks_of_older_versions(tmp_path):
    model = state()
    negated = {name: torch._neg_view(-t) if name.endswith("ln_f.bias") else t for name, t in model.items()}
    masks = {f"transformer.h.{i}.attn.bias": torch.ones(1, 1, 12, 12) for i in range(SIZES["n_layer"])}
    torch.save(checkpoint({**negated, **masks}), tmp_path / "ckpt.pt")
    found = exchange.read(tmp_path / "ckpt.pt")
    assert np.array_equal(found.arrays["ln_f.bias"], model["transformer.ln_f.bias"].numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_and_views_are_those_that_torch_reads(dtype, tmp_path):
    model = {name: tensor.to(dtype) for name, tensor in state().items()}
    model["transformer.ln_f.bias"] = torch.arange(40).to(dtype)[11:27]
    model["transformer.wpe.weight"] = torch.nn.Parameter(model["transformer.wpe.weight"])
    beside = {"optimizer": {"state": {7: {"step": 3, (2, doubled(12)): 5}, 2**70: [None, 1e300]}, "n": -(2**70)}}
    torch.save({**checkpoint(model), **beside}, tmp_path / "ckpt.pt")
    found = exchange.read(tmp_path / "ckpt.pt")
    again = torch.load(tmp_path / "ckpt.pt", weights_only=False)["model"]
    assert np.array_equal(found.arrays["wte"], again["transformer.wte.weight"].float().numpy())
    assert np.array_equal(found.arrays["wpe"], again["transformer.wpe.weight"].detach().float().numpy())
    assert np.array_equal(found.arrays["ln_f.bias"], np.arange(11, 27))


class Boom:
    def __reduce__(self):
        return os.mkdir, ("boom",)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"config": Boom()}, "mkdir' besides tensors and plain values"),
        ({"config": np.float32(3)}, "besides tensors and plain values"),
        ({"model_args": {**SIZES, "bias": True, "use_rmsnorm": True}}, "nanoGPT has no setting 'use_rmsnorm'"),
        ({"model_args": {**SIZES, "n_head": None}}, "its n_head is null"),
        ({"model_args": {**SIZES, "block_size": 13}}, "has the shape (12, 16), not the (13, 16) of its model_args"),
        ({"model_args": {**SIZES, "bias": "no"}}, 'mlp_bias is'),
        ({"model_args": 3}, "lacks model or model_args"),
        ({"model": {}}, "lacks the tensor h.0.attn.c_attn.bias. Use the whole model."),
        ({"model": {**state(), "lm_head.weight": torch.zeros(40, 16)}}, "its LM head is not its token embedding"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.full((16,), torch.nan)}}, "holds NaN or infinity"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.zeros(15)}}, "ln_f.bias has the shape"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.zeros(1).expand(16)}}, "a number of its own for each"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.zeros(32)[::2]}}, "a number of its own for each"),
        ({"model": {**state(), "transformer.wpe.weight": torch.zeros(16, 12).T}}, "a number of its own for each"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.zeros(16).to_sparse()}}, "besides tensors and plain"),
        ({"model": {**state(), "transformer.ln_f.bias": torch.zeros(16, dtype=torch.int32)}}, "not a tensor of real"),
        ({"model": {**state(), "transformer.ln_f.bias": 3}}, "not a tensor of real numbers"),
        ({"model": {**state(), "_orig_mod.transformer.ln_f.bias": torch.zeros(16)}}, "or a name twice"),
        ({"model": {**state(), 3: torch.zeros(16)}}, "a tensor without a name"),
        ({"model_args": {**SIZES, ("a",): 1}}, "nanoGPT has no setting ''"),
        ({"model_args": {**SIZES, "vocab_size": 1 << 20}}, "(40, 16), not the (1048576, 16) of its model_args"),
        ({"model_args": {**SIZES, "n_head": doubled(40)}}, "its n_head is a tuple."),
        ({"model_args": {**SIZES, "n_head": [doubled(40)]}}, "its n_head is a list."),
    ],
)  # fmt: skip
def test_what_is_no_checkpoint_is_refused_and_runs_nothing(changed, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({**checkpoint(state()), **changed}, tmp_path / "ckpt.pt")
    with pytest.raises(DataError) as error:
        exchange.read(tmp_path / "ckpt.pt")
    assert words in str(error.value)
    assert not (tmp_path / "boom").exists()
