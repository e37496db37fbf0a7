"""One more file in the folder of the loops' formats, for this process and for those in which its kernels compile."""

from importlib import import_module
from pathlib import Path

from byhand.runtimes.loops.kernels import formats

formats.__path__.append(str(Path(__file__).parent / "formats"))
import_module(f"{formats.__name__}.fixed8")
