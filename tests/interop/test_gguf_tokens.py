"""Names of pre-tokenizers in GGUFs: read, written, and refused where llama.cpp would cut otherwise."""

from pathlib import Path

import pytest

from byhand.errors import ConfigError, DataError
from byhand.interop.gguf.conventions import KEY
from byhand.interop.gguf.tokens import SAME, SPLITS, as_keys, of_keys
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.symbols import byte_symbols

WHERE = Path("m.gguf")
IDS = {**byte_symbols(), "ab": 256, "abc": 257}
MERGES = [("a", "b"), ("ab", "c")]


def cut(split, whole=False, merges=MERGES):
    return BytePairTokenizer(IDS, merges, split=split, whole=whole, special={"<|end|>": 258})


@pytest.mark.parametrize("pre", SPLITS)
def test_names_come_back(pre):
    if SPLITS[pre][0] not in ("gpt2", "gpt4", "qwen2", "smollm"):
        pytest.importorskip("regex")
    found = cut(*SPLITS[pre])
    keys = as_keys(found, 259)
    assert keys[f"{KEY}pre"] == pre
    for name in (pre, *SAME.get(pre, ())):
        read = of_keys({**keys, f"{KEY}pre": name}, 259, WHERE)
        assert read is not None
        assert read.ids_digest == found.digest
    assert not {*SPLITS} & {name for names in SAME.values() for name in names}


def test_a_look_up_that_changes_nothing_can_be_left_out():
    pytest.importorskip("regex")
    assert as_keys(cut("gpt-4o", True), 259)[f"{KEY}pre"] == "gpt-4o"
    with pytest.raises(ConfigError, match="merges every word cut by gpt-4o"):
        as_keys(cut("gpt-4o", True, MERGES[:1]), 259)
    with pytest.raises(ConfigError, match="first looks up every word cut by tekken"):
        as_keys(cut("tekken"), 259)


def test_a_pattern_without_a_name_is_refused():
    pytest.importorskip("regex")
    with pytest.raises(ConfigError, match="no name for this tokenizer's pre-tokenizer: patterns of its own"):
        as_keys(cut([("a+", "Isolated")]), 259)
    keys = as_keys(cut("gpt2"), 259)
    with pytest.raises(DataError, match=r"'kimi-k2', but known are only .* deepseek-v3, .* hunyuan-dense"):
        of_keys({**keys, f"{KEY}pre": "kimi-k2"}, 259, WHERE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": None}, "has tokens, but no tokenizer.ggml.model"),
        ({"merges": None}, "has no list of tokenizer.ggml.merges"),
        ({"merges": "a b"}, "has no list of tokenizer.ggml.merges"),
        ({"token_type": "normal"}, "its tokens are not those of"),
        ({"token_type": [1] * 258 + [9]}, "its tokens are not those of"),
    ],
)
def test_a_key_that_lacks_or_has_another_type_is_no_setting(change, words):
    keys = as_keys(cut("gpt2"), 259) | {f"{KEY}{name}": value for name, value in change.items()}
    with pytest.raises(DataError, match=words):
        of_keys({key: value for key, value in keys.items() if value is not None}, 259, WHERE)


def test_pieces_of_an_unknown_kind_or_prefix_are_refused():
    pieces = SentencePieceTokenizer({"a": 256, **{f"<0x{byte:02X}>": byte for byte in range(256)}})
    keys = as_keys(pieces, 257)
    keys[f"{KEY}scores"] = keys[f"{KEY}scores"].tolist()
    assert of_keys(keys, 257, WHERE) is not None
    for name, value in (("token_type", [6] * 256 + [9]), ("add_space_prefix", "false")):
        with pytest.raises(DataError, match=r"of the kind 9|must be true or false"):
            of_keys({**keys, f"{KEY}{name}": value}, 257, WHERE)
