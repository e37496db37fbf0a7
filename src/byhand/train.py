"""The home of training until it became a room: each name says where it is now."""

from typing import NoReturn

_HOMES = {"Trainer": "runs.trainer", "Progress": "runs.trainer", "training": "runs.run"}


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    homes = (
        [f"byhand.{_HOMES[name]}.{name}"] if name in _HOMES else [f"byhand.{home}.{n}" for n, home in _HOMES.items()]
    )
    raise ImportError(f"byhand.train is gone. Import {', '.join(homes)}.")
