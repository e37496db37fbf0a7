"""explain against PyTorch: values and gradients of random elements of a trained model, activations too."""

import math

import numpy as np
import pytest

import byhand as bh
from byhand.book.explain.explainer import Explainer
from oracle.torch_reference import as_parameters, torch

pytestmark = pytest.mark.oracle
F = torch.nn.functional
CONFIG = bh.ModelConfig(vocab_size=256, seq_len=24, d_model=32, n_layers=2, n_heads=4)
TEXT = b"To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer"
PROMPT = b"To be, or not"


@pytest.fixture(scope="module")
def trained():
    """A model after forty updates on one sentence: its numbers are those of training, not of a generator."""
    drawn = bh.TinyGPT(CONFIG, seed=2, dtype="float64")
    optimizer = bh.AdamW(lr=0.01)
    data = bh.ByteDataset(np.frombuffer(TEXT, np.uint8))
    for step in range(40):
        tokens, targets = data.sample_batch(4, 24, np.random.default_rng(step))
        drawn.zero_grad()
        drawn.loss(tokens, targets).backward()
        optimizer.step(drawn.parameters())
    return {n: p.data for n, p in drawn.parameters().items()}


def activations(arrays):
    """Return every named tensor of the model as torch computes it, each with its gradient."""
    p = as_parameters(arrays)
    kept = dict(p)

    def keep(name, tensor):
        tensor.retain_grad()
        kept[name] = tensor
        return tensor

    tokens = torch.tensor([list(PROMPT[:-1])])
    t, width, heads = tokens.shape[1], CONFIG.d_model, CONFIG.n_heads
    x = keep("x", keep("tok", F.embedding(tokens, p["wte"])) + p["wpe"][:t])
    hidden = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
    for i in range(CONFIG.n_layers):
        b = f"blocks.{i}"
        h = keep(f"{b}.ln_1", F.layer_norm(x, (width,), eps=1e-5))
        qkv = keep(f"{b}.attn.qkv", h @ p[f"{b}.attn.w_qkv"] + p[f"{b}.attn.b_qkv"])
        parts = (part.view(1, t, heads, -1).transpose(1, 2) for part in qkv.split(width, -1))
        q, k, v = (keep(f"{b}.attn.{n}", part) for n, part in zip("qkv", parts, strict=True))
        scores = keep(f"{b}.attn.scores", q @ k.mT / math.sqrt(width // heads))
        weights = keep(f"{b}.attn.weights", torch.softmax(scores.masked_fill(hidden, -math.inf), -1))
        mixed = keep(f"{b}.attn.mixed", weights @ v)
        merged = keep(f"{b}.attn.merged", mixed.transpose(1, 2).reshape(1, t, width))
        a = keep(f"{b}.attn.out", merged @ p[f"{b}.attn.w_proj"] + p[f"{b}.attn.b_proj"])
        x = keep(f"{b}.x_mid", x + a)
        m = keep(f"{b}.ln_2", F.layer_norm(x, (width,), eps=1e-5))
        pre = keep(f"{b}.mlp.pre", m @ p[f"{b}.mlp.w_fc"] + p[f"{b}.mlp.b_fc"])
        act = keep(f"{b}.mlp.act", F.gelu(pre, approximate="tanh"))
        out = keep(f"{b}.mlp.out", act @ p[f"{b}.mlp.w_out"] + p[f"{b}.mlp.b_out"])
        x = keep(f"{b}.x_out", x + out)
    z = keep("logits", keep("ln_f", F.layer_norm(x, (width,), eps=1e-5)) @ p["lm_head.w"] + p["lm_head.b"])
    loss = keep("loss", F.cross_entropy(z[0], torch.tensor(list(PROMPT[1:]))))
    loss.backward()
    return kept


@pytest.mark.parametrize(("dtype", "relative"), [("float64", 1e-9), ("float32", 1e-3)])
def test_values_and_gradients_of_every_tensor(trained, dtype, relative):
    expected = activations(trained)
    model = bh.TinyGPT(CONFIG, arrays={n: a.astype(dtype) for n, a in trained.items()})
    explainer = Explainer(model, [list(PROMPT[:-1])], [list(PROMPT[1:])])
    assert set(expected) == {*model.parameters(), *explainer.trace.made}
    rng = np.random.default_rng(6)
    for name, tensor in expected.items():
        value, gradient = tensor.detach().numpy(), tensor.grad.numpy()
        index = tuple(int(rng.integers(n)) for n in value.shape)
        shown = explainer.explain(name, index)
        largest = float(np.abs(value).max())
        assert shown.value == pytest.approx(value[index], rel=relative, abs=relative * largest), shown.target
        shown = explainer.explain(name, index, grad=True)
        close = {"rel": relative, "abs": relative * float(np.abs(gradient).max())}
        assert shown.value == pytest.approx(gradient[index], **close), shown.target
        assert shown.difference == pytest.approx(gradient[index], rel=1e-4, abs=1e-4 * float(np.abs(gradient).max()))
        if shown.equations:
            assert shown.term.value == pytest.approx(gradient[index], **close)
