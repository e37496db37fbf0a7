"""The pages say what the code says, in both languages, and every pointer and number in them is made or checked."""

import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from byhand.book.finding import source
from byhand.book.finding.flow import concepts
from byhand.book.lessons.letters import label
from byhand.book.lessons.roles import told
from byhand.book.words.language import PAGE
from byhand.book.words.tables import table
from byhand.engine.equation import Composite, registry
from byhand.errors import ByhandError
from every import every
from pages import data, templates
from pages import filling as pages
from pages.answers import steps
from pages.answers.equations import half_of, worked_numbers
from pages.answers.mistakes import mistakes_of
from pages.blocks.markdown import located
from where import index, syntax

ROOT = Path(__file__).resolve().parents[3]
PAGES = pages.pages()
SUFFIXES = (".md", ".zh-CN.md")
CHINESE = [page for page in PAGES if page.name.endswith(".zh-CN.md")]
WITH_PAGES = [stem for stem in registry if all((ROOT / f"docs/equations/{stem}{s}").is_file() for s in SUFFIXES)]
ENGLISH = [page for page in PAGES if pages.language(page) == "en"]
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->|<!-- = .*?<!-- \. -->", re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
MATH = re.compile(r"^ *```math\n(.*?)^ *```|\$`(.*?)`\$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]+)\)")
NUMBER = re.compile(r"(?<![\w.-])[\d][\d.,]*")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text(page: Path) -> str:
    """A page as its readers see it, without templates."""
    return pages.as_read(page.read_text(encoding="utf-8"))


def headings(page: Path) -> list[str]:
    return re.findall(r"^(#+) ", FENCE.sub("", text(page)), re.MULTILINE)


def numbers(content: str) -> Counter[str]:
    return Counter(n.rstrip(".,") for n in NUMBER.findall(LINK.sub(r"\1", content)))


def twin(page):
    """Return the same page in the other language."""
    own, other = (PAGE.zh, PAGE.en) if pages.language(page) == "zh" else (PAGE.en, PAGE.zh)
    return page.with_name(page.name.removesuffix(own) + other)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_are_fresh(page):
    assert pages.filled(page) == page.read_text(encoding="utf-8"), f"stale; run: {pages.COMMAND}"


@every(registry)
def test_a_stem_has_its_five_places(stem):
    places = (
        f"src/byhand/equations/{stem}.py", f"src/byhand/book/entries/{stem}.py", f"tests/equations/test_{stem}.py",
        f"docs/equations/{stem}.md", f"docs/equations/{stem}.zh-CN.md",
    )  # fmt: skip
    missing = [path for path in places if not (ROOT / path).is_file()]
    assert not missing, f"write {', '.join(missing)}"
    entry = index.findings()[stem]
    pointers = (entry.forward, entry.worked, entry.test, entry.page("en"), entry.page("zh"))
    assert [pointer and pointer.partition(":")[0] for pointer in pointers] == [*places]


@every(WITH_PAGES)
def test_a_page_of_an_equation_has_its_blocks(stem):
    for suffix in (".md", ".zh-CN.md"):
        page = ROOT / "docs" / "equations" / f"{stem}{suffix}"
        lacking = [b for b in ("title", "worked", "more") if f"<!-- generated: {b} {stem} -->" not in text(page)]
        assert not lacking, f"{name(page)} lacks <!-- generated: BLOCK {stem} --> for {', '.join(lacking)}"


@every(WITH_PAGES)
def test_a_page_shows_the_code_without_its_checks_and_mistakes_that_change_a_number(stem):
    if isinstance(registry[stem], Composite):
        return
    for half in ("forward", "vjp"):
        code = half_of(stem, half)
        compile(code, stem, "exec")
        assert "require" not in code
        assert '"""' not in code
    assert all(wrong != right for _, _, wrong, right in mistakes_of(stem))


@pytest.mark.parametrize("stem", WITH_PAGES)
def test_a_page_works_one_element_and_calls_no_part_of_it_as_an_input(stem):
    """AdamW's moments and its weight are those of one place; GeGLU's u is not the u of its tanh."""
    inputs = {label(symbol.latex) for symbol in registry[stem].inputs}
    for back in (False, True):
        labels = [str(n.label).partition("[") for n in worked_numbers(stem, back)]
        elements = [place for name, _, place in labels if name.removeprefix("∂") not in inputs]
        longest = max(map(len, elements), default=0)
        assert len({place for place in elements if len(place) == longest}) <= 1, labels
        assert not {name for name, _, _ in labels} & inputs, labels


def test_every_term_of_the_glossary_has_a_meaning_and_no_other_has():
    assert {concept.en for concept in concepts()} == set(data.read("meanings"))


def test_no_equation_page_is_left_over():
    stems = {page.name.split(".")[0] for page in (ROOT / "docs" / "equations").glob("*.md")}
    assert stems <= set(registry)


@every(PAGES, name)
def test_a_page_exists_in_both_languages(page):
    assert twin(page).is_file()
    assert f"]({twin(page).name})" in text(page), "the page does not lead to the other language"


def _wordless(latex):
    """A formula without the words in it, which differ by language."""
    return re.sub(r"\\text\{[^{}]*\}", "", latex)


@every([ROOT / "README.md", *ENGLISH], name)
def test_languages_agree(page):
    other = twin(page)
    assert headings(page) == headings(other)
    formulas = [Counter(_wordless(a or b) for a, b in MATH.findall(text(p))) for p in (page, other)]
    assert formulas[0] == formulas[1]
    assert numbers(text(page)) == numbers(text(other))
    fences = [FENCE.findall(_wordless(GENERATED.sub("", text(p)))) for p in (page, other)]
    assert fences[0] == fences[1], "code is the same in both languages; generated output speaks the page's"
    blocks = [re.findall(r"<!-- generated: (.*) -->|<!-- = (.*?) -->", text(p)) for p in (page, other)]
    assert blocks[0] == blocks[1]


@every(PAGES, name)
def test_no_number_is_typed_by_hand(page):
    by_hand = FENCE.sub("", GENERATED.sub("", text(page)))
    by_hand = re.sub(r"`[^`]*`", "", LINK.sub(r"\1", by_hand))
    typed = [n for n in numbers(by_hand) if not re.fullmatch(r"\d|10", n)]
    assert not typed, "numbers belong in generated blocks"


@every(PAGES, name)
def test_a_row_of_a_table_has_as_many_cells_as_its_head(page):
    bare = re.sub(r"`[^`]*`", "", FENCE.sub("", text(page)).replace(r"\|", ""))
    for rows in re.findall(r"(?:^\|.*\n)+", bare, re.MULTILINE):
        assert len({row.count("|") for row in rows.splitlines()}) == 1, rows


@every(sorted({*PAGES, *(ROOT / "docs" / "guides").glob("*.md")}), name)
def test_links_lead_somewhere(page):
    """Of guides without generated blocks too."""
    for shown, target in LINK.findall(FENCE.sub("", text(page))):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} is not there"
        if anchor and file.suffix == ".py":
            assert syntax.statement(file, anchor), f"{target}: no such definition"
            assert shown in (f"{file.relative_to(ROOT).as_posix()}:{anchor}", anchor, anchor.partition("_")[0])
        elif anchor:
            assert anchor in slugs(file), f"{target}: no such heading"


@every(PAGES, name)
def test_formulas_are_in_the_form_that_github_renders(page):
    """It takes $`x`$ only beside spaces or ASCII signs, on one line; a < without spaces is taken for HTML."""
    prose = FENCE.sub("", text(page))
    assert not re.findall(r"[^\s|(]\$`|`\$[^\s|,.;:)]", prose)
    assert "$" not in re.sub(r"\$`[^`\n]*`\$", "", prose), "single dollars let Markdown eat underscores"
    for formula in (a or b for a, b in MATH.findall(text(page))):
        assert not re.search(r"\S<|<\S|operatorname|\$", formula)
        assert re.sub(r"\\\w+\{aligned\}", "", formula).strip(), "a formula of nothing"


@every([p for p in PAGES if pages.language(p) == "zh"], name)
def test_no_chinese_sentence_is_broken_in_two(page):
    """A line break inside a paragraph is shown as a space, which Chinese does not have."""
    broken = re.findall(r"[\u3000-\u9fff，。：；]\n {0,3}[\u3000-\u9fff（]", FENCE.sub("", text(page)))
    assert not broken


def slugs(page: Path) -> list[str]:
    """Return the anchors that GitHub gives a page's headings."""
    found = re.findall(r"^#+ (.*)$", FENCE.sub("", text(page)), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found]


@every(WITH_PAGES)
def test_pointers_are_where_python_finds_the_code(stem):
    equation = registry[stem]
    halves = (
        [equation.compose] if isinstance(equation, Composite) else [equation.forward, equation.vjp, equation.terms]
    )
    for half in halves:
        file = Path(inspect.getsourcefile(half) or "").relative_to(ROOT).as_posix()
        for suffix in (".md", ".zh-CN.md"):
            assert f"[{half.__name__}](../../{file}#{half.__name__})" in text(
                ROOT / "docs" / "equations" / f"{stem}{suffix}"
            )


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_places_that_the_readme_shows_are_those_of_where(name):
    entries = index.findings().values()
    known = {
        place
        for entry in entries
        for place in (entry.forward, entry.derivative, *(use.where for use in entry.uses[:1]), entry.test)
    }
    assert set(re.findall(r"\b(?:src|tests)/[\w/]+\.py:\d+", text(ROOT / name))) <= known


def test_a_stale_block_or_picture_is_found(tmp_path, monkeypatch, capsys):
    page = tmp_path / "docs" / "relu.md"
    page.parent.mkdir()
    page.write_text("<!-- generated: formula relu -->\nwrong\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(pages, "repository", lambda: tmp_path)
    monkeypatch.setattr(pages, "PICTURES", {"who-holds-what": pages.PICTURES["who-holds-what"]})
    assert pages.main(["--check"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "stale: docs/relu.md" in said
    assert said[-1] == f"Run {pages.COMMAND}."
    assert pages.main([]) == 0
    assert registry["relu"].latex in page.read_text(encoding="utf-8")
    (tmp_path / "docs" / "images" / "who-holds-what.svg").write_text("<svg/>")
    capsys.readouterr()
    assert pages.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "stale: docs/images/who-holds-what.svg"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("poem", "x.md asks for a block 'poem'. Use one of "),
        ("lesson", "x.md:2: lesson() missing 1 required positional argument"),
        ("title", "x.md:2: parts/title.md.jinja:3: the equation "),
        ("snippet model.py:vanished", "x.md:2: parts/snippet.md.jinja:1: model.py has no vanished. Correct what "),
    ],
)
def test_a_block_that_cannot_be_made_is_an_error_in_one_line(tmp_path, mark, said):
    page = tmp_path / "x.md"
    page.write_text(f"\n<!-- generated: {mark} -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(ByhandError) as error:
        pages.filled(page)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"<!-- generated: formula relu -->\n\nA sentence.\n\n<!-- generated: formula add -->\n<!-- end -->\n",
            "x.md:5: ",
        ),
        (b"<!-- generated: formula relu -->\n<!-- end -->\n\n<!-- end -->\n", "x.md:4: "),
        (b"<!-- generated: formula relu -->\n\nA sentence.\n", "x.md: "),
        (b"\xef\xbb\xbf<!-- generated: formula relu -->\n<!-- end -->\n", "x.md begins with a byte order mark"),
        (b"\xff<!-- generated: formula relu -->\n<!-- end -->\n", "x.md is no UTF-8 text"),
    ],
)
def test_a_damaged_page_is_an_error_in_one_line(tmp_path, content, said):
    """A mark without its end would swallow the sentence, and a byte order mark hides the heading."""
    page = tmp_path / "x.md"
    page.write_bytes(content)
    with pytest.raises(ByhandError) as found:
        pages.filled(page)
    assert str(found.value).startswith(said)
    assert "\n" not in str(found.value)


def test_line_ends_are_part_of_a_page(tmp_path, monkeypatch):
    """Every checkout has LF alone, on Windows too (.gitattributes)."""
    page = tmp_path / "relu.md"
    page.write_bytes((ROOT / "docs/equations/relu.md").read_bytes())
    monkeypatch.setattr(pages, "PICTURES", {})
    monkeypatch.setattr(pages, "pages", lambda: [page])
    monkeypatch.setattr(pages, "filled", pages.read)
    assert page not in dict(pages.stale())
    page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    assert page in dict(pages.stale())


def test_a_row_of_a_table_that_lacks_a_key_names_the_table(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("batch = {}", encoding="utf-8")
    with pytest.raises(ByhandError, match=r"x\.toml lacks 'zh'\. Add it\.$"):
        _ = table(path)["batch"]["zh"]


@pytest.mark.parametrize("row", ["goal = ['x', 'y']", "name = ['x', 'y']\ngoal = ['x', 'y']\nwhy = 'add/other'"])
def test_a_role_that_lacks_something_is_an_error_that_names_the_table(tmp_path, row):
    (tmp_path / "x.toml").write_text(f"['add/out']\n{row}", encoding="utf-8")
    with pytest.raises(ByhandError, match=r"x\.toml lacks '(name|add/other)'\. Add it\.$"):
        told(str(tmp_path / "x.py"))


@pytest.mark.parametrize(("content", "said"), [(b"\xff", "is no UTF-8 text"), (None, "cannot be read")])
def test_a_damaged_part_is_an_error_that_names_it(tmp_path, monkeypatch, content, said):
    monkeypatch.setattr(templates, "PARTS", tmp_path)
    part = tmp_path / "x.md.jinja"
    part.mkdir() if content is None else part.write_bytes(content)
    with pytest.raises(ByhandError, match=rf"^x\.md\.jinja {said}"):
        templates._part("x", ROOT / "docs/equations/relu.md", "en")


def test_a_moved_definition_is_an_error():
    with pytest.raises(ByhandError, match="no vanished"):
        located("model.py:vanished")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("X", "linear", "blocks.0.x_mid", ()), "the model computes blocks.0.x_mid by no call of linear."),
        (("X", "residual", "blocks.0.x_end", ()), "the model computes blocks.0.x_end by no call of residual."),
        (("X", "residual", "blocks.0.x_mid", ("x",)), "made from x, but the model makes blocks.0.x_mid from x, b"),
    ],
)  # fmt: skip
def test_a_line_that_the_model_computes_otherwise_is_an_error_in_one_line(monkeypatch, line, said):
    monkeypatch.setattr(steps, "LINES", {"block": (line,)})
    with pytest.raises(ByhandError) as error:
        list(steps.lines_of(("block",)))
    assert str(error.value).startswith("the page shows X")
    assert said in str(error.value)


@pytest.mark.slow
def test_the_command_that_a_stale_page_names_mends_it(tmp_path):
    """In a copy of the checkout with one page, whose block is spoilt."""
    for part in ("pyproject.toml", "src", "docs/build"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    page = tmp_path / "docs" / "equations" / "relu.md"
    page.parent.mkdir()
    whole = text(ROOT / "docs" / "equations" / "relu.md")
    page.write_text(whole.replace("<!-- end -->", "what was\n<!-- end -->"), encoding="utf-8")
    python, *command = pages.COMMAND.split()
    assert python == "python"
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "written: docs/equations/relu.md\n" in done.stdout
    assert "what was" not in text(page)


def test_an_error_of_that_command_is_one_line(monkeypatch, capsys):
    def refuse(arguments):
        raise ByhandError("relu.md:1: model.py has no vanished.")

    monkeypatch.setattr(pages, "main", refuse)
    with pytest.raises(SystemExit, match=r"^2$"):
        runpy.run_path(str(ROOT / pages.COMMAND.split()[1]), run_name="__main__")
    assert capsys.readouterr().err == "error: relu.md:1: model.py has no vanished.\n"


def test_source_lines_are_read_from_this_checkout():
    assert source.repository() == ROOT


@every(CHINESE, name)
def test_bold_words_end_before_their_punctuation(page):
    """Markdown does not end bold type between a full-width mark and a letter: `**目的：**由` shows its asterisks."""
    for line in text(page).splitlines():
        bold, after = line.split("**")[1::2], line.split("**")[2::2]
        wrong = [
            a for a, b in zip(bold, after, strict=False) if re.search(r"[。：，；！？、）]$", a) and b[:1].strip()
        ]
        assert not wrong, line
