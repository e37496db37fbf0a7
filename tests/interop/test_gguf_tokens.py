"""Names of pre-tokenizers in GGUFs: read, written, and refused where llama.cpp would cut otherwise."""

from pathlib import Path

import pytest

from byhand.errors import ConfigError, DataError
from byhand.interop.gguf.conventions import KEY
from byhand.interop.gguf.tokens import SAME, SPLITS, as_keys, of_keys
from byhand.tokenizers.bpe import BytePairTokenizer
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
    with pytest.raises(ConfigError, match="merges every word that gpt-4o cuts"):
        as_keys(cut("gpt-4o", True, MERGES[:1]), 259)
    with pytest.raises(ConfigError, match="looks every word up first that tekken cuts"):
        as_keys(cut("tekken"), 259)


def test_a_pattern_without_a_name_is_refused():
    pytest.importorskip("regex")
    with pytest.raises(ConfigError, match="no name for how this tokenizer cuts text: patterns of its own"):
        as_keys(cut([("a+", "Isolated")]), 259)
    keys = as_keys(cut("gpt2"), 259)
    with pytest.raises(DataError, match=r"'kimi-k2', but known are only .* deepseek-v3, .* hunyuan-dense"):
        of_keys({**keys, f"{KEY}pre": "kimi-k2"}, 259, WHERE)
