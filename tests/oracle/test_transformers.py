"""Models of transformers, read by byhand; models of byhand, read by transformers; and its logits that are stored."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from byhand.config import TrainConfig  # noqa: E402
from byhand.formats.registry import FORMATS  # noqa: E402
from byhand.generation import Sampling, generate  # noqa: E402
from byhand.interop import exchange  # noqa: E402
from byhand.model import TinyGPT  # noqa: E402
from byhand.runs.contents import Checkpoint  # noqa: E402
from interop import export_cases as exports  # noqa: E402
from interop import foreign_cases as foreign  # noqa: E402
from interop.run_cases import PARTIAL, WHOLE, logits, parameters  # noqa: E402
from oracle.torch_reference import torch  # noqa: E402

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed, so nothing is compared with it"
)
pytestmark = pytest.mark.oracle
FIXTURE = TESTS / "fixtures" / "exchange" / "transformers.json"
TEXT = b"To be, or not to be"


@pytest.fixture(autouse=True)
def _quiet():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def loaded(folder: Path, dtype: Any = torch.float32) -> Any:
    """Return the model that transformers makes of a folder; nothing in it may be missing or left over."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=dtype)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return model.eval()


def their_logits(model: Any, tokens: Any) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor(tokens)).logits.numpy()


def written(config, arrays, place: Path, dtype: str = "float32") -> Path:
    exchange.write(Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0}), "hf", place, dtype)
    return place


@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow if i > 2 else []) for i in range(10)])
@pytest.mark.parametrize("kind", foreign.KINDS)
def test_logits_of_ten_random_models_of_each_kind(kind, seed, tmp_path):
    config = foreign.settings(kind, seed)
    foreign.write_folder(tmp_path, config, foreign.drawn(foreign.shapes(config), seed))
    found, tokens = exchange.read(tmp_path), foreign.tokens(config)
    due = their_logits(loaded(tmp_path), tokens)
    assert np.abs(logits(found.config, found.arrays, tokens, "float32") - due).max() <= 1e-4
    assert np.ptp(due) > 1


@pytest.mark.parametrize("case", [*WHOLE, *PARTIAL])
def test_transformers_loads_what_is_exported_and_writes_the_same_text(case, tmp_path):
    config = {**WHOLE, **PARTIAL}[case]
    arrays = parameters(config, seed=3)
    model = loaded(written(config, arrays, tmp_path / "out"))
    tokens = [list(TEXT)]
    assert np.abs(logits(config, arrays, tokens, "float32") - their_logits(model, tokens)).max() <= 1e-4
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert words(TEXT.decode())["input_ids"] == tokens[0]
    length = config.seq_len - len(TEXT)
    ids = torch.tensor(tokens)
    theirs = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=length, do_sample=False)
    ours = generate(TinyGPT(config, arrays=arrays), tokens[0], length, Sampling(temperature=0.0), runtime="numpy")
    assert theirs[0, len(TEXT) :].tolist() == list(ours)


SCALED = {
    "linear": {"factor": 2.5},
    "llama3": {
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "yarn of other turns": {
        "factor": 4.0, "original_max_position_embeddings": 12, "beta_fast": 3.0, "beta_slow": 0.5,
        "attention_factor": 1.4,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "place"), [(kind, ("rope_parameters", "rope_scaling")[i % 2]) for i, kind in enumerate(SCALED)]
)
@pytest.mark.parametrize("of", ["Llama", "Qwen3"])
def test_scaled_angles_are_transformers_also_beyond_the_original_context(of, kind, place, tmp_path):
    turns, theta = {"rope_type": kind.split()[0], **SCALED[kind]}, 50.0
    config = getattr(transformers, f"{of}Config")(
        vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=64, rope_parameters={**turns, "rope_theta": theta},
    )  # fmt: skip
    torch.manual_seed(1)
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(p.mean() + 0.3 * torch.randn(p.shape))
    theirs.save_pretrained(tmp_path / "theirs")
    if place == "rope_scaling":  # as before transformers 5
        path = tmp_path / "theirs" / "config.json"
        settings = json.loads(path.read_text())
        del settings["rope_parameters"]
        path.write_text(json.dumps({**settings, "rope_theta": theta, "rope_scaling": turns}))
    found, tokens = exchange.read(tmp_path / "theirs"), [[*TEXT, *TEXT]]
    assert found.config.rope_scaling == kind.split()[0]
    due = their_logits(theirs, tokens)
    assert np.abs(logits(found.config, found.arrays, tokens, "float32") - due).max() <= 1e-4
    plain = replace(found.config, rope_scaling="none")
    assert np.abs(logits(plain, found.arrays, tokens, "float32") - due).max() > 1e-2
    again = loaded(written(found.config, found.arrays, tmp_path / "again"))
    assert np.abs(their_logits(again, tokens) - due).max() <= 1e-5
    ids = torch.tensor([list(TEXT)])
    said = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=30, do_sample=False)
    model = TinyGPT(found.config, arrays=found.arrays)
    for runtime in ("numpy", "loops"):
        ours = generate(model, list(TEXT), 30, Sampling(temperature=0.0), runtime=runtime)
        assert said[0, len(TEXT) :].tolist() == list(ours), runtime


LAYERED: dict[str, dict[str, Any]] = {
    "GPTNeo": {
        "num_layers": 4, "num_heads": 4, "attention_types": [[["global", "local"], 2]], "window_size": 5,
        "bos_token_id": 1, "eos_token_id": 1,
    },
    "Olmo2": {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2},
    "Gemma": {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12},
    "Gemma3Text": {
        "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12,
        "sliding_window": 6, "query_pre_attn_scalar": 20,
    },
    "SmolLM3": {"num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2},
}  # fmt: skip


@pytest.mark.parametrize("of", LAYERED)
def test_what_transformers_makes_and_saves_comes_in_and_goes_out(of, tmp_path):
    """Its own defaults of kinds of layers, its own text, also past every window."""
    config = getattr(transformers, f"{of}Config")(
        vocab_size=256,
        hidden_size=32,
        intermediate_size=48,
        max_position_embeddings=64,
        pad_token_id=0,
        **LAYERED[of],
    )
    torch.manual_seed(1)
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(p.mean() + 0.3 * torch.randn(p.shape))
    theirs.save_pretrained(tmp_path / "theirs")
    found, tokens = exchange.read(tmp_path / "theirs"), [[*TEXT, *TEXT]]
    due = their_logits(theirs, tokens)
    assert np.abs(logits(found.config, found.arrays, tokens, "float32") - due).max() <= 1e-4
    again = loaded(written(found.config, found.arrays, tmp_path / "again"))
    assert np.abs(their_logits(again, tokens) - due).max() <= 1e-5
    ids = torch.tensor([list(TEXT)])
    said = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False)
    model = TinyGPT(found.config, arrays=found.arrays)
    for runtime in ("numpy", "loops"):
        ours = generate(model, list(TEXT), 40, Sampling(temperature=0.0), runtime=runtime)
        assert said[0, len(TEXT) :].tolist() == list(ours)[: said.shape[1] - len(TEXT)], runtime


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["gpt2", "llama", "qwen3"])
def test_transformers_loads_halves_as_halves_with_the_rounded_weights(case, dtype, tmp_path):
    config, arrays = WHOLE[case], parameters(WHOLE[case])
    folder = written(config, arrays, tmp_path / "out", dtype)
    assert loaded(folder, "auto").dtype == getattr(torch, dtype)
    rounded = {name: FORMATS[dtype].rounded(array) for name, array in arrays.items()}
    due = logits(config, rounded, [list(TEXT)], "float32")
    assert np.abs(their_logits(loaded(folder), [list(TEXT)]) - due).max() <= 1e-4
    assert np.abs(logits(config, arrays, [list(TEXT)], "float32") - due).max() > 1e-3


def test_every_text_of_bytes_has_the_same_ids(tmp_path):
    config = WHOLE["gpt2"]
    words = transformers.AutoTokenizer.from_pretrained(written(config, parameters(config), tmp_path / "out"))
    for text in ("naïve 中文 🙂\n\n  \t", "<|endoftext|>", "\0\x01 don't", "".join(map(chr, range(1, 700)))):
        assert words(text)["input_ids"] == list(text.encode())
        assert words.decode(list(text.encode()), clean_up_tokenization_spaces=False) == text


def stored() -> list[dict[str, Any]]:
    """Return two models of each kind with the logits that transformers computes, to five decimals."""
    import tempfile

    found = []
    for kind in foreign.KINDS:
        for seed in range(2):
            config = foreign.settings(kind, seed)
            with tempfile.TemporaryDirectory() as place:
                folder = foreign.write_folder(Path(place), config, foreign.drawn(foreign.shapes(config), seed))
                values = their_logits(loaded(folder), foreign.tokens(config)).astype(float).round(5).tolist()
            found.append({"seed": seed, "config": config, "logits": values})
    return found


def test_the_stored_logits_are_what_transformers_says():
    kept = json.loads(FIXTURE.read_text(encoding="utf-8"))
    fresh = stored()
    assert [case["config"] for case in kept] == [case["config"] for case in fresh]
    for before, now in zip(kept, fresh, strict=True):
        np.testing.assert_allclose(before["logits"], now["logits"], atol=1e-4)


def computed(name: str, place: Path, known: Any) -> dict[str, Any]:
    """Return what transformers is given of an exported model, and each eighth of its logits."""
    folder = exports.exported(name, place, known)
    logits = their_logits(loaded(folder), exports.TOKENS)[..., :: exports.EVERY]
    return exports.contents(folder) | {"logits": logits.astype(float).round(5).tolist()}


@pytest.mark.parametrize("name", exports.CASES)
def test_the_stored_logits_of_exported_models_are_what_transformers_says(name, tmp_path, monkeypatch):
    kept = json.loads(exports.FIXTURE.read_text(encoding="utf-8"))[name]
    fresh = computed(name, tmp_path / "out", monkeypatch.setitem)
    assert kept["config"] == fresh["config"]
    np.testing.assert_allclose(kept["logits"], fresh["logits"], atol=1e-4)


def write_fixtures() -> None:
    """Write the logits that transformers computes of foreign models and of exported ones."""
    import tempfile

    FIXTURE.write_text("[" + ",\n".join(map(json.dumps, stored())) + "]\n", encoding="utf-8")
    found = {}
    for name in exports.CASES:
        with tempfile.TemporaryDirectory() as place:
            found[name] = computed(name, Path(place) / "out", dict.__setitem__)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items())
    exports.FIXTURE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":  # PYTHONPATH=src python tests/oracle/test_transformers.py
    write_fixtures()
