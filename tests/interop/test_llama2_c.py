"""Model files of llama2.c, written from their description: both versions, tied and not, with their tokenizer."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import sentencepiece_cases as cases
from byhand.errors import ByhandError
from byhand.interop import exchange
from interop import foreign_cases as foreign

C, F, L, H, K, T = 8, 24, 2, 2, 1, 12
V = len(cases.pieces())
NORMS, LAYERS = ("input_layernorm", "post_attention_layernorm"), "model.layers"
LLAMA = {
    "model_type": "llama", "vocab_size": V, "max_position_embeddings": T, "hidden_size": C, "intermediate_size": F,
    "num_hidden_layers": L, "num_attention_heads": H, "num_key_value_heads": K, "head_dim": C // H,
    "rms_norm_eps": 1e-5, "hidden_act": "silu",
}  # fmt: skip


def model(tied: bool) -> tuple[dict, dict[str, np.ndarray]]:
    config = LLAMA | {"tie_word_embeddings": tied}
    return config, foreign.drawn(foreign.shapes(config))


def neighbours(rows: np.ndarray) -> np.ndarray:
    """Return rows of queries or keys in Meta's order; transformers has the halves of each head apart."""
    return rows.reshape(-1, 2, C // H // 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def written(arrays: dict[str, np.ndarray], version: int, tied: bool) -> bytes:
    def each(name, change=lambda a: a):
        return [change(arrays[f"{LAYERS}.{i}.{name}.weight"]) for i in range(L)]

    norms = [each(norm) for norm in NORMS]
    attention = [each(f"self_attn.{n}_proj", neighbours if n in "qk" else lambda a: a) for n in "qkvo"]
    mlp = [each(f"mlp.{name}_proj") for name in ("gate", "down", "up")]
    table, last = [arrays["model.embed_tokens.weight"]], [arrays["model.norm.weight"]]
    angles = [np.full((T, C // H // 2, 2), np.nan, np.float32)] if version == 0 else []
    head = [] if tied else [arrays["lm_head.weight"]]
    sizes = struct.pack("<7i", C, F, L, H, K, V if tied or version else -V, T)
    if version:
        order = [*norms, last, table, *attention, *mlp, head]
        sizes = (b"24ka" + struct.pack("<i", version) + sizes + bytes([tied])).ljust(256, b"\0")
    else:
        order = [table, norms[0], *attention, norms[1], *mlp, last, angles, head]
    return sizes + b"".join(a.astype("<f4").tobytes() for group in order for a in group)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("version", [0, 1])
def test_a_model_is_the_one_that_transformers_has_of_the_same_tensors(version, tied, tmp_path):
    config, arrays = model(tied)
    due = exchange.read(foreign.write_folder(tmp_path / "hf", config, arrays))
    (tmp_path / "stories.bin").write_bytes(written(arrays, version, tied))
    (tmp_path / "tokenizer.bin").write_bytes(cases.tokenizer_bin())
    found, words = exchange.imported(tmp_path / "stories.bin")
    assert (found.source, found.config) == ("llama2.c", due.config)
    for name, array in due.arrays.items():
        assert np.array_equal(found.arrays[name], array), name
    assert words.prompt("the") == [1, *words.encode("the")]


def test_without_a_tokenizer_one_is_asked_for(tmp_path):
    (tmp_path / "stories.bin").write_bytes(written(model(True)[1], 0, True))
    with pytest.raises(ByhandError, match=r"Name one with --tokenizer.*tokenizer\.bin"):
        exchange.imported(tmp_path / "stories.bin")


def test_another_length_is_no_model(tmp_path):
    whole = written(model(True)[1], 0, True)
    for content in (whole[:-4], whole + bytes(4), struct.pack("<7i", 8, 24, 1 << 30, 2, 2, 300, 12) + bytes(99)):
        (tmp_path / "a.bin").write_bytes(content)
        with pytest.raises(ByhandError, match="nor a checkpoint"):
            exchange.read(tmp_path / "a.bin")
    for at, value in ((36, 2), (40, 1)):
        content = bytearray(written(model(True)[1], 1, True))
        content[at] = value
        (tmp_path / "a.bin").write_bytes(content)
        with pytest.raises(ByhandError, match="its header has unknown fields"):
            exchange.read(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(b"24ka" + struct.pack("<i", 2) + bytes(300))
    with pytest.raises(ByhandError, match="version 2"):
        exchange.read(tmp_path / "a.bin")
