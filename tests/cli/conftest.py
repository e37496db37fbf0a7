"""Command lines that must be refused."""

import pytest

from byhand.cli.main import main


@pytest.fixture
def refusal(capsys):
    """Run `byhand` in this process on input that it refuses, and return what it says: one line of bounded length."""

    def run(*arguments):
        assert main([*arguments]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert said.count("\n") == 1
        assert "\x1b" not in said
        assert len(said) < 600
        return said

    return run
