"""examples/trace.h, in examples/port.c: every array that the port keeps is right, and a mistake shows where it is."""

import re

import pytest

from byhand.cli.main import main
from test_port_in_c import SOURCE, printed, pytestmark  # noqa: F401  (skipped without a compiler)

HEADER = (SOURCE.parent / "trace.h").read_text("utf-8")
KEPT = {
    "ln_1": "h1", "attn.qkv": "qkv", "attn.weights": "p", "attn.merged": "merged", "attn.out": "out", "x_mid": "mid",
    "ln_2": "h2", "mlp.pre": "pre", "mlp.act": "act", "mlp.out": "mlp", "x_out": "next",
}  # fmt: skip
PARAMETERS = {
    "ln_1.gain": "g1", "attn.w_qkv": "wqkv", "attn.b_qkv": "bqkv", "attn.w_proj": "wproj", "ln_2.bias": "b2",
    "mlp.w_fc": "wfc", "mlp.b_out": "bout",
}  # fmt: skip
HEAD = "typedef REAL real;\n"
BACK = 'printf("%.9g %.9g", loss, backward());'
STEP = "adamw(t);\n"


def traced():
    """Return port.c with a call for each array that it keeps, in the order of the computation."""
    calls = ['trace("x", first);']
    calls += [f'trace("blocks.{i}.{name}", acts[{i}].{field});' for i in (0, 1) for name, field in KEPT.items()]
    back = ['trace("grad/logits", d_logits);', 'trace("grad/ln_f", d_last);']
    back += [
        f'trace("grad/blocks.{i}.{name}", d_acts[{i}].{field});'
        for i in (1, 0)
        for name, field in reversed(KEPT.items())
        if name not in ("attn.weights", "mlp.out", "attn.out")  # the port keeps no gradient of these
    ]
    back += [
        f'trace("grad/blocks.{i}.{name}", block[{i}].{field}.g);'
        for i in (1, 0)
        for name, field in PARAMETERS.items()
    ]
    step = [
        f'trace("{kind}/blocks.{i}.{name}", block[{i}].{field}.{letter});'
        for i in (0, 1)
        for name, field in PARAMETERS.items()
        for kind, letter in (("m", "m"), ("v", "v"), ("new", "p"))
    ]
    text = SOURCE.read_text("utf-8").replace(HEAD, HEAD + HEADER)
    text = text.replace(BACK, f"loss += 0 * backward(); {' '.join([*calls, *back])}")
    return text.replace(STEP, f"adamw(t); if (t == 1) {{ {' '.join(step)} }}\n", 1)


def answers(folder, text, real="double"):
    words = " ".join(printed(folder, text, real))
    return re.findall(r"(\S+): (right|WRONG|no trace|the trace)", words)


@pytest.mark.parametrize(("real", "dtype"), [("double", "float64"), ("float", "float32")])
def test_the_port_agrees_array_by_array(tmp_path, monkeypatch, real, dtype):
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--page", "gpt", "--dtype", dtype, "--out", "trace"]) == 0
    found = answers(tmp_path, traced(), real)
    assert len(found) > 90
    assert [name for name, said in found if said != "right"] == []


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("1 / (real)sqrt(var + EPS)", "1 / ((real)sqrt(var) + EPS)", "blocks.0.ln_1"),
        ("p[s] /= (real)sqrt(D);", "p[s] /= (real)D;", "blocks.0.attn.weights"),
        ("(d_p[s] - sum) / (real)sqrt(D)", "d_p[s] / (real)sqrt(D)", "grad/blocks.1.attn.qkv"),
        ("(1 - beta2) * q->g[i] * q->g[i]", "(1 - beta2) * q->g[i]", "v/blocks.0.ln_1.gain"),
    ],
)
def test_the_first_wrong_array_is_where_the_mistake_is(tmp_path, monkeypatch, old, new, first):
    monkeypatch.chdir(tmp_path)
    main(["trace", "--page", "gpt", "--out", "trace"])
    text = traced()
    assert old in text
    found = answers(tmp_path, text.replace(old, new))
    assert next(name for name, said in found if said == "WRONG") == first


def test_what_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = traced().replace('trace("x", first)', 'trace("y", first)')
    assert {said for _, said in answers(tmp_path, text)} == {"no trace"}
    main(["trace", "--page", "gpt", "--out", "trace"])
    assert answers(tmp_path, text)[0] == ("y", "the trace")
