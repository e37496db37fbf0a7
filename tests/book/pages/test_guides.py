"""What the guides say and no block makes: their loop runs, their breakpoints stop, both ways of decoding agree."""

import contextlib
import dis
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType

import numpy as np
import pytest

from book.pages.asked import answers_of
from byhand.book.explain.explainer import explain
from byhand.book.lessons.examples import TITLES, make
from byhand.book.lessons.examples.attention_index import queries_and_keys
from byhand.book.lessons.lesson import Array, grid
from byhand.book.lessons.naming import short
from byhand.book.numbers import closed_form
from byhand.book.pictures.passes import TOKENS, cached_passes, paper_model
from byhand.book.words.language import say
from byhand.budget import recipe
from byhand.cli.main import COMMANDS, main
from byhand.equations import attention_scores, split_qkv
from byhand.layers.parameter import STD
from byhand.model import TinyGPT
from byhand.tracing.targets import parse_target
from byhand.tracing.trace import Trace
from pages import filling as pages
from pages.answers.equations import worked_numbers
from pages.blocks.arrays import displayed, number_in_latex, quiet
from pages.blocks.lessons import chosen

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guides"
SUFFIXES = ("md", "zh-CN.md")
WAY = ("update", "learn-by-hand", "backward-by-hand")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_program_of_the_matrix_core_prints_the_losses_of_the_page(suffix, capsys):
    page = (GUIDES / f"update.{suffix}").read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    exec(program, {})
    printed = [float(line) for line in capsys.readouterr().out.split()]
    shown = re.findall(r"^L'? = ([\d.]+)$", page, re.MULTILINE)
    worked = re.search(r"`L` \| `loss\[0\] / N = ([\d.]+) / 1`", page)
    assert worked is not None
    assert printed == [float(worked[1]), float(shown[-1])]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_loop_of_the_attention_guide_computes_the_scores(suffix):
    page = (GUIDES / f"attention-index.{suffix}").read_text(encoding="utf-8")
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "def scores" in code or "def split" in code:
            exec(code, names)
    b, t, h, d = 2, 3, 2, 5
    packed = np.random.default_rng(3).standard_normal((b, t, 3 * h * d))
    q, k, _ = split_qkv.forward(packed, n_heads=h)[0]
    by_head = [names["split"](packed.ravel().tolist(), part, b, h, t, d) for part in (0, 1)]
    flat = names["scores"](*by_head, b, h, t, d)
    np.testing.assert_array_equal(by_head, [q.ravel(), k.ravel()])
    np.testing.assert_allclose(flat, attention_scores.forward(q, k)[0].ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_breakpoints_are_lines_that_run(suffix):
    page = (GUIDES / f"reading-order.{suffix}").read_text(encoding="utf-8")
    found = re.findall(r"^break src/(\S+)\.py:(\d+)$", page, re.MULTILINE)
    assert len(found) >= 5
    for path, line in found:
        module = import_module(path.replace("/", "."))
        code = compile(Path(module.__file__ or "").read_text(encoding="utf-8"), path, "exec")
        assert int(line) in set(lines_of_functions(code)), f"{path}.py:{line} is not inside a function"


def debugged(suffix):
    """Return the page's command, its lines that set breakpoints, and what to type at each of them."""
    page = pages.as_read((GUIDES / f"reading-order.{suffix}").read_text(encoding="utf-8"))
    command = re.search(r"^python (-m pdb .*) --out \S+$", page, re.MULTILINE)
    looked = [re.findall("`((?:p |next)[^`]*)`", line) for line in re.findall(r"^\d+\. .*", page, re.MULTILINE)]
    assert command is not None
    return command[1], re.findall(r"^(t?break .*|continue)$", page, re.MULTILINE), looked


def test_breakpoints_are_reached_in_order_and_show_what_the_page_says(tmp_path):
    command, begun, looked = debugged("md")
    assert (command, begun, looked) == debugged("zh-CN.md")
    begin, *stops = (tuple(line.split()[1].rsplit(":", 1)) for line in begun if line != "continue")
    typed = begun + [command for commands in looked for command in ("continue", *commands)] + ["quit"]
    done = subprocess.run(
        [sys.executable, *command.split(), "--out", str(tmp_path / "look")],
        cwd=GUIDES.parents[1],
        env=os.environ | {"PYTHONPATH": "src", "PYTHONIOENCODING": "utf-8"},
        input="\n".join(typed),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    reached = re.findall(r"> \S*?(src[/\\]byhand\S+?)\((\d+)\)", done.stdout)
    stopped = [(path.replace("\\", "/"), line) for path, line in reached if "__main__" not in path]
    assert [place for place in stopped if place in (begin, *stops)] == [begin, *stops]
    assert len(looked) == len(stops)
    assert all(looked)
    assert not re.search(r"\*\*\*|No help", done.stdout), done.stdout
    assert "defect" not in done.stderr, done.stderr


def lines_of_functions(code: CodeType, inside: bool = False):
    """Yield every line at which a statement of some function begins."""
    if inside:
        yield from (line for _, line in dis.findlinestarts(code) if line is not None)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines_of_functions(constant, inside or bool(constant.co_flags & 0x1))


@cache
def passes_of_the_cache():
    """Return for each length of the example the pass over all tokens, and that of the last token with a cache."""
    model = paper_model()
    whole = [Trace.of(lambda n=n: model.forward_logits([TOKENS[:n]])) for n in range(1, len(TOKENS) + 1)]
    return list(zip(whole, cached_passes(), strict=True))


def test_decoding_with_a_cache_gives_the_same_logits():
    for whole, cached in passes_of_the_cache():
        logits = (trace.result.data[0, -1] for trace in (cached, whole))
        np.testing.assert_allclose(*logits, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_counted_work_of_the_cache_is_what_the_guide_says(suffix):
    def work(trace):
        (scores,) = (a.results[0].shape for a in trace.applications if a.equation is attention_scores)
        return scores[2], math.prod(scores)

    page = (GUIDES / f"kv-cache.{suffix}").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:\d \| \[[\d, ]+\]|\S+ \| ) \|((?: \d+ \|){4})$", page, re.MULTILINE)
    *steps, total = (tuple(map(int, re.findall(r"\d+", row))) for row in rows)
    assert steps == [(*work(whole), *work(cached)) for whole, cached in passes_of_the_cache()]
    assert total == tuple(map(sum, zip(*steps, strict=True)))


def test_the_cache_guide_computes_with_the_model_of_its_lesson():
    given = dict(make("kv-cache").given)
    for name, parameter in paper_model().parameters().items():
        assert given[short(name)] == grid(parameter.data), name
    assert given["tokens"] == str(TOKENS)


def test_the_offsets_in_the_tables_are_those_of_memory():
    array = np.arange(2 * 2 * 3 * 3).reshape(2, 2, 3, 3)
    worked, offset = answers_of("guides/autograd-and-memory").offset_in((1, 0, 2, 1), array.shape)
    assert offset == array[1, 0, 2, 1]
    assert eval(worked.replace("×", "*")) == array[1, 0, 2, 1]


def test_the_score_of_the_attention_guide_reads_the_same_numbers_before_the_split():
    q, k = (x.data for x in queries_and_keys(closed_form.array))
    packed = split_qkv.vjp((), (q, k, np.zeros_like(q)), n_heads=q.shape[1])[0]
    rows = answers_of("guides/attention-index").packed_offsets()
    assert len(rows) == 4
    for element, offset, place, beside, value in rows:
        array, index = {"q": q, "k": k}[element[0]], tuple(map(int, element[2:-1].split(",")))
        assert array[index] == array.ravel()[offset] == packed[*place] == packed.ravel()[beside] == value


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_answers_that_are_numbers(suffix):
    def answers(name):
        page = (GUIDES / f"{name}.{suffix}").read_text(encoding="utf-8")
        return re.findall(r"</summary>\n\n(.*?)\n\n</details>", page, re.DOTALL)[-3:]

    by_offset = np.arange(2 * 3 * 4)
    wanted = by_offset.reshape(2, 3, 4)[1, 0, 2]
    assert f"= `{wanted}`" in answers("autograd-and-memory")[0]
    assert (
        str(tuple(int(i[0]) for i in np.where(by_offset.reshape(6, 4) == wanted)))
        in answers("autograd-and-memory")[0]
    )
    scores = np.arange(2 * 2 * 3 * 3).reshape(2, 2, 3, 3)
    assert f"= `{scores[1, 1, 2, 0]}`" in answers("attention-index")[0]
    columns = np.arange(18.0).reshape(1, 1, 18)
    _, keys, _ = split_qkv.forward(columns, n_heads=3)[0]
    first, second = keys[0, 2, 0].astype(int)
    assert re.search(rf"\b{first}\b.*`{second}`", answers("multi-head-attention")[0])
    page = (GUIDES / f"equation-to-code.{suffix}").read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- generated.*?<!-- end -->", "", page, flags=re.DOTALL)
    assert set(re.findall(r"`(0\.\d+)`", by_hand)) == {f"{STD:g}"}


def test_every_command_of_the_pages_is_there():
    for page in {*pages.pages(), *GUIDES.glob("*.md")}:
        text = page.read_text(encoding="utf-8")
        for command, name in re.findall(r"`byhand (\w+)(?: ([\w-]+))?[^`]*`", text):
            assert command in COMMANDS, f"{page.name}: byhand {command}"
            if command == "work":
                assert name in TITLES or name.isupper(), f"{page.name}: byhand work {name}"


def help_of(capsys, *words):
    """Return the page of --help of a command."""
    with contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_every_flag_of_the_pages_is_in_the_help(capsys):
    written: dict[str, set[str]] = {}
    for page in {*pages.pages(), *GUIDES.glob("*.md")}:
        for command, rest in re.findall(r"byhand (\w+)([^`\n]*)", page.read_text(encoding="utf-8")):
            if command in COMMANDS:
                written.setdefault(command, set()).update(re.findall(r"(?<!\S)--[a-z][\w-]*", rest))
    assert written["train"]
    for command, flags in written.items():
        offered = help_of(capsys, command)
        for inner in re.findall(r"^  (\w+)  ", offered, re.MULTILINE) if "COMMAND" in offered else ():
            offered += help_of(capsys, command, inner)
        offered = set(re.findall(r"--[a-z][\w-]*", offered))
        assert flags <= offered, f"byhand {command} has no {', '.join(sorted(flags - offered))}"


def test_switches_take_no_value():
    """A yes-or-no flag is written `--causal` or `--no-causal`."""
    for page in pages.pages():
        assert not re.search(r"--[\w-]+ (True|False)\b", page.read_text(encoding="utf-8")), page.name


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("name", "count"), [("equation-to-code", 4), ("symptoms", 2)])
def test_every_number_that_a_page_asks_for_can_be_explained(name, count, suffix):
    page = (GUIDES / f"{name}.{suffix}").read_text(encoding="utf-8")
    asked = re.findall(r'^byhand explain runs/first --prompt "(.*?)" "(.*?)"(.*)$', page, re.MULTILINE)
    assert len(asked) == count
    model = TinyGPT(replace(recipe.MODEL, n_layers=2, d_model=32, n_heads=1, d_ff=96), dtype="float64")
    for prompt, target, flags in asked:
        name, index, _ = parse_target(target)
        tokens = list(prompt.encode())
        found = explain(model, [tokens], [[*tokens[1:], 10]], name, index, grad="--grad" in flags)
        assert (found.name, tuple(found.index)) == (name, tuple(index))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("page", "name", "left"),
    [
        ("matrix-core", "two-tokens", (9, 10, 11, 13, 14, 17, 19, 21, *range(23, 27), 28, 29)),
        ("gradient", "nudges", ()),
        ("update", "matrix-core", ()),
        ("learn-by-hand", "paper-gpt", (*range(23, 52), 53)),  # the other page works these
        (
            "backward-by-hand",
            "paper-gpt",
            (1, 2, 3, 5, 7, 9, 11, 12, 16, 17, 19, *range(43, 46), 47, 48, *range(50, 56)),
        ),
        ("classifier", "classifier", ()),
    ],
)
def test_every_step_of_a_lesson_stands_on_its_page_in_order(page, name, left, suffix):
    text = (GUIDES / f"{page}.{suffix}").read_text(encoding="utf-8")
    shown: list[int] = []
    for steps in re.findall(rf"<!-- generated: lesson {name} ([\d,-]+)(?: \w+)? -->", text):
        shown += chosen(steps, 0)
    count = len(make(name).steps)
    assert shown == [n for n in range(1, count + 1) if n not in left]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_way_gives_a_reason_once_and_folds_arithmetic_that_it_did_before(suffix):
    pages_of_it = [(GUIDES / f"{name}.{suffix}").read_text(encoding="utf-8") for name in WAY]
    assert [len(re.findall(r"\*\* ?A dot product is|\*\*：两个向量", text)) for text in pages_of_it] == [1, 0, 0]
    for text in pages_of_it[1:]:
        reasons = re.findall(r"^\*\*(?:Why\.|原因)\*\*.*", text, re.MULTILINE)
        assert len(reasons) == len(set(reasons)) > 5
        in_sight = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
        rows = re.findall(r"^\| `(?:μ|[^`(]+\(∂\w+\))\[0\]`", in_sight, re.MULTILINE)
        assert len(rows) == 1, "of three LayerNorms the first is worked in sight"


def test_the_rows_of_an_update_follow_one_element():
    shown = [say(number.label, "en") for number in worked_numbers("adamw", False)]
    assert shown == ["m_t[0]", "m̂_t[0]", "v_t[0]", "v̂_t[0]", "θ'[0]"]


@pytest.mark.parametrize("name", ["paper-gpt", "matrix-core", "classifier"])
def test_products_by_nought_and_one_are_spelled_out_once(name):
    for step in make(name).steps:
        if step.stem in ("linear", "matmul", "mix", "attention_scores"):
            for number in step.numbers:
                trivial = r"(?<![\d.])(?<![−] )(?<!−)[01] ×|× [01](?![\d.])"  # − 1 × x shows whose sign it is
                small = (
                    sum(str(n.label).startswith(f"{str(number.label).partition('[')[0]}[") for n in step.numbers) <= 4
                )
                assert number.whole or small or not re.search(trivial, str(number.expression)), number


def test_the_parts_of_an_array_stand_in_a_row_if_they_fit():
    """Beside a short matrix there is room for two of the three."""
    given = [Array("W", "W", np.eye(4)), Array("b_{qkv}", "b_qkv", np.zeros(12))]
    assert displayed(given).splitlines()[3:5] == ["& b_Q = 0 \\quad b_K = 0 \\quad b_V = 0", "\\end{aligned}"]


def test_a_letter_with_an_exponent_gets_no_second_one():
    assert r"\left(K^{\top}\right)^{(1)} = " in displayed([Array(r"K^{\top}", "", np.ones((2, 1, 1)))])


def test_what_rounding_leaves_of_a_zero_is_not_printed():
    assert quiet("(−1.11022e−16) × 0.2 + 3e−5") == "0 × 0.2 + 3e−5"
    assert number_in_latex(-8.73367e-8) == r"-8.73 \cdot 10^{-8}"
    assert quiet("1 + tanh(−1.1e−17)") == "1 + tanh(0)"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_index_lists_every_guide_by_its_title(suffix):
    index = (GUIDES.parent / f"index.{suffix}").read_text(encoding="utf-8")
    guides = [page for page in GUIDES.glob("*.md") if page.name.split(".", 1)[1] == suffix]
    for page in guides:
        title = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert title is not None
        assert re.search(
            rf"^(-|\d+\.) \[{re.escape(title[1])}\]\(guides/{re.escape(page.name)}\)", index, re.MULTILINE
        )
