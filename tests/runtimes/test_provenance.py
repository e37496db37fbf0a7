"""What a resumed run says when something else computes it now."""

import pytest

from byhand.runtimes.provenance import difference


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"runtime": "numpy"}, "now numpy goes on"),
        ({"runtime": "loops", "threads": 2, "blas": "tiles"}, "now loops on 2 threads (tiles) goes on"),
        ({"runtime": "other", "threads": 1}, "now other on 1 thread goes on"),
        ({"runtime": "xla", "device": "cpu", "mesh": "data=4"}, "now xla on cpu (data=4) goes on"),
    ],
)
def test_what_computed_it_is_named_by_what_is_known_of_it(now, words):
    assert words in difference({"runtime": "loops", "threads": 1, "blas": "tiles"}, now)
    assert difference(now, now) == ""
