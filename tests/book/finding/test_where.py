"""The index: every pointer opens the code that it names, every equation is in it, and searching is forgiving."""

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from byhand import ModelConfig, Muon, OptimConfig, TinyGPT
from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.flow import GROUPS, order
from byhand.book.finding.index import all_findings, findings
from byhand.book.finding.kernels import kernels_of
from byhand.book.finding.search import LONGEST, nearest, search
from byhand.book.words.glossary import CONCEPTS
from byhand.book.words.plain_math import plain
from byhand.engine import registry
from byhand.errors import ByhandError
from cli.process import function_calls
from model_cases import each_choice, lacking_kernels

ROOT = Path(__file__).resolve().parents[3]


def line_at(pointer: str) -> str:
    path, line = pointer.rsplit(":", 1)
    return (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_every_equation_is_in_the_flow_once():
    assert sorted(order()) == sorted(registry)
    assert {entry.place[0] for entry in ENTRIES.values()} <= {group.key for group in GROUPS}


@pytest.mark.parametrize("name", sorted(registry))
def test_pointers_open_the_code_they_name(name):
    entry = findings()[name]
    assert line_at(entry.forward).startswith(("def forward(", "def compose("))
    assert line_at(entry.derivative).startswith(("def vjp(", "def walk_back("))
    assert Path(entry.forward.rsplit(":", 1)[0]).stem == name
    assert entry.uses or name == "reshape", "an equation that nothing applies"
    role = getattr(registry[name], "role", "")  # what the config chooses is applied by its role
    for use in entry.uses:
        assert name in line_at(use.where) or (role and f"{role}(" in line_at(use.where))
    if entry.test:
        assert line_at(entry.test).lstrip().startswith("def test")
    if entry.worked:
        assert line_at(entry.worked).startswith("entry")


def test_uses_are_found_in_the_source(tmp_path):
    """By name, as an operator and by role, with the scope around them; what is called alike is not meant."""
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
    found = source._applied(file)
    assert found == {"linear": {4: ("pre", "mlp")}, "activation": {4: ("act", "mlp")}, "mul": {6: ("", "")}}


def test_the_model_and_what_is_around_it_use_an_equation():
    files = [use.where.split(":")[0] for use in findings()["softmax"].uses]
    assert files == ["src/byhand/equations/causal_self_attention.py", "src/byhand/runtimes/sampling.py"]
    mixed = findings()["mix"].uses
    assert [(use.result, use.scope) for use in mixed] == [("mixed", "attn")]
    assert {(use.result, use.scope) for use in findings()["linear"].uses} >= {("out", "mlp"), ("out", "attn")}


def test_places_point_to_their_definitions():
    for name, entry in findings().items():
        if not entry.latex:
            assert entry.forward, f"{name} points nowhere"
            assert line_at(entry.forward).lstrip().startswith(("def ", "class "))


def test_the_glossary_names_entries_that_exist():
    named = {name for concept in CONCEPTS for name in concept.entries}
    assert named <= set(all_findings())


def test_a_concept_is_found_by_each_of_its_names():
    for concept in CONCEPTS:
        for words in (concept.en, concept.zh, *concept.also):
            found = [m.finding.name for m in search(words)]
            assert set(found) & set(concept.entries), words


@pytest.mark.parametrize("name", sorted(registry))
def test_every_equation_is_found_by_title_and_formula(name):
    entry = findings()[name]
    for query in (name, entry.title.en, entry.title.zh, entry.latex):
        assert search(query)[0].finding.name == name, query
    assert name in [m.finding.name for m in search(entry.latex_derivative)[:3]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sofmax", "softmax"),
        ("layernrom", "layer_norm"),
        ("cross entorpy", "cross_entropy"),
        ("attension", "causal_self_attention"),
        ("Causal Masks", "causal_softmax"),
        ("where is the causal mask", "causal_softmax"),
        ("nn::layernorm_lastdm", "layer_norm"),
        ("blocks.3.attn.scores", "attention_scores"),
        ("blocks.0.attn.weights", "causal_softmax"),
        ("q @ k.T / sqrt(D)", "attention_scores"),
        ("层归一化的梯度", "layer_norm"),
        ("展平", "reshape"),
        ("目标类别", "cross_entropy"),
        ("X ← X + A", "residual"),
        ("A = softmax(QK^T/√d)V", "causal_self_attention"),
        ("LN(x)", "layer_norm"),
        ("q @ k.T", "attention_scores"),
        ("j > i", "causal_softmax"),
        ("S_{b,i,j}", "attention_scores"),
        ("S_ts", "attention_scores"),
        ("Q_i", "split_qkv"),
        ("P V", "mix"),
        ("∂L/∂z", "cross_entropy"),
        (r"\frac{\partial L}{\partial z}", "cross_entropy"),
        ("∂𝐿/∂𝑧", "cross_entropy"),
        ("∂ℓ/∂logits", "cross_entropy"),
        ("dL/dS", "causal_softmax"),
        ("∂L/∂W_{qkv}", "causal_self_attention"),
        ("ｓｏｆｔｍａｘ", "softmax"),
        ("ＬＮ（ｘ）", "layer_norm"),
        ("ｄＬ／ｄＷ", "linear"),
    ],
)
def test_near_misses(query, expected):
    assert search(query)[0].finding.name == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (r"F = \mathrm{GELU}(M W_{fc} + b_{fc})", ["gelu", "linear", "mlp"]),
        (r"Z = X_n W_{lm} + b_{lm}", ["linear", "forward_logits"]),
    ],
)
def test_a_line_of_the_model_finds_every_equation_in_it(query, expected):
    found = [m.finding.name for m in search(query)]
    assert found[0] == expected[0]
    assert set(expected) <= set(found[:5])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("nn.GELU, F.gelu, hidden_act gelu, GELUActivation, ggml_gelu_erf, exact GELU, erf, 误差函数", "gelu_exact"),
        ("gelu, gelu_new, NewGELU, gelu_pytorch_tanh, gelu_tanh, ggml_gelu, tanh 近似", "gelu"),
        ("F.silu, nn.SiLU, swish, hidden_act silu, sigmoid", "silu"),
        ("SwiGLU, GLU, GEGLU, gate_proj, up_proj, down_proj, ffn_gate, LlamaMLP, 门控, 门控线性单元", "swiglu"),
    ],
)
def test_the_activations_of_other_programs_are_found(asked, expected):
    """A name that has become the title of an equation is that equation's."""
    titles = {finding.title.en: name for name, finding in findings().items()}
    for query in asked.split(", "):
        assert search(query)[0].finding.name == titles.get(query, expected), query


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        (["λ", r"\lambda", "α", r"\alpha", "θ", "β₁", r"\beta_2"], "adamw"),
        (["σ²", "μ", "γ"], "layer_norm"),
        (["−∞", r"-\infty"], "causal_softmax"),
        (["τ"], "temperature"),
    ],
)
def test_a_symbol_finds_its_equation(symbols, expected):
    for symbol in symbols:
        assert search(symbol)[0].finding.name == expected, symbol


def test_a_setting_finds_every_equation_that_has_it():
    having = {name for name, finding in findings().items() if "ε" in map(plain, finding.settings.values())}
    assert having >= {"layer_norm", "adamw"}
    assert {m.finding.name for m in search("ε")} == having


@pytest.mark.parametrize(
    "query", ["the", "a", "where is the", "", "   ", "xyzzy plugh", "?!", "\\", "((((", "😀", "_" * 500, "$$"]
)
def test_nonsense_finds_nothing(query):
    assert search(query) == []


@pytest.mark.parametrize(
    "piece", ["x", "x ", "Q K^T ", "_{", "[a,", "sum_a^b ", r"\frac", "注意力", "-log p_y + ", "softmax of ", "α"]
)
def test_the_longest_query_is_answered_and_a_longer_one_refused(piece):
    begun = time.process_time()
    search((piece * LONGEST)[:LONGEST])
    assert time.process_time() - begun < 2
    with pytest.raises(ByhandError, match="120,000 characters"):
        search((piece * 120_000)[:120_000])


def test_nothing_near_still_names_something():
    assert "softmax" in nearest("sftmxx")
    assert nearest("ｓｆｔｍｘｘ") == nearest("sftmxx")


def test_json_is_complete():
    wanted = {
        "name", "title", "latex", "symbols", "forward", "derivative", "wired_at", "test", "worked", "page_en",
        "page_zh", "kernels", "seed_names", "source",
    }  # fmt: skip
    assert wanted <= set(findings()["softmax"].as_json())


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
    entry = json.loads(done.stdout)[0]
    assert entry["relative_to"] == "installed package"
    assert entry["forward"].startswith("byhand/equations/softmax.py:")
    assert entry["test"] == "tests/equations/test_softmax.py"


def test_answers_within_half_a_second_and_without_numpy():
    """Some 600,000 calls are four tenths of a second."""
    code = (
        "import sys\nfrom byhand.cli.main import main\nmain(['where', 'causal mask'])\n"
        "assert 'numpy' not in sys.modules, 'where imports NumPy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT / "src")
    assert function_calls("where", "causal mask") < 900_000


def test_sections_come_from_the_docstring():
    path = source.PACKAGE / "equations" / "softmax.py"
    assert "Equation" in ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert source.sections(path)["Equation"].startswith("p_i = exp(x_i - m)")


def test_kernel_pointers_open_the_functions_they_name():
    assert findings()["adamw"].kernels["loops"].startswith("src/byhand/runtimes/loops/kernels/update/adamw.py:")
    having = [name for name in findings() if kernels_of(name)]
    assert len(having) > 15
    for name in having:
        for runtime, (path, function) in kernels_of(name).items():
            assert f"/{path.name}:" in findings()[name].kernels[runtime]
            line = line_at(findings()[name].kernels[runtime])
            assert line.strip().startswith(f"def {function.split('.')[-1]}("), name


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
    counts = ({"logit_softcap": 5.0}, {"n_kv_heads": 1}, {"attention_window": 2}, whole)
    for settings in ({}, *each_choice(), *counts):
        model = TinyGPT(ModelConfig(seq_len=4, d_model=8, n_layers=1, n_heads=2, **settings))
        if lacking_kernels(model.config):
            continue
        runtime = LoopsSession(model, Muon({"blocks.0.attn.w_qkv": 3}), 1, "tiles")
        made = {call.kernel for call in runtime.plan("train", (2, 4)).calls}
        assert made >= {"adamw", "muon", "newton_schulz"}
    attention = registry["causal_self_attention"]
    calls_of[attention.name] = calls_of["mix"]  # a composite is recorded by its parts
    calls_of["rms_norm"].remove("query_key")  # of queries and keys
    calls_of["embedding"].remove("embed")  # with a table of positions
    calls_of["residual"].remove("add_stream")  # of what a norm has made
    named = {name: kernels_of(name)["loops"] for name in registry if "loops" in kernels_of(name)}
    assert {name: {function.split(".")[-1]} for name, (_, function) in named.items()} == calls_of
