"""`byhand bench fusions`: the gain of each fusion of the loops runtime."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from byhand.bench import fusions
from byhand.bench.shapes import Blas, require_threads, shape_of
from byhand.cli.arguments.settings import Switch
from byhand.cli.terminal.say import show, show_json
from byhand.config import ModelConfig
from byhand.errors import ConfigError
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose

LONGEST = 86_400  # seconds of measuring: a day


@dataclass(frozen=True)
class Options:
    """Time a training step without each fusion in turn, and the step with all of them."""

    shape: str = "nano"
    """tiny, nano, small, or B,T,C[/F],L,H[/K],V."""
    threads: int = 0
    """Threads; 0: all cores."""
    blas: Blas = "auto"
    """Matrix products: register tiles or a library; auto takes the fastest."""
    seconds: float = 20.0
    """About how long to measure."""
    json: Switch = False
    """Print one JSON object."""


def run(options: Options) -> int:
    """Run the subcommand."""
    require_threads(options.threads)
    if not 0 < options.seconds <= LONGEST:
        raise ConfigError(f"--seconds is {options.seconds:g}, but must be above 0 and at most {LONGEST}.")
    choose(Request("train", ModelConfig(), listed=True))  # ConfigError if no runtime has a plan
    gains = fusions.measure(shape_of(options.shape), options.threads, options.blas, options.seconds)
    if options.json:
        show_json({"gains": [asdict(gain) for gain in gains]})
        return 0
    show(f"{'fusion':<36}{'instead':<14}{'ms':>9}{'without':>9}{'times':>7}{'MB':>8}{'without':>9}")
    for g in gains:
        show(f"{g.rule:<36}{g.instead:<14}{g.ms:>9.2f}{g.ms_without:>9.2f}{g.ratio:>7.2f}{g.mb:>8.1f}"
              f"{g.mb_without:>9.1f}")  # fmt: skip
    return 0
