"""Without Numba and SciPy, only what needs neither runs here."""

from needs import LOOPS

WITHOUT = ("test_pattern.py", "test_thread_team.py")


def pytest_ignore_collect(collection_path):
    """Leave the files out that import what is not installed."""
    return (
        True
        if not LOOPS and collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
        else None
    )
