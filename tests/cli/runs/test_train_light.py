"""`byhand train` imports what a run on bytes needs, and no more."""

import json
import subprocess
import sys

from cli.process import TINY, environment, write_text

CODE = """
import json, sys
from byhand.cli.main import main
assert main(sys.argv[1:]) == 0
print(json.dumps([name for name in sys.modules if name.startswith("byhand.")]))
"""
ELSEWHERE = ("interop", "conversations", "generation", "tracing", "book", "corpus.chats", "tokenizers.bpe")


def test_a_run_on_bytes_imports_nothing_of_other_programs_chats_or_explanations(tmp_path):
    write_text(tmp_path / "text.txt")
    train = ["train", *TINY, "--runtime", "numpy", "--data", "text.txt", "--out", "run"]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *train], cwd=tmp_path, env=environment(), capture_output=True, check=True
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not [name for name in loaded if name.removeprefix("byhand.").startswith(ELSEWHERE)]
