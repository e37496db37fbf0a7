"""Templates of pages: both languages ask for the same, no number is typed in them, mistakes are one line."""

import re
from collections import Counter
from pathlib import Path

import pytest
from jinja2 import nodes

from byhand.book.words.language import PAGE
from byhand.errors import ByhandError
from every import every
from pages import filling, templates

ROOT = filling.docs()
ENGLISH = [page for page in filling.pages() if filling.language(page) == "en"]
PARTS = sorted(file for file in templates.PARTS.iterdir() if PAGE.zh not in file.name)


def of(page):
    """Return the templates of a page, or a part."""
    text = page.read_text(encoding="utf-8")
    marks = [mark["template"] for mark in filling.MARK.finditer(text)]
    return [text] if page.parent == templates.PARTS else [template for template in marks if template is not None]


def asked(template):
    """Return all that a template evaluates, in order, without the words of its language."""
    return list(_asked(templates.environment("en").parse(template)))


def literal(template):
    """Return the text of a template that no expression makes."""
    return "".join(data.data for data in templates.environment("en").parse(template).find_all(nodes.TemplateData))


def _asked(node, argument=False):
    """Yield the nodes of a template: texts only as arguments, and the parts of a sentence in any order."""
    if isinstance(node, nodes.Output):
        yield from sorted(" ".join(_asked(part)) for part in node.nodes if not isinstance(part, nodes.TemplateData))
        return
    if not isinstance(node, nodes.Const):
        yield " ".join([type(node).__name__, *(str(v) for k, v in node.iter_fields() if k in ("name", "attr", "op"))])
    elif argument or not isinstance(node.value, str):
        yield repr(node.value)
    inside = argument or isinstance(node, nodes.Call | nodes.Filter)
    for child in node.iter_child_nodes(only=["node"]):
        yield from _asked(child, argument)
    for child in node.iter_child_nodes(exclude=["node"]):
        yield from _asked(child, inside)


WITH = [*PARTS, *(page for page in ENGLISH if of(page))]


def twin(page):
    return page.with_name(page.name.replace(PAGE.en, PAGE.zh))


@every(WITH, lambda page: page.name)
def test_both_languages_ask_for_the_same(page):
    for own, other in zip(of(page), of(twin(page)), strict=True):
        assert asked(own) == asked(other), own


def test_what_is_asked_leaves_out_words_and_keeps_arguments():
    template = '{% for words, n in (("two", 2),) %}{{ words }} {{ forward("softmax", [n])|f(".3f") }}{% endfor %}'
    assert asked(template) == asked(template.replace('"two"', '"二"'))
    for one, other in (("softmax", "relu"), (".3f", ".2f"), ("2)", "3)"), ("{{ words }} ", ""), ("|f", "|decimal")):
        assert asked(template) != asked(template.replace(one, other, 1)), one


@every([*WITH, *map(twin, WITH)], lambda page: page.name)
def test_no_number_is_typed_beside_expressions(page):
    for template in of(page):
        prose = re.sub(r"`[^`]*`", "", literal(template))
        typed = [n for n in re.findall(r"(?<![\w.-])\d[\d.,]*", prose) if not re.fullmatch(r"\d|10", n.rstrip(".,"))]
        assert not typed, template


BESIDE = [page for page in ENGLISH if templates.beside(page)]
SHARED = sorted(Path(templates.answers.__file__).parent.glob("[!_]*.py"))


def called(*pages):
    """Return the names that templates of pages or parts read, but for those that they set."""
    parsed = [templates.environment("en").parse(one) for page in pages for one in of(page)]
    return {name for template in parsed for name in _names(template, "load") - _names(template, "store")}


def _names(template, context):
    return {node.name for node in template.find_all(nodes.Name) if node.ctx == context}


def spare(names, source):
    """Return the public names among these that a source does not use itself."""
    return {n for n in names if not n.startswith("_") and len(re.findall(rf"\b{n}\b", source)) < 2}


@every(BESIDE, lambda page: page.name)
def test_what_stands_beside_a_page_is_asked_for(page):
    """By its templates, by a part, or in the file itself; and it hides nothing that they call."""
    own, shared = templates.beside(page), templates.ANSWERS | templates.KINDS
    assert not spare(own, page.with_suffix(".py").read_text(encoding="utf-8")) - called(page, *PARTS)
    assert [name for name in own.keys() & called(page) & shared.keys() if own[name] is not shared[name]] == []


def test_what_stands_beside_no_page_is_asked_for_by_several():
    """Or by a part, which several pages share."""
    uses = Counter(name for page in WITH for name in called(page)) + Counter(called(*PARTS))
    given = spare(templates.ANSWERS, "\n".join(path.read_text(encoding="utf-8") for path in SHARED))
    assert [name for name in given - {"zip", "enumerate"} if uses[name] < 2] == []


def test_every_format_is_asked_for():
    found = [templates.environment("en").parse(one).find_all(nodes.Filter) for page in WITH for one in of(page)]
    assert {*templates.FORMATS} <= {node.name for filters in found for node in filters}


@pytest.mark.parametrize(
    ("template", "line", "said"),
    [
        ("{{ lossof(1) }}", 4, "'lossof' is undefined"),
        ("a\n{{ 1|dexcimal }}", 5, "No filter named 'dexcimal'"),
        ("{% for x in %}", 4, "Expected an expression"),
        ('\n{{ the("model.py:vanished") }}', 5, "there is no model.py:vanished in src/byhand"),
        ('{{ "".__class__.__mro__ }}', 4, "access to attribute '__class__' of 'str' object is unsafe"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_template_is_one_line(tmp_path, template, line, said):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n<!-- generated:\n{template}\n-->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(ByhandError) as error:
        filling.filled(page)
    assert str(error.value).startswith(f"page.md:{line}: {said}")
    assert "Correct the " in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_in_a_part_names_the_part_and_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "PARTS", tmp_path)
    (tmp_path / "title.md.jinja").write_text("\n{{ finding(nam) }}", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("<!-- generated: title relu -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(ByhandError, match=r"^page\.md:1: parts/title\.md\.jinja:2: 'nam' is undefined\. Correct"):
        filling.filled(page)


def test_a_template_says_numbers_links_and_words_in_the_language_of_its_page(tmp_path):
    template = '{{ 1 / 3 }}|{{ [0.5, -0.0000001]|f }}|{{ (-2)|f("g")|minus|factor }}|{{ [1, 2]|listed }}'
    said = dict.fromkeys((".md", ".zh-CN.md"), f"[{template}]")
    for suffix, text in said.items():
        page = tmp_path / f"page{suffix}"
        page.write_text(f"<!-- generated:\n{text}\n-->\nold\n<!-- end -->\n", encoding="utf-8")
        comma = ", " if suffix == ".md" else "、"
        body = f"[{1 / 3}|['0.500000', '0.000000']|(−2)|1{comma}2]"
        assert filling.filled(page) == f"<!-- generated:\n{text}\n-->\n\n{body}\n\n<!-- end -->\n"
        assert filling.as_read(filling.filled(page)) == f"<!-- generated: template -->\n\n{body}\n\n<!-- end -->\n"
