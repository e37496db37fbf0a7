"""byhand: a GPT whose every number can be checked by hand, and which trains at full speed.

The names below are the public interface. Each is imported on first use, so that `import byhand` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from byhand.version import __version__

_NAMES = {
    "byhand.api.loaded": ("Loaded", "export", "load"),
    "byhand.api.training": ("train",),
    "byhand.config": ("ModelConfig", "DataConfig", "OptimConfig", "TrainConfig"),
    "byhand.errors": ("ByhandError", "ShapeError"),
    "byhand.engine": ("Tensor", "Equation", "no_grad", "scope", "gradcheck"),
    "byhand.model": ("TinyGPT",),
    "byhand.optim": ("AdamW", "Muon", "Optimizer"),
    "byhand.tracing": ("Trace",),
    "byhand.corpus.dataset": ("ByteDataset", "Corpus"),
    "byhand.generation": ("generate",),
    "byhand.runs.checkpoint": ("load_model",),
    "byhand.book.explain.explainer": ("explain",),
    "byhand.book.port.comparing": ("check",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME)]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from byhand.api.loaded import Loaded as Loaded
    from byhand.api.loaded import export as export
    from byhand.api.loaded import load as load
    from byhand.api.training import train as train
    from byhand.book.explain.explainer import explain as explain
    from byhand.book.port.comparing import check as check
    from byhand.config import DataConfig as DataConfig
    from byhand.config import ModelConfig as ModelConfig
    from byhand.config import OptimConfig as OptimConfig
    from byhand.config import TrainConfig as TrainConfig
    from byhand.corpus.dataset import ByteDataset as ByteDataset
    from byhand.corpus.dataset import Corpus as Corpus
    from byhand.engine import Equation as Equation
    from byhand.engine import Tensor as Tensor
    from byhand.engine import gradcheck as gradcheck
    from byhand.engine import no_grad as no_grad
    from byhand.engine import scope as scope
    from byhand.errors import ByhandError as ByhandError
    from byhand.errors import ShapeError as ShapeError
    from byhand.generation import generate as generate
    from byhand.model import TinyGPT as TinyGPT
    from byhand.optim import AdamW as AdamW
    from byhand.optim import Muon as Muon
    from byhand.optim import Optimizer as Optimizer
    from byhand.runs.checkpoint import load_model as load_model
    from byhand.tracing import Trace as Trace


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'byhand' has no attribute {name!r}")
    if _HOME[name] == "byhand.engine":
        import_module("byhand.equations")  # the engine's operators are equations
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
