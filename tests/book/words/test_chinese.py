"""Every equation and every symbol has its Chinese words, and none is left over."""

import re

import byhand.book.entries
import byhand.equations  # noqa: F401 - fills the registry
from byhand.book.entries.contract import ENTRIES
from byhand.engine.equation import registry
from every import every

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@every(registry)
def test_symbols_are_translated(name):
    entry = ENTRIES[name]
    assert list(entry.meanings_zh) == [s.name for s in registry[name].inputs]
    english = {"logits"}  # which Chinese engineers do not translate
    for words in (*entry.meanings_zh.values(), entry.result_zh):
        assert CHINESE.search(words) or words in english


def test_no_entry_is_missing_or_left_over():
    assert set(ENTRIES) == set(registry)
    assert all(entry.title_zh for entry in ENTRIES.values())
