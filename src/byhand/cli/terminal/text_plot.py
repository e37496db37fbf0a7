"""uniplot without Numba, with which it would compile a loop: seconds, and a folder that one may write to."""

import sys

_MISSING = object()
_numba = sys.modules.get("numba", _MISSING)
sys.modules["numba"] = None  # pyright: ignore[reportArgumentType]  (an import of it fails)
try:
    from uniplot import plot_to_string as plot_to_string
finally:
    if _numba is _MISSING:
        del sys.modules["numba"]
    else:
        sys.modules["numba"] = _numba  # pyright: ignore[reportArgumentType]
