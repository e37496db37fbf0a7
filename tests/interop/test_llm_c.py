"""Model files of llm.c, written from their description: float32 and bfloat16, padded vocabularies, damage."""

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.errors import ByhandError
from byhand.interop import exchange
from interop import foreign_cases as foreign

T, V, L, H, C, PADDED = 12, 30, 2, 2, 8, 128
BLOCK = [
    "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
    "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias",
]  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "vocab_size": V, "n_positions": T, "n_embd": C, "n_layer": L, "n_head": H, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip


def arrays():
    return {name.removeprefix("transformer."): a for name, a in foreign.drawn(foreign.shapes(GPT2)).items()}


def written(found, version=3, **header):
    """Return a model file: nn.Linear's weights are [out, in], where GPT2 of transformers has [in, out]."""
    numbers = {"T": T, "V": V, "L": L, "H": H, "C": C, "padded": PADDED} | header
    head = np.zeros(256, "<i4")
    head[:8] = [20240326, version, *numbers.values()]
    rows = [np.vstack([found["wte.weight"], np.zeros((PADDED - V, C), np.float32)]), found["wpe.weight"]]
    for name in BLOCK:
        blocks = [found[f"h.{i}.{name}"] for i in range(L)]
        rows += [a.T if a.ndim == 2 else a for a in blocks]
    rows += [found["ln_f.weight"], found["ln_f.bias"]]
    flat = np.concatenate([row.reshape(-1) for row in rows])
    data = flat.astype("<f4").tobytes() if version != 5 else (flat.view(np.uint32) >> 16).astype("<u2").tobytes()
    return head.tobytes() + data


def refused(path):
    with pytest.raises(ByhandError) as error:
        exchange.read(path)
    return str(error.value)


def test_a_model_is_the_one_that_transformers_has_of_the_same_tensors(tmp_path):
    due = exchange.read(foreign.write_folder(tmp_path / "hf", GPT2, arrays()))
    (tmp_path / "model.bin").write_bytes(written(arrays()))
    found = exchange.read(tmp_path / "model.bin")
    assert found.source == "llm.c"
    assert found.config == due.config
    assert found.config == ModelConfig(
        vocab_size=V, seq_len=T, d_model=C, n_layers=L, n_heads=H, norm_affine=True, lm_head_bias=False,
        tied_embeddings=True,
    )  # fmt: skip
    for name, array in due.arrays.items():
        assert np.array_equal(found.arrays[name], array), name


def test_bfloat16_is_the_first_half_of_each_number(tmp_path):
    (tmp_path / "model.bin").write_bytes(written(arrays(), version=5))
    found = exchange.read(tmp_path / "model.bin").arrays["wte"]
    assert np.array_equal(found, (arrays()["wte.weight"].view(np.uint32) & 0xFFFF0000).view(np.float32))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"version": 1}, "has version 1, but only 3 (float32) and 5 (bfloat16) are known."),
        ({"T": T + 1}, "but its sizes say"),
        ({"T": 0}, "seq_len is 0, but must be at least 1"),
        ({"V": -5}, "vocab_size is -5"),
        ({"H": 3}, "n_heads 3 does not divide d_model 8"),
        ({"padded": V - 1}, "it has 30 tokens, padded to 29"),
        ({"L": 1 << 30}, "n_layers is 1073741824, but can be at most 1024"),
    ],
)
def test_wrong_headers_are_refused(header, words, tmp_path):
    (tmp_path / "model.bin").write_bytes(written(arrays(), **header))
    assert words in refused(tmp_path / "model.bin")


def test_wrong_sizes_and_numbers_are_refused(tmp_path):
    path = tmp_path / "model.bin"
    for content in (written(arrays())[:-4], written(arrays()) + bytes(4)):
        path.write_bytes(content)
        assert "but its sizes say" in refused(path)
    path.write_bytes(written(arrays())[:500])
    assert "does not begin with llm.c's header" in refused(path)
    path.write_bytes(written({**arrays(), "h.1.mlp.c_fc.bias": np.full(4 * C, np.inf, np.float32)}))
    assert "fcb 1 holds NaN or infinity" in refused(path)
    content = bytearray(written(arrays()))
    content[40] = 1
    path.write_bytes(content)
    assert "its header has unknown fields" in refused(path)
    path.write_bytes(b"hello")
    assert "is neither a GGUF nor a checkpoint of llm.c, llama2.c or nanoGPT" in refused(path)
