import dataclasses
import re
import subprocess
import sys

import pytest

import byhand as bh
from byhand.tracing.updates import ParameterUpdate


@pytest.mark.parametrize("name", bh.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bh, name) is not None
    assert name in dir(bh)


def test_another_name_is_not():
    with pytest.raises(AttributeError, match="module 'byhand' has no attribute 'Tensr'"):
        bh.Tensr  # noqa: B018


@pytest.mark.parametrize(
    ("code", "instead"),
    [
        ("bh.AdamW().m", 'Write optimizer.moments["m"].'),
        ("bh.AdamW().v = {}", 'Write optimizer.moments["v"].'),
        ("bh.AdamW().update_trace", "Write byhand.tracing.updates.ParameterUpdate(name, parameter,"),
    ],
)
def test_a_name_of_earlier_versions_says_what_to_write_instead(code, instead):
    with pytest.raises(AttributeError, match=re.escape(instead)):
        exec(code, {"bh": bh})


def test_what_names_of_earlier_versions_point_to_is_there():
    assert [field.name for field in dataclasses.fields(ParameterUpdate)][2:] == ["gradient", "clipping", "optimizer"]


@pytest.mark.parametrize(
    "code",
    [
        "x = bh.Tensor([1.0, 2.0], requires_grad=True); (x * x + x).backward([1.0, 1.0]); print(x.grad.tolist())",
        "print([round(bh.gradcheck(lambda x: x @ x, bh.Tensor([[3.0]]).data, d=bh.Tensor([[1.0]]).data), 6)])",
    ],
)
def test_tensors_compute_in_a_process_that_imports_nothing_else(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import byhand as bh\n{code}"], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() in ("[3.0, 5.0]", "[0.0]"), done.stderr
