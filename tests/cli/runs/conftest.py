"""The training text of these tests: so short that it ends a run before `--minutes` do."""

import pytest

from cli.process import write_text


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")
