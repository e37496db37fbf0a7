"""The pictures that only pages show; `PICTURES` has all of the pages by name, those of the lessons too."""

from byhand.book.pictures.of_lessons import OF_LESSONS
from byhand.book.pictures.picture import Picture
from pictures import breaking, devices, graphs, training, variants

_of_lessons = [picture for several in OF_LESSONS.values() for picture in several]
_declared = [x for module in (breaking, devices, graphs, training, variants) for x in vars(module).values()]
PICTURES = {x.name: x for x in (*_of_lessons, *_declared) if isinstance(x, Picture)}
