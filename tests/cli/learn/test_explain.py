"""`byhand explain` on a run, as a reader types it, also wrongly."""

import json
import re

import pytest

from byhand import ModelConfig, TrainConfig
from byhand.cli.main import main
from cli.inside import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = TrainConfig(model=ModelConfig(seq_len=16, d_model=8, n_layers=2, n_heads=2), steps=10)
    return str(write_run(tmp_path_factory.mktemp("runs") / "small", config))


def test_value(run, capsys):
    assert main(["explain", run, "--prompt", "To be", "blocks.1.attn.weights[0,0,2,1]"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("blocks.1.attn.weights[0,0,2,1] = 0.3")
    assert "equations/causal_softmax.py:" in said
    assert "S = blocks.1.attn.scores[0,0,2,1]" in said


def test_gradient(run, capsys):
    assert main(["explain", run, "wte[84,3]", "--grad"]) == 0
    assert "central difference" in capsys.readouterr().out


def test_the_draw_of_the_next_token(run, capsys):
    assert main(["explain", run, "next.token", "--prompt", "To be", "--top-k", "3", "--seed", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    token, p = int(said["value"]), said["terms"]["parts"][1:]
    assert said["note"]["code"] == "draw"
    assert sum(part["value"] > 0 for part in p) == 3
    assert main(["explain", run, f"next.p[{token}]", "--top-k", "3"]) == 0
    said = capsys.readouterr().out
    assert f"next.p[{token}] = 0.3" in said
    assert "softmax.py:" in said
    assert main(["explain", run, "next.token", "--temperature", "0", "--lang", "zh"]) == 0
    assert "取 logit 最大的词元" in capsys.readouterr().out


def test_json(run, capsys):
    assert main(["explain", run, "logits[0,4,101]", "--depth", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["terms"]["value"] == pytest.approx(said["value"], rel=1e-6, abs=1e-9)
    parts = said["terms"]["parts"]
    assert said["terms"]["op"] == "sum"
    assert sum(t["value"] for t in parts) == pytest.approx(said["terms"]["value"], abs=1e-12)
    assert [t["source"]["name"] for t in parts[0]["parts"]] == ["ln_f", "lm_head.w"]
    assert parts[0]["parts"][1]["source"]["index"] == [0, 101]
    assert said["children"][0]["target"].startswith("ln_f[0,4,")


def test_update_is_the_next_step(run, capsys):
    assert main(["explain", run, "lm_head.w.update[0,101]"]) == 0
    assert "step 5 with lr" in capsys.readouterr().out


def test_targets(run, capsys):
    assert main(["explain", run, "loss", "--prompt", "ab", "--targets", "bc", "--lang", "zh"]) == 0
    assert "交叉熵" in capsys.readouterr().out


def test_names(run, capsys):
    assert main(["explain", run]) == 0
    said = capsys.readouterr().out
    assert "blocks.1.attn.q" in said
    assert "loss" in said
    assert said.splitlines()[-3] == "and PARAMETER.m, .v, .theta, .update after the next step"


def test_every_name_of_the_list_is_explained(run, capsys):
    """Also attention's v, which is none of a parameter's update."""
    assert main(["explain", run, "--prompt", "To be"]) == 0
    listed = re.findall(r"^(\S+) +\((.*)\)$", capsys.readouterr().out, re.MULTILINE)
    assert "blocks.1.attn.v" in dict(listed)
    for name, shape in listed:
        last = ",".join(str(int(n) - 1) for n in shape.split(",") if n.strip())
        element = f"{name}[{last}]" if last else name
        assert main(["explain", run, "--prompt", "To be", element]) == 0, element
        assert capsys.readouterr().out.startswith(f"{element} = ")


def test_the_list_says_the_positions_that_exist(run, capsys):
    """A value has one for each byte of the prompt; the loss predicts the last byte, so it has one less."""

    def listed(*arguments):
        assert main(["explain", run, *arguments]) == 0
        return capsys.readouterr().out

    said = listed("--prompt", "To be")
    assert re.search(r"^logits +\(1, 5, 256\)$", said, re.MULTILINE)
    assert said.splitlines()[-1].startswith("positions: 5 for a value; 4 for the loss, a gradient or an update")
    chinese = listed("--prompt", "To be", "--lang", "zh")
    assert "位置数：数值为 5；损失、梯度与更新为 4" in chinese
    assert re.search(r"^loss +a number$", said, re.MULTILINE)
    assert re.search(r"^loss +一个数$", chinese, re.MULTILINE)
    listed("logits[0,4,0]")
    listed("d logits[0,3,0]")
    assert main(["explain", run, "d logits[0,4,0]"]) == 2
    assert "logits has shape (1, 4, 256)" in capsys.readouterr().err
    assert "positions" not in listed("--prompt", "ab", "--targets", "bc")
    assert re.search(r"^logits +\(1, 1, 256\)$", listed("--prompt", "a"), re.MULTILINE), "one byte is a prompt"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["blocks.0.attn.weigths[0,0,1,1]"], "Nearest: blocks.0.attn.weights"),
        (["logits[0,9,0]"], "logits has shape (1, 5, 256)"),
        (["logits[0,a]"], "is not an element"),
        (["logits[0,1,2"], "is not an element"),
        (["loss", "--prompt", "a"], "at least two bytes"),
        (["loss", "--prompt", ""], "empty"),
        (["loss", "--targets", "abc"], "3 bytes"),
        (["logits[0,0,0]", "--prompt", "x" * 99], "seq_len is 16"),
        (["logits[0,0,0]", "--depth", "0"], "at least 1"),
        (["logits[0,0,0]", "--depth", "two"], "depth"),
        (["tokens[0,0]", "--grad"], "given, not learned"),
        *(([f"--{flag}"], f"--{flag} changes nothing without a target, such") for flag in ("json", "plot", "grad")),
        (["next.p[0]", "--presence-penalty", "1"], "--presence-penalty changes nothing here: they count tokens that"),
        (
            ["loss", "--seed", "3"],
            "--seed changes nothing but next.p, next.token and what they are made of. Leave it",
        ),
        (["next.p[0]", "--targets", "abcde"], "--targets changes nothing for 'next.p', but for the loss, a gradient"),
        (["next.p[0]", "--top-k", "0"], "--top-k is 0, but must be at least 1. Use 40."),
        (["next.p[0]", "--grad"], "is not part of the loss"),
        (["wte.m.v[0,0]"], "nothing is called 'wte.m.v'"),
        (["logits[0 0]"], "is not an element"),
        (["logits[0, 1 2, 0]"], "is not an element"),
        (["logits[" + " , " * 90 + "x]"], "is not an element"),
        (["logits[²]"], "is not an element"),
        (["logits[-2,0,0]"], "does not exist"),
        (["logits[--1,0,0]"], "is not an element"),
        (["d logits[0,4,0]"], "The loss reads 4 of the prompt's 5 bytes, as the last one is only predicted."),
        (["logits[0,0," + "9" * 100 + "]"], "the index has more than 18 digits"),
        (["logits[0,0," + "9" * 18 + "]"], "does not exist"),
        (["logits[" + "9" * 5000 + "]"], "is not an element"),
        (["x" * 100_000], "is not an element"),
        (["\x1b[31m"], "is not an element"),
        (["\udcff\0"], "is not an element"),
        (["loss", "--depth", "1000000"], "--depth is 1000000, but must be at most 100"),
        (["loss", "--depth", "9" * 5000], "has 5,000 digits"),
        (["logits[0,0,0]", "--depth", "100", "--terms", "100000"], "more than 2000 numbers"),
        (["loss", "--prompt", "\ud800x"], "half a character"),
        (["loss", "--prompt", "x" * 100_000], "seq_len is 16"),
    ],
)
def test_wrong_input_is_one_line(run, arguments, words, refusal):
    assert words in refusal("explain", run, *arguments)


def test_blanks_and_zeros_in_an_index(run, capsys):
    assert main(["explain", run, "logits[ 0 ,04,101 ]"]) == 0
    assert capsys.readouterr().out.startswith("logits[0,4,101] = ")


def test_negative_indices(run, capsys):
    assert main(["explain", run, "logits[0,-1,-155]"]) == 0
    assert capsys.readouterr().out.startswith("logits[0,4,101] = ")


def test_bytes_are_shown_as_text(run, capsys):
    def said(*arguments):
        assert main(["explain", run, *arguments]) == 0
        return capsys.readouterr().out

    assert re.search(r"^logits\[0,4,32\] = \S+   \(' '\)$", said("logits[0,4,32]"), re.MULTILINE)
    assert re.search(r"lm_head.w\[\d,101\] = \S+   \('e'\)$", said("logits[0,4,101]"), re.MULTILINE)
    assert re.search(r"^wte\[10,1\] = \S+   \('\\n'\)$", said("wte[10,1]"), re.MULTILINE)
    assert re.search(r"^tokens\[0,2\] = 32   \(' '\)$", said("tokens[0,2]"), re.MULTILINE)
    assert re.search(r"^∂loss/∂lm_head.w\[0,195\] = \S+   \(b'\\xc3'\)$", said("d lm_head.w[0,195]"), re.MULTILINE)
    assert re.search(r"^wte.update\[84,0\] = \S+   \('T'\)$", said("wte.update[84,0]"), re.MULTILINE)
    assert re.search(r"wte.m before\[84,0\] = \S+   \('T'\)$", said("wte.m[84,0]"), re.MULTILINE)
    assert not re.search(r"   \('", said("blocks.0.attn.weights[0,0,2,1]"))


def test_numbers_of_a_draw_come_from_the_likeliest_tokens(run, capsys):
    assert main(["explain", run, "next.p[0]", "--top-k", "3"]) == 0
    (own, *others) = re.findall(r"x = (next.top_k\[\d+\]) = (\S+)", capsys.readouterr().out)
    assert own == ("next.top_k[0]", "−∞")
    assert [value == "−∞" for _, value in others] == [False] * 3 + [True] * 4


def test_no_run(tmp_path, capsys):
    assert main(["explain", str(tmp_path / "none"), "loss"]) == 2
    assert "there is no run" in capsys.readouterr().err
