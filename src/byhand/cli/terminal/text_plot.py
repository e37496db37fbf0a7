"""uniplot without Numba, which would spend seconds compiling and need a writable cache folder."""

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
