import math

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor, no_grad
from byhand.engine.graph.outline import Outline
from byhand.errors import ConfigError, DataError, ShapeError
from byhand.layers.cache import KVCache
from byhand.model import parameter_shapes
from model_cases import batch, every_setting, parameters, setting_name, swept

SEEDS = bh.ModelConfig(vocab_size=11, seq_len=6, d_model=4, n_layers=2)
DOCUMENT_004 = bh.ModelConfig(
    vocab_size=11, seq_len=6, d_model=4, n_layers=2, n_heads=2, norm_position="post", activation="relu"
)
GPT_2 = bh.ModelConfig(
    vocab_size=11, seq_len=6, d_model=4, n_heads=2, norm_affine=True, tied_embeddings=True, lm_head_bias=False
)


def nodes(root: Tensor):
    """Every application that made a tensor."""
    seen, waiting = {}, [root]
    while waiting:
        node = waiting.pop().node
        if node is not None and id(node) not in seen:
            seen[id(node)] = node
            waiting.extend(node.inputs)
    return list(seen.values())


def some_batch(config, rows=2):
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (rows, config.seq_len + 1))
    return tokens[:, :-1], tokens[:, 1:]


class TestParameters:
    def test_the_seeds_model(self):
        block = {
            "attn.w_qkv": (4, 12),
            "attn.b_qkv": (12,),
            "attn.w_proj": (4, 4),
            "attn.b_proj": (4,),
            "mlp.w_fc": (4, 16),
            "mlp.b_fc": (16,),
            "mlp.w_out": (16, 4),
            "mlp.b_out": (4,),
        }
        expected = {"wte": (11, 4), "wpe": (6, 4)}
        for i in range(2):
            expected |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
        expected |= {"lm_head.w": (4, 11), "lm_head.b": (11,)}
        model = bh.TinyGPT(SEEDS)
        assert {name: p.shape for name, p in model.parameters().items()} == expected
        assert list(model.parameters()) == list(expected)
        assert all(p.name == name and p.requires_grad for name, p in model.parameters().items())

    def test_norms_with_gain_and_bias(self):
        norms = {name: shape for name, shape in parameter_shapes(GPT_2).items() if ".gain" in name or ".bias" in name}
        assert norms == {
            f"{n}.{k}": (4,) for n in ("blocks.0.ln_1", "blocks.0.ln_2", "ln_f") for k in ("gain", "bias")
        }

    @pytest.mark.parametrize("config", swept())
    def test_every_switch_adds_or_takes_away_its_own(self, config):
        names = set(parameter_shapes(config))
        affine, post = config.norm_affine, config.norm_position == "post"
        assert ("lm_head.w" in names) == (not config.tied_embeddings)
        assert ("lm_head.b" in names) == config.lm_head_bias
        assert ("ln_f.gain" in names) == (affine and not post)
        assert ("blocks.1.ln_2.bias" in names) == affine
        n_norms = (2 * config.n_layers + (not post)) * 2 if affine else 0
        n_heads = (not config.tied_embeddings) + config.lm_head_bias
        assert len(names) == 2 + 8 * config.n_layers + n_norms + n_heads

    def test_the_width_of_the_mlp(self):
        shapes = parameter_shapes(bh.ModelConfig(d_model=4, d_ff=3))
        assert shapes["blocks.0.mlp.w_fc"] == (4, 3)
        assert shapes["blocks.0.mlp.w_out"] == (3, 4)

    def test_a_seed_decides_the_initial_numbers(self):
        one, same, other = (bh.TinyGPT(SEEDS, seed=s).parameters() for s in (1, 1, 2))
        for name, p in one.items():
            np.testing.assert_array_equal(p.data, same[name].data)
            assert p.ndim == 1 or (p.data != other[name].data).any()

    def test_initial_numbers(self):
        config = bh.ModelConfig(d_model=64, n_layers=8, norm_affine=True)
        p = bh.TinyGPT(config).parameters()
        assert not p["blocks.0.attn.b_qkv"].data.any()
        assert (p["blocks.0.ln_1.gain"].data == 1).all()
        for name in ("wte", "blocks.0.attn.w_qkv", "blocks.7.mlp.w_fc", "lm_head.w"):
            assert p[name].data.std() == pytest.approx(0.02, rel=0.05)
        for name in ("blocks.0.attn.w_proj", "blocks.7.mlp.w_out"):
            assert p[name].data.std() == pytest.approx(0.02 / 4, rel=0.05)

    def test_given_arrays_are_taken_as_they_are(self):
        arrays = parameters(SEEDS)
        model = bh.TinyGPT(SEEDS, arrays=arrays)
        assert all(p.data is arrays[name] for name, p in model.parameters().items())
        assert model.dtype == np.float64

    def test_the_mapping_is_the_callers(self):
        model = bh.TinyGPT(SEEDS)
        model.parameters().clear()
        assert "wte" in model.parameters()

    def test_arrays_that_do_not_fit(self):
        good = parameters(SEEDS)
        wrong = {
            "lacks 'wpe'": {name: a for name, a in good.items() if name != "wpe"},
            "has 'extra', which the model does not know": {**good, "extra": good["wte"]},
            r"parameter wpe has shape \(5, 4\), but the config says \(6, 4\)": {**good, "wpe": good["wpe"][:5]},
            "parameter wpe is float32. Use float32 or float64 for all": {
                **good,
                "wpe": good["wpe"].astype(np.float32),
            },
            "parameter wte is float16": {name: a.astype(np.float16) for name, a in good.items()},
        }
        for message, arrays in wrong.items():
            with pytest.raises(ShapeError, match=message):
                bh.TinyGPT(SEEDS, arrays=arrays)


class TestForward:
    def test_logits_and_loss(self):
        model, (tokens, targets) = bh.TinyGPT(SEEDS), some_batch(SEEDS)
        logits, loss = model.forward_logits(tokens), model.loss(tokens, targets)
        assert logits.shape == (2, 6, 11)
        assert loss.shape == ()
        z = logits.data.astype(np.float64)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        by_hand = -np.mean([log_p[b, t, targets[b, t]] for b in range(2) for t in range(6)])
        assert loss.item() == pytest.approx(by_hand, rel=1e-5)

    def test_a_fresh_model_knows_nothing(self):
        config = bh.ModelConfig(d_model=32, n_layers=2, n_heads=4)
        assert bh.TinyGPT(config).loss(*some_batch(config)).item() == pytest.approx(math.log(256), abs=0.05)

    @pytest.mark.parametrize("length", [1, 3, 6])
    def test_any_length_up_to_seq_len(self, length):
        model = bh.TinyGPT(SEEDS, dtype="float64")
        tokens, _ = some_batch(SEEDS)
        assert model.forward_logits(tokens[:, :length]).shape == (2, length, 11)
        whole = model.forward_logits(tokens).data[:, :length]
        np.testing.assert_allclose(model.forward_logits(tokens[:, :length]).data, whole, rtol=1e-12, atol=1e-12)

    def test_tokens_may_be_a_list(self):
        assert bh.TinyGPT(SEEDS).forward_logits([[1, 2, 3]]).shape == (1, 3, 11)

    @pytest.mark.parametrize("config", every_setting()[::9], ids=setting_name)
    def test_only_an_open_model_sees_the_future(self, config):
        model = bh.TinyGPT(config, arrays=parameters(config))
        tokens, _ = batch(config)
        changed = tokens.copy()
        changed[:, -1] = (changed[:, -1] + 1) % config.vocab_size
        before, after = (model.forward_logits(t).data[:, :-1] for t in (tokens, changed))
        assert (before == after).all() == config.causal

    def test_rows_of_a_batch_do_not_meet(self):
        model, (tokens, _) = bh.TinyGPT(SEEDS, dtype="float64"), some_batch(SEEDS)
        alone = np.concatenate([model.forward_logits(row[None]).data for row in tokens])
        np.testing.assert_allclose(model.forward_logits(tokens).data, alone, rtol=1e-12, atol=1e-12)

    def test_activations_go_by_dotted_names(self):
        loss = bh.TinyGPT(SEEDS).loss(*some_batch(SEEDS))
        attention = {f"attn.{part}" for part in ("qkv", "heads", "scores", "weights", "mixed", "merged", "out")}
        block = attention | {"ln_1", "x_mid", "ln_2", "mlp.pre", "mlp.act", "mlp.out", "x_out"}
        blocks = {f"blocks.{i}.{name}" for i in range(2) for name in block}
        assert {node.name for node in nodes(loss)} == {"tok", "x", "ln_f", "logits", "loss"} | blocks

    def test_no_grad_gives_the_same_numbers_and_no_graph(self):
        model, (tokens, targets) = bh.TinyGPT(SEEDS), some_batch(SEEDS)
        with no_grad():
            loss = model.loss(tokens, targets)
        assert loss.node is None
        assert loss.item() == model.loss(tokens, targets).item()


class TestSettings:
    def test_document_004_has_its_norms_after_the_sums_and_none_at_the_end(self):
        model, (tokens, _) = bh.TinyGPT(DOCUMENT_004), some_batch(DOCUMENT_004)
        by_name = {node.name: node for node in nodes(model.forward_logits(tokens))}
        made_from = {name: [t.name for t in node.inputs] for name, node in by_name.items()}
        assert made_from["blocks.0.attn.qkv"][0] == "x"
        assert made_from["blocks.0.x_mid"] == ["x", "blocks.0.attn.out"]
        assert made_from["blocks.0.ln_1"] == ["blocks.0.x_mid"]
        assert made_from["blocks.0.mlp.pre"][0] == "blocks.0.ln_1"
        assert made_from["blocks.0.x_out"] == ["blocks.0.ln_1", "blocks.0.mlp.out"]
        assert made_from["blocks.1.attn.qkv"][0] == "blocks.0.ln_2"
        assert made_from["logits"][0] == "blocks.1.ln_2"
        assert by_name["blocks.0.mlp.act"].equation.name == "relu"
        assert "ln_f" not in by_name

    def test_the_seeds_model_has_its_norms_before_the_sublayers_and_one_at_the_end(self):
        model, (tokens, _) = bh.TinyGPT(SEEDS), some_batch(SEEDS)
        by_name = {node.name: node for node in nodes(model.forward_logits(tokens))}
        made_from = {name: [t.name for t in node.inputs] for name, node in by_name.items()}
        assert made_from["blocks.0.ln_1"] == ["x"]
        assert made_from["blocks.0.attn.qkv"][0] == "blocks.0.ln_1"
        assert made_from["blocks.0.x_mid"] == ["x", "blocks.0.attn.out"]
        assert made_from["blocks.0.mlp.pre"][0] == "blocks.0.ln_2"
        assert made_from["blocks.0.x_out"] == ["blocks.0.x_mid", "blocks.0.mlp.out"]
        assert made_from["ln_f"] == ["blocks.1.x_out"]
        assert made_from["logits"] == ["ln_f", "lm_head.w", "lm_head.b"]
        assert by_name["blocks.0.mlp.act"].equation.name == "gelu"

    def test_a_tied_table_is_learned_at_both_ends(self):
        arrays = parameters(GPT_2)
        tied = bh.TinyGPT(GPT_2, arrays=arrays)
        untied_config = bh.ModelConfig(**{**vars(GPT_2), "tied_embeddings": False})
        untied = bh.TinyGPT(untied_config, arrays={**arrays, "lm_head.w": arrays["wte"].T.copy()})
        tokens, targets = some_batch(GPT_2)
        losses = [model.loss(tokens, targets) for model in (tied, untied)]
        for loss in losses:
            loss.backward()
        assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-14)
        p = untied.parameters()
        both = p["wte"].grad + p["lm_head.w"].grad.T
        np.testing.assert_allclose(tied.parameters()["wte"].grad, both, rtol=1e-10, atol=1e-14)

    def test_one_head_and_two_differ(self):
        arrays = parameters(SEEDS)
        tokens, targets = some_batch(SEEDS)
        two = bh.ModelConfig(**{**vars(SEEDS), "n_heads": 2})
        losses = {bh.TinyGPT(config, arrays=arrays).loss(tokens, targets).item() for config in (SEEDS, two)}
        assert len(losses) == 2


class TestGradients:
    @pytest.mark.parametrize("config", swept())
    def test_every_parameter_along_a_random_direction(self, config):
        arrays, (tokens, targets) = parameters(config), batch(config)
        model = bh.TinyGPT(config, arrays=arrays)
        model.loss(tokens, targets).backward()
        rng, step = np.random.default_rng(0), 1e-6
        for name, p in model.parameters().items():
            direction = rng.standard_normal(p.shape)
            ends = []
            for h in (step, -step):
                p.data = arrays[name] + h * direction
                with no_grad():
                    ends.append(model.loss(tokens, targets).item())
            p.data = arrays[name]
            slope = (ends[0] - ends[1]) / (2 * step)
            assert float(np.sum(p.grad * direction)) == pytest.approx(slope, rel=1e-5, abs=1e-7), name

    def test_a_second_backward_doubles_and_zero_grad_forgets(self):
        model, (tokens, targets) = bh.TinyGPT(SEEDS, dtype="float64"), some_batch(SEEDS)
        loss = model.loss(tokens, targets)
        loss.backward()
        once = {name: p.grad.copy() for name, p in model.parameters().items()}
        loss.backward()
        for name, p in model.parameters().items():
            np.testing.assert_array_equal(p.grad, 2 * once[name])
        model.zero_grad()
        assert all(p.grad is None for p in model.parameters().values())

    def test_two_batches_add_up_to_their_mean(self):
        model, (tokens, targets) = bh.TinyGPT(SEEDS, dtype="float64"), some_batch(SEEDS, rows=4)
        model.loss(tokens, targets).backward()
        whole = {name: p.grad for name, p in model.parameters().items()}
        model.zero_grad()
        for part in (slice(0, 2), slice(2, 4)):
            (model.loss(tokens[part], targets[part]) * 0.5).backward()
        for name, p in model.parameters().items():
            np.testing.assert_allclose(p.grad, whole[name], rtol=1e-9, atol=1e-14)

    def test_tokens_that_never_come_get_no_gradient(self):
        model = bh.TinyGPT(SEEDS)
        model.loss([[1, 2, 1]], [[2, 1, 3]]).backward()
        wte, wpe = model.parameters()["wte"].grad, model.parameters()["wpe"].grad
        assert [i for i in range(11) if wte[i].any()] == [1, 2]
        assert [t for t in range(6) if wpe[t].any()] == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("config", [SEEDS, DOCUMENT_004, GPT_2], ids=["seeds", "document-004", "gpt-2"])
def test_one_precision_everywhere(config, dtype):
    model, optimizer = bh.TinyGPT(config, dtype=dtype), bh.AdamW()
    tokens, targets = some_batch(config)
    for _ in range(2):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        optimizer.step(model.parameters())
    arrays = [p.data for p in model.parameters().values()] + [p.grad for p in model.parameters().values()]
    arrays += [*optimizer.moments["m"].values(), *optimizer.moments["v"].values(), loss.data]
    for node in nodes(loss):
        arrays += [s for s in node.saved if s.dtype.kind == "f"]
        assert {str(kind) for _, kind in node.results} == {dtype}, node.name
    assert {str(a.dtype) for a in arrays} == {dtype}


class TestBadInput:
    @pytest.mark.parametrize(
        ("tokens", "message"),
        [
            ([[0, 11]], "tokens hold the id 11, but the vocabulary has ids 0 to 10."),
            ([[0, -1]], "tokens hold the id -1, but the vocabulary has ids 0 to 10."),
            ([[0.0, 1.0]], "tokens must be integers, not float64. Pass token ids."),
            ([[True, False]], "tokens must be integers, not bool. Pass token ids."),
            ([0, 1], "tokens must have the shape (B, T), not (2,). Use tokens[None, :] for one row."),
            ([[]], "tokens must be integers, not float64. Pass token ids."),
            (np.zeros((0, 3), int), "tokens of shape (0, 3) hold no token. Pass at least one."),
            ([[0] * 7], "7 tokens, but the model's seq_len is 6. Pass the last 6."),
        ],
    )
    def test_tokens(self, tokens, message):
        with pytest.raises(DataError) as error:
            bh.TinyGPT(SEEDS).forward_logits(tokens)
        assert str(error.value) == message

    def test_targets(self):
        model = bh.TinyGPT(SEEDS)
        with pytest.raises(DataError, match="targets hold the id 11"):
            model.loss([[0, 1]], [[1, 11]])
        with pytest.raises(DataError, match="targets must be integers"):
            model.loss([[0, 1]], [[1.0, 2.0]])
        with pytest.raises(ShapeError, match="do not match the rows of logits"):
            model.loss([[0, 1]], [[1]])

    def test_precision(self):
        with pytest.raises(ConfigError, match=r"dtype is 'float16'\. Use float32 or float64"):
            bh.TinyGPT(SEEDS, dtype="float16")

    def test_every_message_is_one_line(self):
        with pytest.raises(bh.ByhandError) as error:
            bh.TinyGPT(SEEDS, arrays={})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_seed_is_an_integer_of_at_least_0(seed):
    with pytest.raises(ConfigError, match="seed is"):
        bh.TinyGPT(bh.ModelConfig(d_model=4), seed=seed)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="rows of different lengths"):
        bh.TinyGPT(bh.ModelConfig(d_model=4)).forward_logits([[1, 2], [3]])


def test_tokens_may_be_a_tensor_and_dtype_a_numpy_type():
    model = bh.TinyGPT(bh.ModelConfig(d_model=4), dtype=np.float64)
    tokens = np.array([[1, 2, 3]])
    np.testing.assert_array_equal(model.forward_logits(Tensor(tokens)).data, model.forward_logits(tokens).data)
    assert model.dtype == np.float64


def test_arrays_must_be_arrays():
    arrays = {name: p.data for name, p in bh.TinyGPT(bh.ModelConfig(d_model=4)).parameters().items()}
    with pytest.raises(ShapeError, match="wpe is a list"):
        bh.TinyGPT(bh.ModelConfig(d_model=4), arrays=arrays | {"wpe": arrays["wpe"].tolist()})


class TestTracing:
    """`logits_of` and `loss_of` take arrays as they are: under a tracer nothing may ask for a value."""

    def test_the_traced_part_asks_for_no_value(self, monkeypatch):
        def asked(self, *_):
            raise AssertionError("a value was asked for")

        for method in ("__bool__", "__int__", "__float__", "__index__", "__len__", "__iter__"):
            monkeypatch.setattr(Outline, method, asked, raising=False)
        for config in every_setting()[::9]:
            arrays = {name: Outline(shape, "float64") for name, shape in parameter_shapes(config).items()}
            model = bh.TinyGPT(config, arrays=arrays)
            tokens, targets = Outline((2, 5), "int64"), Outline((2, 5), "int64")
            assert model.loss_of(tokens, targets).shape == ()
            kept = tuple(
                tuple(Tensor(Outline((2, heads, 5, width), "float64")) for _ in range(2))
                for heads, width in model.cache_shapes()
            )
            cache = KVCache(kept, Outline((2,), "int64"))
            if config.causal:
                logits, after = model.forward(Outline((2, 1), "int64"), cache)
                assert logits.shape == (2, 1, 7)
                assert after.places == 5

    def test_the_doors_ask(self):
        model, wrong = bh.TinyGPT(SEEDS), np.array([[11]])
        for call in (lambda: model.forward_logits(wrong), lambda: model.loss([[1]], wrong)):
            with pytest.raises(DataError, match="hold the id 11"):
                call()
        with pytest.raises(IndexError):
            model.logits_of(wrong)

    def test_both_parts_give_the_same_numbers(self):
        model, (tokens, targets) = bh.TinyGPT(SEEDS), some_batch(SEEDS)
        assert model.loss_of(tokens, targets).item() == model.loss(tokens, targets).item()
        np.testing.assert_array_equal(model.logits_of(tokens).data, model.forward_logits(tokens).data)
