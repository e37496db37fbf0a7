"""What a test needs from this machine, and skips without."""

from importlib.util import find_spec

import pytest

LOOPS = all(map(find_spec, ("numba", "scipy")))
needs_loops = pytest.mark.skipif(not LOOPS, reason="the loops runtime needs numba and scipy (extra `fast`)")
MATPLOTLIB = find_spec("matplotlib") is not None
needs_matplotlib = pytest.mark.skipif(not MATPLOTLIB, reason="matplotlib is not installed")
