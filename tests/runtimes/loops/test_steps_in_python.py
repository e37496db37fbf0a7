"""Equations without a kernel: a plan runs their own forward and derivative between its kernels, or says why not."""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import byhand as bh
from byhand.cli.measure import plan as plan_command
from byhand.engine import Equation, scope
from byhand.engine.arrays import namespace
from byhand.engine.equation import Symbol, registry
from byhand.engine.terms import element, function, number, total
from byhand.equations import (
    add_positional,
    attention_scores,
    causal_softmax,
    cross_entropy,
    embedding,
    extend_cache,
    layer_norm,
    linear,
    merge_heads,
    mix,
    mul,
    residual,
    split_qkv,
)
from byhand.errors import ConfigError, ShapeError
from byhand.generation import Sampling, generate
from byhand.layers.cache import KVCache
from byhand.runtimes.loops.run import profile
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from byhand.runtimes.loops.run.training import LoopsSession
from runtimes.loops.arrays import gradients_of
from runtimes.texts import texts

GREEDY = Sampling(temperature=0)
CONFIG = bh.ModelConfig(vocab_size=37, seq_len=12, d_model=8, n_layers=2, n_heads=2)


def softplus_forward(x):
    """log(1 + exp x), without overflow."""
    xp = namespace(x)
    return xp.log(1.0 + xp.exp(-xp.abs(x))) + xp.where(x > 0, x, xp.zeros_like(x)), (x,)


def softplus_vjp(saved, d_y):
    (x,) = saved
    return (d_y / (1.0 + namespace(x).exp(-x)),)


def softplus_terms(index, inputs, result):
    return function("log", total((number(1), function("exp", element(inputs, 0, index, "x")))))


@pytest.fixture
def softplus():
    """An activation that no kernel knows, in the registry as long as the test lasts."""
    symbol = Symbol("x", "x", "(...)", "any array")
    yield Equation(
        name="softplus", title="Softplus", latex="y", derivative="y", inputs=(symbol,), result=symbol,
        forward=softplus_forward, vjp=softplus_vjp, terms=softplus_terms, role="activation",
        flops=lambda x: (7 * int(np.prod(x)), 3 * int(np.prod(x))),
    )  # fmt: skip
    del registry["softplus"]


@dataclass(eq=False)
class Model:
    """A model of the usual blocks, with places at which a test puts an equation of its own."""

    activation: object = None
    of_token: object = staticmethod(lambda x: x)
    of_weights: object = staticmethod(lambda p: p)
    config: bh.ModelConfig = CONFIG
    arrays: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(5)
        shapes = {k: p.shape for k, p in bh.TinyGPT(self.config).parameters().items()}
        self.arrays = {
            name: bh.Tensor((0.4 * rng.standard_normal(shape)).astype(np.float32), True, name)
            for name, shape in shapes.items()
        }
        self.dtype = np.dtype("float32")

    def parameters(self):
        return dict(self.arrays)

    def loss(self, tokens, targets):
        return cross_entropy(self.logits_of(tokens), targets, name="loss")

    def cache_shapes(self):
        return [(self.config.n_heads, self.config.head_width)] * self.config.n_layers

    cache, decode, _checked = bh.TinyGPT.cache, bh.TinyGPT.decode, bh.TinyGPT._checked

    def forward_logits(self, tokens):
        return self.logits_of(np.asarray(tokens))

    def logits_of(self, tokens):
        return self.forward(tokens)[0]

    def forward(self, tokens, cache=None):
        p, before, kept = self.arrays, [cache.length] if cache else [], []
        x = self.of_token(embedding(p["wte"], tokens, name="tok"))
        x = add_positional(x, p["wpe"], *before, name="x")
        for i in range(self.config.n_layers):
            with scope(f"blocks.{i}"):
                a, after = self.attention(layer_norm(x, name="ln_1"), i, before, cache.blocks[i] if cache else ())
                kept.append(after)
                x = residual(x, a, name="x_mid")
                pre = linear(layer_norm(x, name="ln_2"), *self.of("mlp", i, "w_fc", "b_fc"), name="pre")
                x = residual(x, linear(self.activation(pre, name="act"), *self.of("mlp", i, "w_out", "b_out")))
        logits = linear(layer_norm(x, name="ln_f"), p["lm_head.w"], p["lm_head.b"], name="logits")
        return logits, cache and KVCache(tuple(kept), cache.length + tokens.shape[1])

    def attention(self, x, i, before, kept):
        qkv = linear(x, *self.of("attn", i, "w_qkv", "b_qkv"), name="qkv")
        q, k, v = split_qkv(qkv, n_heads=self.config.n_heads, name="split")
        if kept:
            k, v = kept = tuple(extend_cache(old, new, *before) for old, new in zip(kept, (k, v), strict=True))
        weights = self.of_weights(causal_softmax(attention_scores(q, k, name="scores"), *before, name="weights"))
        merged = merge_heads(mix(weights, v, name="mixed"), name="merged")
        return linear(merged, *self.of("attn", i, "w_proj", "b_proj")), kept

    def of(self, part, i, *names):
        return [self.arrays[f"blocks.{i}.{part}.{name}"] for name in names]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_greedy_text_is_the_numpy_runtimes(softplus, threads):
    """30 tokens from 5: through the window of 12, and on past it, where the cache is filled anew."""
    gpt = Model(softplus)
    decoder = LoopsDecoder(gpt, threads=threads)
    text = texts(decoder, [[1, 2, 3, 4, 5]], 30)[:, 0].tolist()
    assert text == list(generate(gpt, [1, 2, 3, 4, 5], 30, GREEDY, runtime="numpy"))
    assert decoder.made_by == {1: 30}, "steps in Python run in one thread"


def test_streams_side_by_side_and_sampling(softplus):
    gpt = Model(softplus)
    prompts = np.random.default_rng(2).integers(0, 37, (4, 6))
    together = texts(LoopsDecoder(gpt, 4, 2), prompts, 20)
    for i, prompt in enumerate(prompts):
        assert together[:, i].tolist() == list(generate(gpt, prompt, 20, GREEDY, runtime="numpy"))
    sampling = Sampling(0.9, top_k=9, seed=4)
    text = generate(gpt, [7], 40, sampling)
    assert (text.runtime, text.why) == ("loops", "")
    assert list(text) == list(generate(gpt, [7], 40, sampling, runtime="numpy"))


def test_a_plan_shows_the_steps_in_python_with_their_operations(softplus):
    decoder = LoopsDecoder(Model(softplus), threads=2)
    for plan, positions in ((decoder.decoding, 1), (decoder.filling(7), 7)):
        steps = [call for call in plan.shares[0].calls if call.kernel == "reference"]
        assert [call.node.equation.name for call in steps] == ["softplus"] * (2 if plan is decoder.decoding else 1)
        assert {call.flops for call in steps} == {7 * positions * CONFIG.ff_width}
        assert not any(call.step for share in plan.shares[1:] for call in share.calls)
    times = profile.time_calls(decoder, 0, 1)
    assert len(times) == len(decoder.decoding.shares[0].calls)


def test_the_command_shows_them_too(softplus, monkeypatch, capsys):
    monkeypatch.setattr(plan_command, "TinyGPT", lambda config: Model(softplus))
    plan_command.main(["--of", "decode", "--shape", "1,12,8,2,2,37", "--steps", "1"])
    assert re.search("reference +softplus", capsys.readouterr().out)


def test_training_goes_through_its_own_halves(softplus):
    fast, slow = Model(softplus), Model(softplus)
    rng = np.random.default_rng(1)
    tokens, targets = rng.integers(0, 37, (2, 3, 9))
    runtime = LoopsSession(fast, bh.AdamW(lr=0.0, weight_decay=0.0), 2)
    loss, _ = runtime.step([(tokens, targets)])
    expected = slow.loss(tokens, targets)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for name, gradient in gradients_of(runtime).items():
        np.testing.assert_allclose(gradient, slow.arrays[name].grad, atol=2e-5)
    steps = [call for call in runtime.plan("train", (3, 9)).calls if call.kernel == "reference"]
    assert [call.flops for call in steps] == [share * 2 * 9 * CONFIG.ff_width for share in (7, 7, 3, 3)]


def test_a_constant_of_an_equation_keeps_its_type(softplus):
    gpt = Model(lambda x, name: mul(softplus(x, name=name), np.array([0.5, 2.0] * 16, np.float32)))
    text = generate(gpt, [1, 2], 20, GREEDY)
    assert text.runtime == "loops"
    assert list(text) == list(generate(gpt, [1, 2], 20, GREEDY, runtime="numpy"))


def test_an_equation_may_read_the_position(softplus):
    """Whatever stands between the token's row and its position's, no kernel of embeddings takes both."""
    gpt = Model(softplus, of_token=lambda x: mul(x, np.float32(2)))
    decoder = LoopsDecoder(gpt, threads=2)
    steps = [call.node.equation.name for call in decoder.decoding.shares[0].calls if call.kernel == "reference"]
    assert steps[:2] == ["mul", "add_positional"]
    text = texts(decoder, [[1, 2, 3]], 30)[:, 0].tolist()
    assert text == list(generate(gpt, [1, 2, 3], 30, GREEDY, runtime="numpy"))


def test_what_reads_the_cache_without_a_kernel_is_generated_by_numpy(softplus):
    gpt = Model(softplus, of_weights=lambda p: mul(p, np.float32(2)))
    why = "no kernel generates with mul between causal_softmax and mix"
    for _ in range(2):
        text = generate(gpt, [1, 2], 8, GREEDY)
        assert text.runtime == "numpy"
        assert text.why == f"{why}."
        assert list(text) == list(generate(gpt, [1, 2], 8, GREEDY, runtime="numpy"))
    with pytest.raises(ConfigError, match=why):
        generate(gpt, [1, 2], 8, GREEDY, runtime="loops")


def test_logits_that_are_not_finite_are_refused(softplus):
    gpt = Model(softplus)
    gpt.arrays["blocks.0.mlp.w_fc"].data[:] = np.inf
    with pytest.raises(bh.errors.NonFiniteError):
        list(generate(gpt, [1, 2], 8, GREEDY, runtime="loops"))


@pytest.mark.parametrize(
    "vjp",
    [lambda saved, d: (d[..., :1],), lambda saved, d: (), lambda saved, d: (d, d)],
    ids=["shape", "none", "two"],
)
def test_a_wrong_vjp_is_named_and_nothing_is_updated(softplus, vjp):
    """NumPy would broadcast a gradient of length 1 into the arena, and training would go on to wrong weights."""
    object.__setattr__(softplus, "vjp", vjp)
    model, optimizer = bh.TinyGPT(replace(CONFIG, activation="softplus")), bh.AdamW()
    before = {name: p.data.copy() for name, p in model.parameters().items()}
    session = LoopsSession(model, optimizer, threads=1)
    tokens = np.arange(12).reshape(2, 6)
    with pytest.raises(ShapeError, match="softplus: the vjp gives gradients of shapes"):
        session.step([(tokens, tokens)], 1.0)
    with pytest.raises(ShapeError, match="softplus: the vjp gives gradients of shapes"):
        model.loss(tokens, tokens).backward()
    assert optimizer.t == 0
    assert all(np.array_equal(p.data, before[name]) for name, p in model.parameters().items())
