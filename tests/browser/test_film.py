"""The film of the explorer: it shows the addresses that it is asked for, one after another."""

import importlib.util

import pytest

from browser.conftest import DOCS
from browser.webdriver import missing
from byhand.exploring import paper, static
from byhand.exploring.view import View

pytestmark = pytest.mark.browser


@pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="no Pillow: install the dependency group docs")
def test_a_film_shows_each_stop_for_as_long(tmp_path, monkeypatch):
    if why := missing():
        pytest.skip(why)
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    import film
    from PIL import Image

    subject = paper.subject()
    tokens = subject.encode(paper.PROMPT.encode())
    view = View(subject, tokens, [*tokens[1:], *subject.encode(paper.NEXT.encode())])
    static.write(view, tmp_path / "explore", paper.PROMPT, paper.NEXT)
    film.write(tmp_path, "explore", list(film.stops())[:2], {"en": "en"})
    with Image.open(tmp_path / "film" / "en.webp") as shown:
        assert (shown.n_frames, shown.size) == (2, film.SIZE)
        frames = []
        for k in range(2):
            shown.seek(k)
            frames.append(shown.convert("RGB").tobytes())
            assert shown.info["duration"] == film.SECONDS * 1000 // 2
    assert frames[0] != frames[1]
    assert [path.name for path in (tmp_path / "film").iterdir()] == ["en.webp"]
