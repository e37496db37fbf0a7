"""`byhand bench train`, `byhand plan` and `byhand doctor`: what they print is there and adds up."""

import json
import re
import subprocess
import sys

import pytest

from byhand.bench.shapes import SHAPES, shape_of
from byhand.cli.main import main
from byhand.cli.measure import doctor
from byhand.errors import ConfigError
from byhand.runtimes import loops
from needs import MATPLOTLIB, needs_loops

SMALL = "2,8,12,2,3,17"
LONG = f"4,8,8,1,1,4{100 * ' '}and more"


def said(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_flops_of_a_step_as_counted_by_hand():
    """One block of width 2 over 3 tokens in a window of 5, twice: (12 C^2 + C V) 6 N + 12 B T^2 C."""
    shape = shape_of("2,5,2,1,1,3")
    assert shape.flops == 6 * (12 * 4 + 2 * 3) * 10 + 12 * 2 * 25 * 2
    assert shape_of("tiny") == SHAPES["tiny"]
    wide = shape_of("2,8,12/20,2,6/2,17", "llama").model()
    assert (wide.d_ff, wide.n_kv_heads, wide.n_heads) == (20, 2, 6)


@pytest.mark.parametrize(
    "shape", ["huge", "1,2,3", "0,8,8,1,1,4", "4,64,64,1,1,x", "4/2,8,8,1,1,4", "4,8,8/,1,1,4", LONG]
)
def test_unknown_shapes_are_refused(shape):
    with pytest.raises(ConfigError, match="B,T,C,L,H,V"):
        shape_of(shape)


def test_bench_against_numpy(capsys):
    figures = json.loads(
        said(
            capsys,
            "bench",
            "train",
            "--shape",
            SMALL,
            "--runtime",
            "numpy",
            "--steps",
            "5",
            "--peer",
            "numpy",
            "--json",
        )
    )
    assert figures["ms_median"] >= figures["ms_min"] > 0
    assert figures["tokens_per_s"] == pytest.approx(16e3 / figures["ms_median"])
    assert figures["gflops"] == pytest.approx(shape_of(SMALL).flops / figures["ms_median"] / 1e6)
    assert 0 < figures["loss"] < 4
    assert figures["ratio"] == figures["peers"]["numpy"]["ms_median"] / figures["ms_median"]


@needs_loops
def test_bench_against_a_library_that_multiplies(capsys):
    bench = ["bench", "train", "--shape", SMALL, "--blas", "tiles", "--steps", "5", "--peer", "scipy", "--json"]
    figures = json.loads(said(capsys, *bench))
    assert figures["peers"]["scipy"]["ratio"] > 0
    assert figures["loss"] > 0


@needs_loops
def test_bench_generate_against_numpy(capsys):
    arguments = ["--shape", SMALL, "--tokens", "20", "--batch", "2", "--peer", "numpy", "--json"]
    figures = json.loads(said(capsys, "bench", "generate", *arguments))
    assert figures["tokens_per_s"] > 0
    assert figures["ms_per_token"] == pytest.approx(2e3 / figures["tokens_per_s"])
    assert figures["peers"]["numpy"]["ratio"] > 0
    assert "100% by 1 thread\n" in said(capsys, "bench", "generate", *arguments[:4], "--threads", "1")
    read = json.loads(said(capsys, "bench", "generate", *arguments, "--prompt-tokens", "9", "--tokens", "1"))
    assert read["peers"]["numpy"]["ratio"] > 0
    assert "1 x 9 + 20 tokens" in said(capsys, "bench", "generate", *arguments[:4], "--prompt-tokens", "9")
    assert main(["bench", "generate", "--prompt-tokens", "0"]) == 2
    assert main(["bench", "generate", "--tokens", "0"]) == 2


@needs_loops
def test_plan_lists_every_flop_and_the_times_add_up(capsys):
    facts = json.loads(
        said(capsys, "plan", "--shape", SMALL, "--threads", "1", "--steps", "2", "--every-call", "--json")
    )
    calls = facts["calls"]
    products = sum(c["flops"] for c in calls if c["kernel"] in ("gemm", "tiled_gemm"))
    weights = 2 * 12 * 12**2 + 12 * 17
    assert products == 6 * weights * 16
    assert sum(c["share"] for c in calls) == pytest.approx(1)
    assert not [c for c in calls if c["kernel"] == "reference"]
    summed = json.loads(said(capsys, "plan", "--shape", SMALL, "--threads", "1", "--steps", "0", "--json"))["calls"]
    assert sum(c["calls"] for c in summed) == len(calls)
    assert {c["ms"] for c in summed} == {None}


@needs_loops
def test_plan_as_a_table_and_as_a_picture(capsys, tmp_path):
    table = said(capsys, "plan", "--shape", SMALL, "--steps", "1")
    assert "layer_norm" in table
    if MATPLOTLIB:
        said(capsys, "plan", "--shape", SMALL, "--steps", "1", "--plot", str(tmp_path / "plan.svg"))
        assert (tmp_path / "plan.svg").read_text().startswith("<?xml")
    assert main(["plan", "--shape", SMALL, "--plot", str(tmp_path / "plan.jpg")]) == 2


@needs_loops
@pytest.mark.parametrize("of", ["train", "prefill"])
def test_a_plan_of_another_activation(capsys, of):
    facts = json.loads(
        said(capsys, "plan", "--shape", SMALL, "--of", of, "--steps", "0", "--activation", "relu", "--json")
    )
    said_of = " ".join(call["kernel"] + " " + call["equation"] for call in facts["calls"])
    assert "relu" in said_of
    assert "gelu" not in said_of


@needs_loops
@pytest.mark.parametrize("of", ["train", "decode", "prefill"])
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "qwen3", "modern", "microgpt"])
def test_a_plan_of_another_architecture_has_kernels_for_all(capsys, of, architecture):
    shape = ["--shape", "2,16,24,2,6,11", "--architecture", architecture]
    facts = json.loads(said(capsys, "plan", *shape, "--of", of, "--steps", "0", "--json"))
    kernels = {call["kernel"] for call in facts["calls"]}
    assert "reference" not in kernels
    assert ("query_key" in kernels) == (architecture not in ("gpt2", "microgpt"))


def test_another_architecture_is_timed_and_has_as_many_groups_as_fit(capsys):
    config = shape_of("2,16,24,2,6,11", "qwen3").model()
    assert (config.n_kv_heads, config.d_head, config.ff_width) == (3, None, 64)
    shape = ["--shape", "2,16,24,1,6,11", "--architecture", "llama"]
    assert json.loads(said(capsys, "bench", "train", *shape, "--steps", "5", "--runtime", "numpy", "--json"))["loss"]
    assert main(["bench", "generate", *shape, "--peer", "hf"]) == 2
    assert "GPT-2 of the plain shape" in capsys.readouterr().err
    assert main(["bench", "generate", "--shape", "2,16,24,1,6/2,11", "--peer", "hf"]) == 2
    assert "Leave /K out" in capsys.readouterr().err


@needs_loops
def test_filling_the_cache_is_timed_with_tokens_in_their_place(capsys):
    """In this shape half of the window takes another plan than the whole, in the same memory."""
    facts = json.loads(said(capsys, "plan", "--of", "prefill", "--shape", "1,64,64,1,4,64", "--steps", "1", "--json"))
    assert all(call["ms"] >= 0 for call in facts["calls"])


def test_doctor(capsys, monkeypatch):
    facts = json.loads(said(capsys, "doctor", "--json"))
    assert facts["cores"] >= 1
    assert any(package.startswith("numpy ") for package in facts["packages"])
    assert facts["runtime"].startswith("loops" if "blas" in facts else "numpy")
    if "blas" in facts:
        one, *every = (float(rate) for rate in re.findall(r"(?:at|,) (\d+)", facts["memory"]))
        assert 0 < one < 1000
        assert len(every) == (facts["cores"] > 1)
    monkeypatch.setattr(doctor, "found", lambda: facts)
    assert f"cores {facts['cores']}\n" in re.sub(" +", " ", said(capsys, "doctor"))


@needs_loops
@pytest.mark.parametrize("of", ["decode", "prefill"])
def test_a_plan_of_generation_lists_every_weight(capsys, of):
    """A token costs two operations for each weight of each stream; filling one ends with the last layer's cache."""
    whole = ["plan", "--of", of, "--shape", SMALL, "--streams", "2", "--every-call", "--json"]
    figures = json.loads(said(capsys, *whole, "--steps", "2", "--threads", "1"))
    shape = shape_of(SMALL)
    assert figures["of"] == of
    assert sum(x["share"] for x in figures["calls"]) == pytest.approx(1)
    assert all(x["gb_per_s"] == pytest.approx(x["bytes"] / x["ms"] / 1e6) for x in figures["calls"] if x["ms"])
    read = figures["read_gb_per_s"]
    assert all(x["read_share"] == pytest.approx(x["gb_per_s"] / read) for x in figures["calls"])
    assert (figures["ms_in_a_row"] is not None) == (of == "decode")
    c, layers, vocab = shape.d_model, shape.n_layers, shape.vocab_size
    products = sum(x["flops"] for x in figures["calls"] if x["kernel"] in ("row_product", "gemm", "tiled_gemm"))
    if of == "decode":
        assert products == 2 * 2 * (layers * 12 * c * c + c * vocab)
    else:
        assert products == 2 * (shape.seq_len - 1) * (layers * 12 * c * c - 9 * c * c)
    halved = json.loads(said(capsys, *whole, "--steps", "0", "--threads", "2"))["calls"]
    parted = ("row_product", "attend", "attention")
    assert sum(x["flops"] for x in halved if x["kernel"] in parted) * 2 == sum(
        x["flops"] for x in figures["calls"] if x["kernel"] in parted
    )


@pytest.mark.parametrize("of", ["train", "decode"])
def test_a_plan_without_numba_advises_no_flag_that_it_lacks(monkeypatch, capsys, of):
    monkeypatch.setattr(loops, "missing", lambda: ["Numba"])
    assert main(["plan", "--of", of]) == 2
    assert capsys.readouterr().err == 'error: a plan needs Numba. Use pip install "byhand[fast]".\n'


def test_doctor_names_a_numba_that_cannot_be_imported():
    """Numba itself raises ImportError with a NumPy that it does not support."""
    program = (
        "import sys; sys.modules['numba.extending'] = None\n"
        "from byhand.cli.main import main\n"
        "sys.exit(main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be imported" in done.stdout
