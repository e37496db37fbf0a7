import math
from importlib import import_module

import numpy as np
import pytest

import byhand.equations  # noqa: F401 - fills the registry
from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers.closed_form import array, several
from byhand.engine import Tensor, registry
from oracle.torch_reference import F, torch

pytestmark = pytest.mark.oracle
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape)


def causal(scores):
    t, s = scores.shape[-2:]
    return F.softmax(scores.masked_fill(torch.ones(t, s).tril(s - t) == 0, -torch.inf), dim=-1)


def heads(x, n_heads):
    b, t, c = x.shape
    return tuple(part.reshape(b, t, n_heads, -1).transpose(1, 2) for part in x.split(c // 3, dim=-1))


def self_attention(h, w_qkv, b_qkv, w_proj, b_proj, n_heads, is_causal):
    q, k, v = heads(h @ w_qkv + b_qkv, n_heads)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    return mixed.transpose(1, 2).flatten(2) @ w_proj + b_proj


def adamw_step(theta, g, m, v, lr, t, beta1, beta2, eps, weight_decay):
    m, v = torch.lerp(g, m, beta1), torch.lerp(g * g, v, beta2)
    m_hat, v_hat = m / (1 - beta1 ** t.item()), v / (1 - beta2 ** t.item())
    return (1 - lr * weight_decay) * theta - lr * m_hat / (v_hat.sqrt() + eps), m, v


def kept(z, keep):
    return torch.where(keep, z, -torch.inf)


def top_k(z, k):
    return kept(z, z >= z.topk(k).values[..., -1:])


def top_p(z, p):
    order = z.argsort(descending=True)
    probabilities = F.softmax(z, dim=-1).gather(-1, order)
    keep = probabilities.cumsum(-1) - probabilities < p
    return kept(z, torch.zeros_like(keep).scatter(-1, order, keep))


ATTENTION = (normal(2, 3, 4), normal(4, 12), normal(12), normal(4, 4), normal(4))
MOMENTS = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1}
CASES = {  # equation: (what torch calls it, inputs, static settings)
    "adamw": (
        lambda *x: adamw_step(*x, **MOMENTS),
        (*(normal(2, 3) for _ in range(3)), normal(2, 3) ** 2 + 0.1, np.array(0.3), np.array(4)),
        MOMENTS,
    ),
    "add": (torch.add, (normal(2, 1, 3), normal(4, 1)), {}),
    "add_positional": (lambda e, w, start: e + w[1:4], (normal(2, 3, 4), normal(6, 4), np.array(1)), {}),
    "attention_scores": (
        lambda q, k: torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(5),
        (normal(2, 3, 4, 5), normal(2, 3, 2, 5)),
        {},
    ),
    "causal_self_attention": (lambda *x: self_attention(*x, 2, True), ATTENTION, {"n_heads": 2}),
    "causal_softmax": (causal, (normal(2, 3, 3, 5),), {}),
    "cross_entropy": (
        lambda z, y: F.cross_entropy(z.flatten(0, -2), y.flatten()),
        (normal(2, 3, 5), RNG.integers(0, 5, (2, 3))),
        {},
    ),
    "embedding": (lambda w, i: F.embedding(i, w), (normal(4, 3), RNG.integers(0, 4, (3, 5))), {}),
    "gelu": (lambda x: F.gelu(x, approximate="tanh"), (3 * normal(4, 5),), {}),
    "layer_norm": (
        lambda x, g, b: F.layer_norm(x, (5,), g, b, 1e-3),
        (normal(2, 3, 5), normal(5), normal(5)),
        {"eps": 1e-3},
    ),
    "linear": (lambda x, w, b: F.linear(x, w.T, b), (normal(2, 3, 4), normal(4, 5), normal(5)), {}),
    "matmul": (torch.matmul, (normal(2, 1, 3, 4), normal(5, 4, 2)), {}),
    "merge_heads": (lambda x: x.transpose(1, 2).flatten(2), (normal(2, 3, 4, 5),), {}),
    "mix": (lambda p, v: torch.einsum("bhts,bhsd->bhtd", p, v), (normal(2, 3, 4, 5), normal(2, 3, 5, 2)), {}),
    "mul": (torch.mul, (normal(3, 1), normal(2, 1, 4)), {}),
    "relu": (F.relu, (normal(4, 5),), {}),
    "reshape": (lambda x: x.reshape(4, -1), (normal(2, 6),), {"shape": (4, -1)}),
    "residual": (torch.add, (normal(2, 3), normal(2, 3)), {}),
    "softmax": (lambda x: F.softmax(x, dim=-1), (normal(3, 5),), {}),
    "split_qkv": (lambda x: heads(x, 2), (normal(2, 3, 12),), {"n_heads": 2}),
    "temperature": (lambda z: z / 0.7, (normal(2, 5),), {"tau": 0.7}),
    "top_k": (lambda z: top_k(z, 3), (normal(4, 7),), {"k": 3}),
    "top_p": (lambda z: top_p(z, 0.7), (normal(4, 7),), {"p": 0.7}),
    "transpose": (lambda x: x.mT, (normal(2, 3, 4),), {}),
}
MORE = {
    "causal_self_attention": (
        lambda *x: self_attention(*x, 1, False),
        ATTENTION,
        {"n_heads": 1, "causal": False},
    ),
    "causal_softmax": (causal, (normal(2, 4, 4),), {}),
    "layer_norm": (lambda x: F.layer_norm(x, (2,), eps=1e-5), (normal(4, 2),), {}),
    "linear": (lambda x, w: F.linear(x, w.T), (normal(4), normal(4, 1)), {}),
}


def own_cases():
    """Return the cases of equations that are not above: `witnesses(torch)` in their own test files."""
    files = {name: import_module(f"equations.test_{name}") for name in sorted(set(registry) - set(CASES))}
    return {name: file.witnesses(torch) for name, file in files.items() if hasattr(file, "witnesses")}


OWN = own_cases()


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize(
    ("name", "case"),
    [*CASES.items(), *MORE.items(), *((name, case) for name, cases in OWN.items() for case in cases)],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_forward_and_gradients(name, case):
    theirs, inputs, static = case
    floats = [x.dtype.kind == "f" for x in inputs]
    tensors = [torch.tensor(x, requires_grad=f) for x, f in zip(inputs, floats, strict=True)]
    expected = as_tuple(theirs(*tensors))
    leaves = [Tensor(x, requires_grad=f) for x, f in zip(inputs, floats, strict=True)]
    results = as_tuple(registry[name](*leaves, **static))
    cotangents = [normal(*r.shape) for r in results]
    torch.autograd.backward(expected, [torch.from_numpy(np.asarray(d)) for d in cotangents])
    for result, d in zip(results, cotangents, strict=True):
        result.backward(d)

    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.data, value.detach().numpy(), rtol=1e-10, atol=1e-10)
    for leaf, tensor in zip(leaves, tensors, strict=True):
        assert (leaf.grad is None) == (tensor.grad is None)
        if leaf.grad is not None:
            np.testing.assert_allclose(leaf.grad, tensor.grad.numpy(), rtol=1e-10, atol=1e-10)


def test_every_equation_has_a_witness():
    assert {*CASES, *OWN} == set(registry)


@pytest.mark.parametrize("stem", [stem for stem, entry in ENTRIES.items() if entry.torch])
def test_torchs_line_makes_the_entrys_numbers(stem):
    entry, names = ENTRIES[stem], {"torch": torch, "F": F, "math": math}
    for name, numbers in entry.inputs.items():
        tensor = torch.tensor(array(numbers, name not in entry.gradients), requires_grad=name in entry.gradients)
        names[name] = tensor if tensor.ndim else tensor.item()
    updated = names.get("theta")
    if updated is not None:  # by a new optimizer, whose state is 0
        updated.grad = names["g"].detach()
    result = eval(entry.torch, names, dict(entry.static))
    if updated is not None:
        near = 1e-2 if stem == "muon" else 1e-7  # torch's Muon orthogonalises in bfloat16
        np.testing.assert_allclose(updated.detach(), array(entry.result[0]), rtol=0, atol=near)
        return
    results, d_results = several(entry.result), [torch.tensor(array(d)) for d in several(entry.d_result)]
    made = tuple(result) if len(results) > 1 else (result,)
    for tensor, numbers in zip(made, results, strict=True):
        np.testing.assert_allclose(tensor.detach(), array(numbers), rtol=0, atol=1e-12)
    sources = [names[name] for name in entry.gradients]
    for made_d, numbers in zip(torch.autograd.grad(made, sources, d_results), entry.gradients.values(), strict=True):
        np.testing.assert_allclose(made_d, array(numbers), rtol=0, atol=1e-12)
