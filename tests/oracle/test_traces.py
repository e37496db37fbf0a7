"""Every activation, gradient, moment and new parameter of traces against PyTorch, in float64.

Five models: the three of the guide "Port a GPT", one with adapters, and one that was trained. The peer is written
with torch's own functions; a hook on each activation keeps its gradient.
"""

import dataclasses

import numpy as np
import pytest

from byhand import ModelConfig, TinyGPT
from byhand.book.port import model as page
from byhand.book.port.comparing import difference, of_page
from byhand.book.port.recording import recorded
from byhand.book.port.theirs import Theirs
from byhand.optim import AdamW
from byhand.tracing.questions import Questions
from oracle.torch_reference import F, as_parameters, torch

pytestmark = pytest.mark.oracle
LORA = ModelConfig(vocab_size=11, seq_len=6, d_model=8, n_layers=2, n_heads=2, lora=2)


class Peer:
    """The family in torch, which keeps each activation under the trace's name."""

    def __init__(self, config, arrays):
        self.config, self.kept, self.p = config, {}, as_parameters(arrays)

    def keep(self, name, x):
        x.requires_grad and x.retain_grad()
        self.kept[name] = x
        return x

    def linear(self, x, name, bias, out):
        y = self.keep(out, F.linear(x, self.p[name].T, self.p.get(bias)))
        if f"{name}_a" not in self.p:
            return y
        low = self.keep(f"{out}_low", x @ self.p[f"{name}_a"])
        return self.keep(f"{out}_adapted", y + self.config.lora_scale * low @ self.p[f"{name}_b"])

    def norm(self, x, name):
        c, gain, bias = self.config, self.p.get(f"{name}.gain"), self.p.get(f"{name}.bias")
        made = (
            F.rms_norm(x, x.shape[-1:], gain, c.norm_eps)
            if c.norm == "rms"
            else F.layer_norm(x, x.shape[-1:], gain, bias, c.norm_eps)
        )
        return self.keep(name, made)

    def turned(self, x, name):
        c, (half, t) = self.config, (x.shape[-1] // 2, x.shape[-2])
        angles = torch.arange(t)[:, None] * c.rope_base ** (-torch.arange(half, dtype=x.dtype) / half)
        (a, b), cos, sin = x.split(half, -1), angles.cos(), angles.sin()
        return self.keep(name, torch.cat((a * cos - b * sin, b * cos + a * sin), -1))

    def attention(self, x, at):
        c, (b, t, _) = self.config, x.shape
        qkv = self.linear(x, f"{at}.w_qkv", f"{at}.b_qkv", f"{at}.qkv")
        heads = c.n_heads, c.kv_heads, c.kv_heads
        parts = qkv.split([n * c.head_width for n in heads], -1)
        q, k, v = (
            self.keep(f"{at}.{n}", part.reshape(b, t, h, -1).transpose(1, 2))
            for n, part, h in zip("qkv", parts, heads, strict=True)
        )
        if c.positions == "rotary":
            q, k = self.turned(q, f"{at}.q_turned"), self.turned(k, f"{at}.k_turned")
        if c.kv_heads != c.n_heads:
            k, v = (
                self.keep(f"{at}.{n}", y.repeat_interleave(c.n_heads // c.kv_heads, 1))
                for n, y in (("keys", k), ("values", v))
            )
        scores = self.keep(f"{at}.scores", q @ k.transpose(-1, -2) / c.head_width**0.5)
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = self.keep(f"{at}.weights", scores.masked_fill(hidden, -torch.inf).softmax(-1))
        mixed = self.keep(f"{at}.mixed", weights @ v)
        merged = self.keep(f"{at}.merged", mixed.transpose(1, 2).reshape(b, t, -1))
        return self.linear(merged, f"{at}.w_proj", f"{at}.b_proj", f"{at}.out")

    def mlp(self, x, at):
        if self.config.activation == "swiglu":
            gate, up = (self.linear(x, f"{at}.w_{n}", f"{at}.b_{n}", f"{at}.{n}") for n in ("gate", "up"))
            act = F.silu(gate) * up
        else:
            pre = self.linear(x, f"{at}.w_fc", f"{at}.b_fc", f"{at}.pre")
            act = pre.relu() if self.config.activation == "relu" else F.gelu(pre, approximate="tanh")
        return self.linear(self.keep(f"{at}.act", act), f"{at}.w_out", f"{at}.b_out", f"{at}.out")

    def loss(self, tokens, targets):
        c, p = self.config, self.p
        x = self.keep("tok", F.embedding(torch.tensor(tokens), p["wte"]))
        if c.positions == "learned":
            x = self.keep("x", x + p["wpe"][: x.shape[1]])
        x = self.norm(x, "ln_0") if c.embedding_norm else x
        for i in range(c.n_layers):
            at = f"blocks.{i}"
            x = self.keep(f"{at}.x_mid", x + self.attention(self.norm(x, f"{at}.ln_1"), f"{at}.attn"))
            x = self.keep(f"{at}.x_out", x + self.mlp(self.norm(x, f"{at}.ln_2"), f"{at}.mlp"))
        x = self.norm(x, "ln_f") if c.final_norm else x
        head = p["wte"] if c.tied_embeddings else p["lm_head.w"].T
        z = self.keep("logits", F.linear(x, head, p.get("lm_head.b")))
        return self.keep("loss", F.cross_entropy(z.flatten(0, 1), torch.tensor(targets).flatten()))


def arrays_of(questions, tokens, targets, **adamw):
    """Return what the peer computes, under the trace's names."""
    ours = questions.model.parameters()
    peer = Peer(questions.model.config, {name: p.data for name, p in ours.items()})
    trained = {name: peer.p[name] for name, p in ours.items() if p.requires_grad}
    peer.loss(tokens, targets).backward()
    found = {name: x.detach().numpy().copy() for name, x in (peer.kept | peer.p).items()}
    graded = {name: x.grad for name, x in (peer.kept | trained).items() if x.grad is not None}
    found |= {f"grad/{name}": d.numpy().copy() for name, d in graded.items()}
    decays = adamw.pop("weight_decay")
    groups = [
        {"params": [p for p in trained.values() if (p.ndim > 1) == wide], "weight_decay": decays * wide}
        for wide in (True, False)
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], **adamw)
    norm = torch.nn.utils.get_total_norm([p.grad for p in trained.values()])
    optimizer.step()
    for name, p in trained.items():
        state = optimizer.state[p]
        found |= {f"m/{name}": state["exp_avg"].numpy(), f"v/{name}": state["exp_avg_sq"].numpy()}
        found[f"new/{name}"] = p.detach().numpy()
    return found | {"gradient_norm": norm.numpy()}


def batch_of(config):
    """Return tokens and targets by formula."""
    text = np.arange(2 * (config.seq_len + 1)).reshape(2, -1) ** 2 % config.vocab_size
    return text[:, :-1], text[:, 1:]


def filled(config, updates=0):
    """Return the questions about a model with weights by formula, after so many updates."""
    tokens, targets = batch_of(config)
    arrays = {
        name: np.cos(np.arange(p.data.size) * 1.7 + i).reshape(p.shape) / 3
        for i, (name, p) in enumerate(TinyGPT(config).parameters().items())
    }
    network, optimizer = TinyGPT(config, arrays=arrays), AdamW(**page.STEP)
    for _ in range(updates):
        network.zero_grad()
        network.loss(tokens, targets).backward()
        optimizer.step(network.parameters())
    return Questions(network, tokens, targets, AdamW(**page.STEP)), tokens, targets


def of_the_page(name):
    """Return the questions about one of the page's models."""
    return page.questions(name), *page.filled(config=page.CONFIGS[name])[1:]


def adamw_of(config):
    """Return the settings of a case's step that torch's optimizer takes."""
    return {key: page.step_of(config)[key] for key in ("lr", "betas", "eps", "weight_decay")}


CASES = {
    "gpt": lambda: of_the_page("gpt"),
    "llama": lambda: of_the_page("llama"),
    "microgpt": lambda: of_the_page("microgpt"),
    "adapters": lambda: filled(LORA),
    "trained": lambda: filled(dataclasses.replace(page.GPT, d_model=12, n_heads=3, norm_eps=1e-5), updates=5),
}


@pytest.mark.parametrize("name", CASES)
def test_every_array_of_a_trace_is_pytorchs(name):
    questions, tokens, targets = CASES[name]()
    ours = recorded(questions)
    found = arrays_of(questions, tokens, targets, **adamw_of(questions.model.config))
    compared = difference(ours, {n: Theirs(a.shape, lambda a=a: a) for n, a in found.items()})
    assert [str(each) for each in compared.wrong] == []
    # The peer keeps no token ids, and no transposed table as an array of its own.
    own = {each.name for each in ours.arrays if each.equation == "transpose"}
    due = {each.name for each in ours.arrays} - own - {f"grad/{each}" for each in own} - {"tokens", "targets"}
    assert due == {each.name for each in compared.checked}


def test_the_page_is_traced_as_it_is_computed():
    assert of_page("gpt").named("loss").array == page.numbers()[0]
    assert of_page("gpt").named("gradient_norm").array == page.numbers()[1]
