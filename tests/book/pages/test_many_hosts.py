"""The page about devices and hosts: parts add up to the whole, pictures are fresh, its commands train together."""

import json
import math
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from book.pages.asked import answers_of
from byhand.model import declared
from byhand.runtimes.xla.placing import held_shape, part_shape, spec_of
from cli.process import PATIENCE, environment
from pages import filling
from pictures.devices import EIGHT, SMALL, holders

PAGE = filling.docs() / "guides" / "many-hosts.md"


@pytest.mark.parametrize("config", [SMALL, answers_of("guides/many-hosts").gpt2_even], ids=["small", "gpt2"])
def test_parts_cover_an_array_and_each_device_holds_one(config):
    for name, parameter in declared(config).items():
        parts = holders(spec_of(parameter, EIGHT), EIGHT)
        assert len(parts) * math.prod(part_shape(parameter, EIGHT)) == math.prod(held_shape(parameter)), name
        assert sorted(number for numbers in parts.values() for number in numbers) == list(range(EIGHT.size)), name


def test_a_host_of_four_is_one_place_along_data():
    assert list(holders(("data",), EIGHT).values()) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_page_is_made_without_jax():
    code = "import sys; sys.modules['jax'] = None; from pages.filling import filled, Path; "
    code += f"print(filled(Path({str(PAGE)!r})), end='')"
    made = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        cwd=filling.docs() / "build",
        check=True,
        timeout=PATIENCE,
        capture_output=True,
    )
    assert made.stdout.decode().replace("\r\n", "\n") == PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("jax") is None, reason="the xla runtime needs jax (extra `xla`)")
def test_the_commands_of_the_page_train_together(tmp_path):
    """The three commands under "Try it on a laptop", at a free port: two hosts, then one process with their mesh."""
    first, second, alone = re.findall(r"^byhand (train --preset .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    hosts = [_start(command.replace(":9876,", f":{port},"), tmp_path) for command in (first, second)]
    said = [process.communicate(timeout=PATIENCE) for process in hosts]
    assert [process.returncode for process in hosts] == [0, 0], said
    assert said[1][0] == ""
    assert "host 1 of 2: host 0 shows the progress" in said[1][1]
    process = _start(alone, tmp_path)
    assert process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    two, one = (_losses(tmp_path / "runs" / name) for name in ("two", "one"))
    assert len(one) == 50
    assert one == two


def _start(command: str, folder: Path) -> subprocess.Popen[str]:
    command_line = [sys.executable, "-m", "byhand", *command.split()]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command_line, cwd=folder, env={**environment(), "JAX_PLATFORMS": "cpu"}, stdout=pipe, stderr=pipe, text=True
    )


def _losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["train/loss"] for line in lines]
