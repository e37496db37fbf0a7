"""A further format of weights is one more file: with `toy_format/` on the path its model is held by the same law."""

import os
import subprocess
import sys
from pathlib import Path

from byhand.runtimes.loops.run.decoding import LoopsDecoder
from cli.process import PATIENCE, with_kernels
from runtimes.loops import test_decoding

HERE = Path(__file__).resolve().parent


def test_a_format_that_no_file_of_the_package_names_is_generated_with(tmp_path):
    LoopsDecoder(test_decoding.of(), fills=5)  # its kernels are in the cache from here on
    path = [str(HERE / "toy_format"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"BYHAND_CACHE": str(with_kernels(tmp_path)), "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"]
    command += ["-k", "rounded_model and fixed8"]
    done = subprocess.run(
        [*command, test_decoding.__file__], env=environment, cwd=HERE.parents[2], capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout
    assert list(tmp_path.glob("*/row_product_fixed8.o"))
