"""The notebook runs as it stands, but for the number of steps."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "spelling-numbers.ipynb"


def test_every_cell_runs(tmp_path):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), "clear all outputs"
    program, found = re.subn(r"\bsteps=1500\b", "steps=12, batch_size=4", "\n\n".join(code))
    assert found == 1
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "step 12/12" in done.stdout
    rows = re.findall(r"^layer \d, head \d: (.*)$", done.stdout, re.MULTILINE)
    assert all(abs(sum(map(float, row.split())) - 1) < 0.05 for row in rows)
    assert len(rows) == 8
    assert done.stdout.count("\nTrue") == 2, "what was exported spells alike"
