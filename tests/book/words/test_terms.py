"""Both languages keep to the standard terms: no page and no words of the program use a spelling that they replace."""

import ast
import re
from pathlib import Path

import pytest

import byhand.book.entries  # noqa: F401 - fills the table
from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.source import PACKAGE, repository
from byhand.book.words.glossary import CONCEPTS
from every import every
from where.index import all_findings
from where.syntax import tree

ROOT = repository() or Path()
# What not to write -> what to write instead
ENGLISH = {
    r"seed programs?": "original C++ program",
    r"(derivative|gradient) of the loss by": "derivative of the loss with respect to",
    r"cumulated": "cumulative",
    r"matter of course": "guaranteed",
    r"f[ae]lls? from the sky": "is not explained",
    r"comes? past": "reaches",
    r"hears? from": "depends on",
    r"surprise[sd]?": "negative log-probability",
    r"tokens? that came": "the actual next token",
    r"(of|has) size (1|one)": "variance 1",
    r"mov(e|es|ed|ing) the weights": "update the weights",
}
CHINESE = {
    r"样本批|一批样本": "批次",
    r"(?<!恒等)变形": "重塑",
    r"种子程序": "原 C++ 程序",
    r"印出": "输出",
    r"(?<!不)移动权重": "更新权重",
    r"从损失走回|走回(来|梯度)": "反向传播",
    r"放行|放过": "保留",
    r"令牌|词符": "词元",
    r"权值": "权重",
    r"学习速率": "学习率",
    r"向前传播": "前向传播",
    r"向后传播": "反向传播",
    r"逐词": "逐个词元",
    r"注意头": "注意力头",
    r"节点就是一次应用": "节点记录一次运算",
    r"意外程度|有多意外|“意外”": "负对数概率",
    r"各个房间": "代码地图",
}
STANDARD = {"批次", "重塑", "词元", "反向传播", "前向传播", "注意力头"}  # of those, what the glossary must know
ALIASES = re.compile(r"<!-- generated:\n[^>]*in terms\(\).*?<!-- end -->", re.DOTALL)  # what readers may ask for
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
WORDS = {"Words", "Note", "table_block"}  # (English, Chinese, ...)


def wrong(text: str, spellings: dict[str, str], before: str = "", after: str = "") -> list[str]:
    """Return each spelling in a text that a standard term replaces, and the term."""
    found = re.finditer("|".join(f"(?P<_{n}>{before}(?:{s}){after})" for n, s in enumerate(spellings)), text, re.I)
    terms = list(spellings.values())
    return [f"{match[0]!r}: write {terms[int((match.lastgroup or '_0')[1:])]!r}" for match in found]


def wrong_in(text: str, chinese: bool) -> list[str]:
    text = re.sub(r"<!--.*?-->", "", ALIASES.sub("", text))
    text = re.sub(r"\s*\n\s*", " ", text)
    return wrong(text, CHINESE) if chinese else wrong(text, ENGLISH, r"\b", r"\b")


def written(node: ast.expr) -> str:
    """Return the text of a string in the source, whatever an f-string puts in left out."""
    return "".join(
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and type(part.value) is str
    )


def said(module: ast.Module):
    """Yield (text, whether it is Chinese, line) of everything that a file says in both languages."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in WORDS and len(call.args) > 1:
            yield written(call.args[0]), False, call.lineno
            yield written(call.args[1]), True, call.lineno
        for keyword in call.keywords if name == "Entry" else ():
            if keyword.arg in ("note", "note_zh", "title_zh", "result_zh", "meanings_zh", "labels_zh"):
                yield written(keyword.value), keyword.arg != "note", keyword.value.lineno


@every(PAGES, lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_the_standard_terms(page):
    chinese = page.name.endswith(".zh-CN.md")
    assert not wrong_in(page.read_text(encoding="utf-8"), chinese)


def test_what_the_program_says_uses_the_standard_terms():
    texts = [
        (f"{path.relative_to(ROOT).as_posix()}:{line}", found)
        for folder in (PACKAGE, ROOT / "docs")
        for path in sorted(folder.rglob("*.py"))
        for text, chinese, line in said(tree(path))
        if (found := wrong_in(text, chinese))
    ]
    assert not texts


def test_what_the_answers_of_where_say_uses_the_standard_terms():
    said = [words for answer in all_findings().values() for words in (answer.title, *answer.says)]
    assert not [found for words in said if (found := wrong_in(words.en, False) + wrong_in(words.zh, True))]


def test_enough_is_read():
    entry = PACKAGE / "book" / "entries" / "cross_entropy.py"
    texts = list(said(tree(entry)))
    assert sum(chinese for _, chinese, _ in texts) >= 7
    assert len(PAGES) > 80


@pytest.mark.parametrize(
    ("text", "chinese", "term"),
    [
        ("The derivative of\nthe loss by x.", False, "derivative of the loss with respect to"),
        ("the seed program", False, "original C++ program"),
        ("no surprises here", False, "negative log-probability"),
        ("a surprising result", False, None),
        ("每一步移动权重", True, "更新权重"),
        ("公式的恒等变形", True, None),
        ("这就是变形", True, "重塑"),
        ("随机种子", True, None),
    ],
)
def test_a_wrong_spelling_is_found_and_a_right_one_is_not(text, chinese, term):
    found = wrong_in(text, chinese)
    assert bool(found) == (term is not None)
    assert term is None or found[0].endswith(f"write {term!r}")


def test_the_glossary_knows_the_standard_terms_and_none_that_they_replace():
    terms = {concept.zh for concept in CONCEPTS}
    names = terms | {other for concept in CONCEPTS for other in concept.also} | {e.title_zh for e in ENTRIES.values()}
    assert all(any(term in name for name in names) for term in STANDARD)
    assert not [term for term in terms if wrong_in(term, True)]
    assert not [concept.en for concept in CONCEPTS if wrong_in(concept.en, False)]
