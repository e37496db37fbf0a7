"""llama.cpp loads what byhand exports, with the same probabilities and texts; its probabilities are stored."""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from byhand.config import TrainConfig  # noqa: E402
from byhand.files.weights import OpenFile, Stored  # noqa: E402
from byhand.formats.ggml import BY_LIBRARY, format_of  # noqa: E402
from byhand.formats.registry import called  # noqa: E402
from byhand.generation import Sampling, generate  # noqa: E402
from byhand.interop import exchange  # noqa: E402
from byhand.interop.gguf.file import GGUF, content  # noqa: E402
from byhand.interop.gguf.model import KNOWN  # noqa: E402
from byhand.interop.pairing import with_pairing  # noqa: E402
from byhand.interop.tensors import pieces, to_theirs  # noqa: E402
from byhand.model import TinyGPT  # noqa: E402
from byhand.runs.contents import Checkpoint  # noqa: E402
from byhand.runtimes.loops.run.decoding import LoopsDecoder  # noqa: E402
from byhand.tokenizers.byte import BYTES  # noqa: E402
from interop.llama_cpp_float import as_llama_cpp_computes  # noqa: E402
from interop.run_cases import PARTIAL, WHOLE, logits, parameters  # noqa: E402
from runtimes.loops.arrays import logits_of  # noqa: E402
from runtimes.texts import texts  # noqa: E402

llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
pytestmark = pytest.mark.oracle
FIXTURE, PROMPT = TESTS / "fixtures" / "exchange" / "llama_cpp.json", b"hello wo"
SEEDS = 200
TABLES = {
    "gelu": 5e-3,
    "geglu": 5e-3,
    "gelu_exact": 0.1,
}  # what log-probabilities may lose: by rounding; by the tanh form


class Server:
    """llama.cpp with a model: one thread, its cache in float32, no flash attention."""

    def __init__(self, path: Path, length: int = 32) -> None:
        p = llama_cpp.CommonParams()
        p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(path), length, 1, False
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
        p.cache_type_k = p.cache_type_v = llama_cpp.ggml_type.GGML_TYPE_F32
        p.flash_attn_type = llama_cpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._server = llama_cpp.Server(p)

    def ask(self, prompt: Any, count: int) -> dict[str, Any]:
        asked = {"prompt": prompt, "max_tokens": count, "temperature": 0, "logprobs": 10, "n_probs": 300}
        found = self._server.handle_completions({**asked, "post_sampling_probs": False, "ignore_eos": True})
        found = found if isinstance(found, dict) else json.loads(found)
        return found["choices"][0]

    def logprobs(self, vocab_size: int) -> np.ndarray | None:
        """Return the log-probabilities after the prompt; llama.cpp gives none where the likeliest is no character."""
        said = self.ask(list(PROMPT), 1).get("logprobs")
        if not said:
            return None
        listed = {entry["id"]: entry["logprob"] for entry in said["content"][0]["top_logprobs"]}
        assert len(listed) == vocab_size
        return np.array([listed[i] for i in range(vocab_size)])


def export(config, arrays, place: Path, dtype: str = "float32") -> Path:
    return exchange.write(Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0}), "gguf", place, dtype)[0]


CASES = {
    name: config
    for name, config in {**WHOLE, **PARTIAL}.items()
    if not all(family.problems(config) for family in KNOWN.values())
}


def speaking(config, name: str) -> int:
    """Return the first seed whose model says an ASCII byte after the prompt."""
    for seed in range(SEEDS):
        if logits(config, parameters(config, seed), [list(PROMPT)])[0, -1].argmax() < 128:
            return seed
    raise AssertionError(f"no seed of {name}")


@pytest.mark.parametrize("name", CASES)
def test_probabilities_where_it_computes_in_float(name, tmp_path):
    config = CASES[name]
    arrays = parameters(config, speaking(config, name))
    path = export(config, arrays, tmp_path / "out")
    found = exchange.read(path)
    theirs = Server(path).logprobs(config.vocab_size)
    assert theirs is not None
    ours = as_llama_cpp_computes(found.config, found.arrays, list(PROMPT))
    assert np.abs(ours - theirs).max() <= 1e-5
    z = logits(config, arrays, [list(PROMPT)])[0, -1]
    exact = z - z.max() - np.log(np.exp(z - z.max()).sum())
    assert np.abs(exact - theirs).max() <= TABLES.get(config.activation, 1e-5)  # the table of GELU


@pytest.mark.parametrize(("dtype", "least", "most"), [
    ("float16", 1e-5, 0.02), ("bfloat16", 1e-4, 0.1), ("q8_0", 1e-4, 0.5), ("q4_0", 1e-4, 5),
])  # fmt: skip
@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "qwen3"])
def test_files_in_every_format_load_and_lose_what_rounding_loses(name, dtype, least, most, tmp_path):
    config = WHOLE[name]
    for seed in range(SEEDS):
        arrays = parameters(config, seed)
        path = export(config, arrays, tmp_path / str(seed), dtype)
        if (theirs := Server(path).logprobs(config.vocab_size)) is not None:
            break
    else:
        raise AssertionError("no seed")
    found = exchange.read(path)
    ours = as_llama_cpp_computes(found.config, found.arrays, list(PROMPT), dtype)
    near_tie = (name, dtype) == ("gpt2", "float16")  # an activation between two halves goes the other way
    assert np.abs(ours - theirs).max() <= (1e-3 if near_tie else 1e-5)
    whole = as_llama_cpp_computes(config, arrays, list(PROMPT))
    assert least < np.abs(whole - theirs).max() < most


@pytest.mark.parametrize("dtype", ["float32", "q8_0", "q4_0"])
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_generation_with_weights_in_blocks_multiplies_as_it_does(name, dtype, tmp_path):
    """GPT-2's GELU comes from a table there, which moves activations to other integers."""
    config, compared = WHOLE[name], 0
    for seed in range(SEEDS):
        path = export(config, parameters(config, seed), tmp_path / str(seed), dtype)
        if (theirs := Server(path).logprobs(config.vocab_size)) is None:
            continue
        found = exchange.read(path)
        decoder = LoopsDecoder(TinyGPT(found.config, arrays=found.arrays), weights=dtype)
        texts(decoder, [PROMPT], 1)
        z = logits_of(decoder)[0].astype(float)
        assert np.abs(z - z.max() - np.log(np.exp(z - z.max()).sum()) - theirs).max() <= 1e-5
        if (compared := compared + 1) == 3:
            return
    raise AssertionError("no seed")


@pytest.mark.parametrize("name", CASES)
def test_greedy_texts_are_equal(name, tmp_path):
    config = CASES[name]
    arrays = parameters(config, speaking(config, name))
    count = config.seq_len - len(PROMPT) - 1
    theirs = Server(export(config, arrays, tmp_path / "out")).ask(PROMPT.decode(), count)["text"]
    model = TinyGPT(config, arrays=arrays)
    ours = bytes(generate(model, list(PROMPT), count, Sampling(temperature=0.0), runtime="numpy"))
    assert theirs[:3] == ours.decode(errors="replace")[:3]
    if config.activation not in TABLES:  # the table may turn a near tie
        assert theirs.rstrip("\ufffd") == ours.decode(errors="replace").rstrip("\ufffd")


def test_its_own_package_reads_and_quantises_the_same(tmp_path):
    gguf = pytest.importorskip("gguf", reason="gguf is not installed, so its reader is not asked")
    config = WHOLE["qwen3"]
    path = export(config, parameters(config), tmp_path / "out")
    read = gguf.GGUFReader(path)
    assert read.fields["general.architecture"].contents() == "qwen3"
    found = {t.name: np.array(t.data) for t in read.tensors}
    assert np.array_equal(found["token_embd.weight"], parameters(config)["wte"])
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 64)).astype(np.float32)
    x[0], x[1] = 0, np.arange(64) / 8 - 4
    for code, kind in called("gguf").items():
        theirs = gguf.GGMLQuantizationType[kind.symbol]
        assert theirs == code
        if kind.block == 1:
            continue
        if kind.pack:
            packed = kind.packed(x)
            assert np.array_equal(packed, gguf.quants.quantize(x, theirs).reshape(-1))
        else:
            packed = rng.integers(0, 60, 30 * kind.size, dtype=np.uint8)  # below 60 every float16 is finite
        due = gguf.quants.dequantize(packed.reshape(-1, kind.size), theirs).reshape(-1)
        assert np.array_equal(kind.floats(packed), due), kind.name


@pytest.mark.parametrize("code", [*BY_LIBRARY, 12, 14])
def test_models_in_every_type_of_the_library_are_its_numbers(code, tmp_path):
    """llama.cpp quantises, its package says what the numbers are, and ours are the same to the bit."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed, so its types are not read")
    kind, theirs = format_of(code), gguf.GGMLQuantizationType(code)
    assert theirs.name == kind.symbol
    config = replace(WHOLE["llama"], d_model=256, d_ff=256, n_layers=1, d_head=4, tied_embeddings=True)
    due = dict[str, np.ndarray]()
    with OpenFile(export(config, parameters(config), tmp_path / "float32")) as opened:
        file = GGUF(opened)
        tensors, data = {}, []
        for name, tensor in file.tensors.items():
            x = file.read(name)
            if x.shape[-1] == 256 and x.ndim > 1:
                packed = quantised(x, kind)
                tensors[name], due[name] = Stored(kind, x.shape, 0), gguf.dequantize(packed, theirs)
            else:
                tensors[name], packed, due[name] = tensor, x, x
            data.append((name, packed.tobytes()))
        (tmp_path / "model.gguf").write_bytes(b"".join(content(file.keys, tensors, data)))
    found = exchange.read(like := tmp_path / "model.gguf")
    for part, array in to_theirs(*with_pairing_of_llama(found)):
        assert np.array_equal(array, due[part.theirs]), part.theirs
    run = exchange.as_checkpoint(found, BYTES)
    assert exchange.write(run, "gguf", tmp_path / "again", like=like)[0].read_bytes() == like.read_bytes()


def quantised(x: np.ndarray, kind: Any) -> np.ndarray:
    """Return rows in blocks, as llama.cpp's C function makes them; every column is equally important."""
    library = ctypes.CDLL(sys.modules["xllamacpp.xllamacpp"].__file__)
    quantize = library.ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p]
    found = np.empty((len(x), kind.bytes(x.shape[1])), np.uint8)
    weights = np.ones(x.shape[1], np.float32)
    given = x.ctypes.data, found.ctypes.data, 0, *x.shape, weights.ctypes.data
    assert quantize(kind.codes["gguf"], *given) == found.nbytes
    return found


def with_pairing_of_llama(found: Any) -> Any:
    """Return a model's arrays as a GGUF of llama has them, and its tensors."""
    arrays, config = with_pairing(found.arrays, found.config, "neighbours")
    return arrays, pieces(config, KNOWN["llama"].tensors)


def stored() -> list[dict[str, Any]]:
    """Return llama.cpp's log-probabilities of some models, to five decimals."""
    found = []
    exact = [(name, "float32") for name in ("gpt2", "llama", "qwen2", "qwen3")]
    for name, dtype in (*exact, ("llama", "q8_0"), ("gpt2", "q4_0")):
        config = WHOLE[name]
        for seed in range(SEEDS):
            with tempfile.TemporaryDirectory() as place:
                said = Server(export(config, parameters(config, seed), Path(place) / "out", dtype)).logprobs(256)
            if said is not None:
                found.append({"name": name, "dtype": dtype, "seed": seed, "logprobs": said.round(5).tolist()})
                break
    return found


def test_the_stored_probabilities_are_what_llama_cpp_says():
    kept, fresh = json.loads(FIXTURE.read_text(encoding="utf-8")), stored()
    assert [{**case, "logprobs": 0} for case in kept] == [{**case, "logprobs": 0} for case in fresh]
    for before, now in zip(kept, fresh, strict=True):
        np.testing.assert_allclose(before["logprobs"], now["logprobs"], atol=3e-5)


if __name__ == "__main__":  # write the fixture: PYTHONPATH=src python tests/oracle/test_llama_cpp.py
    FIXTURE.write_text("[" + ",\n".join(map(json.dumps, stored())) + "]\n", encoding="utf-8")
