"""The index: it is fresh, every answer opens what it names, and all that should be an answer is one."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest

from byhand import ModelConfig, Muon, OptimConfig, TinyGPT
from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import GROUPS, concepts, order
from byhand.book.finding.search import INDEX, stored
from byhand.book.lessons.examples import TITLES
from byhand.cli.arguments.settings import settings
from byhand.cli.main import COMMANDS
from byhand.config import TrainConfig
from byhand.engine import registry
from byhand.engine.equation import with_role
from byhand.errors import ByhandError
from cli.process import function_calls
from every import every
from model_cases import each_choice, lacking_kernels
from pages.filling import COMMAND
from where import others, syntax
from where.commands import flags
from where.index import all_findings, findings, text
from where.kernels import kernels_of

ROOT = Path(__file__).resolve().parents[3]
ANSWERS = stored().findings()


def line_at(pointer: str) -> str:
    path, line = pointer.rsplit(":", 1)
    return (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_the_index_is_fresh():
    assert INDEX.read_text(encoding="utf-8") == text(), f"stale; run: {COMMAND}"
    kept = [f.name for f in fields(Finding)]
    for answer, live in zip(ANSWERS, all_findings().values(), strict=True):
        assert [getattr(answer, name) for name in kept] == [getattr(live, name) for name in kept]


def test_an_edit_that_moves_lines_leaves_it_fresh():
    assert not re.search(r"\.py:\d", INDEX.read_text(encoding="utf-8"))


def test_every_equation_is_in_the_flow_once():
    assert sorted(order()) == sorted(registry)
    assert {entry.place[0] for entry in ENTRIES.values()} <= {group.key for group in GROUPS}


@every(ANSWERS, lambda answer: answer.name)
def test_pointers_open_what_they_name(answer):
    assert {*answer.see} <= stored().names.keys()
    assert answer.kind not in ("absent", "term") or answer.see
    if answer.code:
        name = answer.code[1].rpartition(".")[2]
        assert re.match(rf"\s*(def |class )?{name}\b", line_at(answer.forward))
    if answer.kind == "equation":
        assert line_at(answer.derivative).startswith(("def vjp(", "def walk_back("))
        assert line_at(answer.worked).startswith("entry = ")
        assert answer.uses or answer.name == "reshape", "an equation that nothing applies"
        role = getattr(registry[answer.name], "role", "")  # the config's choices are applied by role
        assert all(
            re.search(rf"\b({answer.name}|{role or answer.name}\()", line_at(use.where)) for use in answer.uses
        )
        for runtime, (_, name) in answer.kernels_at.items():
            assert line_at(answer.kernels[runtime]).strip().startswith(f"def {name.rpartition('.')[2]}(")
    if answer.test:
        assert line_at(answer.test).lstrip().startswith("def test")
    if answer.kind == "guide":
        for lang in ("en", "zh"):
            path = ROOT / answer.page_path(lang)
            assert f"\n# {answer.title.said(lang)}\n" in path.read_text(encoding="utf-8")


def test_every_definition_is_found_as_its_syntax_tree_has_it():
    for answer in ANSWERS:
        for file, name in filter(None, (answer.code, answer.derived, *answer.kernels_at.values())):
            path = source.PACKAGE / file
            assert source.definition(path, name) == f"{source.shown(path)}:{syntax.statement(path, name).lineno}"


def test_every_setting_command_guide_lesson_and_topic_is_an_answer():
    asked = {name for table in ("questions", "formulas") for name in others.data(table)}
    assert asked <= stored().names.keys(), "a table names an answer that there is not"
    assert {f"--{name.replace('_', '-')}" for name in others.data("settings")} == flags().keys()
    assert flags().keys() >= {setting.flag for setting in settings(TrainConfig).values()}
    assert others.data("commands").keys() == COMMANDS.keys()
    assert {f"work {name}" for name in TITLES} <= stored().names.keys()
    titles = {words.en.casefold() for answer in ANSWERS for words in (answer.title, answer.term)}
    assert {concept.en.casefold() for concept in concepts()} <= titles


def test_what_the_model_has_is_not_named_as_lacking():
    """Neither an equation, nor a choice of a setting, nor another name of one."""
    has = {*registry, *with_role("update"), *with_role("activation")}
    for config in (ModelConfig, OptimConfig):
        for hint in get_type_hints(config).values():
            has |= {str(choice) for choice in get_args(hint)} if "Literal" in str(get_origin(hint)) else set()
    asked = others.asked(findings().values())
    for absent in others.data("absent"):
        named = {name.lower().replace("-", "_").replace(" ", "_") for name in (absent, *asked[absent])}
        assert not named & has, f"delete {named & has} from docs/build/where/data/absent.toml: the model has it"
        assert not (source.PACKAGE / f"equations/{absent}.py").exists(), "it is there: delete its item"


def test_uses_are_found_in_the_source(tmp_path):
    """By name, as an operator and by role, with the scope around them; other things of the same name do not count."""
    file = tmp_path / "layer.py"
    file.write_text(
        "from byhand.equations import linear, mix as blend\n"
        "def f(x, w, top_k, add):\n"
        '    with scope("mlp"):\n'
        '        h = activation(linear(x, w, name="pre"), name="act")\n'
        "    add(top_k)\n"
        '    return _operator("mul")(h, x)\n',
        encoding="utf-8",
    )
    found = syntax.applied(file)
    assert found == {"linear": {4: ("pre", "mlp")}, "activation": {4: ("act", "mlp")}, "mul": {6: ("", "")}}


def test_the_model_and_what_is_around_it_use_an_equation():
    files = [use.where.split(":")[0] for use in findings()["softmax"].uses]
    assert files == ["src/byhand/equations/causal_self_attention.py", "src/byhand/runtimes/sampling.py"]
    assert [(use.result, use.scope) for use in findings()["mix"].uses] == [("mixed", "attn")]
    assert {(use.result, use.scope) for use in findings()["linear"].uses} >= {("out", "mlp"), ("out", "attn")}


def test_an_installed_package_answers_too(tmp_path):
    """Copy the package alone, as a wheel would hold it: code has lines, tests and pages are named."""
    shutil.copytree(source.PACKAGE, tmp_path / "byhand", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "byhand", "where", "softmax", "--json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    found = json.loads(done.stdout)[0]
    assert (found["name"], found["relative_to"]) == ("softmax", "installed package")
    assert found["forward"].startswith("byhand/equations/softmax.py:")
    assert (found["test"], found["page_en"]) == ("tests/equations/test_softmax.py", "docs/equations/softmax.md")


def test_an_empty_glossary_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr(others, "concepts", list)
    with pytest.raises(ByhandError, match=r"glossary\.toml lacks 'batch'\. Add it\.$"):
        others.places.__wrapped__()


def test_answers_without_numpy_or_the_book():
    """In 0.1 s beside Python's own start: some 250,000 calls; the clock of a test machine says little."""
    code = (
        "import sys\nfrom byhand.cli.main import main\nmain(['where', 'causal mask'])\n"
        "assert not {'numpy', 'byhand.engine', 'byhand.book.entries', 'byhand.config'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT / "src")
    assert function_calls("where", "causal mask") < 400_000


def test_a_kernel_pointer_names_what_a_plan_calls_for_the_equation(monkeypatch):
    """For each equation of a group: the call for it that multiplies, else the first; the group's largest if none."""
    pytest.importorskip("numba", reason="Numba is not installed")
    from byhand.runtimes.loops.lower import fusion
    from byhand.runtimes.loops.machine.kernel import KERNELS
    from byhand.runtimes.loops.run.training import LoopsSession

    updates = [name for name in get_args(get_type_hints(OptimConfig)["optimizer"]) if "loops" in kernels_of(name)]
    calls_of: dict[str, set[str]] = {name: {name} for name in updates} | {"orthogonalise": {"newton_schulz"}}
    counted = fusion.assign_operations

    def assign(nodes, ahead, back):
        counted(nodes, ahead, back)
        for node in nodes:
            own = [c for c in ahead if c.node.equation is node.equation]
            main = max(own, key=lambda c: not c.apportioned) if own else max(ahead, key=lambda c: c.flops)
            kernel = KERNELS.get(main.kernel)
            named = (kernel and kernel.formula) or main.kernel  # an activation's kernels are made of its formula
            calls_of.setdefault(node.equation.name, set()).add(named)

    monkeypatch.setattr(fusion, "assign_operations", assign)
    whole = {"qk_norm": True, "qk_norm_over": "heads"}
    counts = ({"logit_softcap": 5.0}, {"n_kv_heads": 1}, {"attention_window": 2}, {"lora": 2}, whole)
    for choice in ({}, *each_choice(), *counts):
        model = TinyGPT(ModelConfig(seq_len=4, d_model=8, n_layers=1, n_heads=2, **choice))
        if lacking_kernels(model.config):
            continue
        runtime = LoopsSession(model, Muon({"blocks.0.attn.w_qkv": 3}), 1, "tiles")
        made = {call.kernel for call in runtime.plan("train", (2, 4)).calls}
        assert model.config.lora or made >= {"adamw", "muon", "newton_schulz"}
    attention = registry["causal_self_attention"]
    calls_of[attention.name] = calls_of["mix"]  # a composite is recorded by its parts
    calls_of["gelu"].remove("gelu")  # beside adapters
    calls_of["rms_norm"].remove("query_key")  # of queries and keys
    calls_of["embedding"].remove("embed")  # with a table of positions
    calls_of["residual"].remove("add_stream")  # of what a norm has made
    named = {name: kernels_of(name)["loops"] for name in registry if "loops" in kernels_of(name)}
    assert {name: {function.split(".")[-1]} for name, (_, function) in named.items()} == calls_of
