"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)


class Metrics:
    """Counts since the server began; each server has its own.

    sizes  of the texts that wait and of those that are continued
    """

    def __init__(self, sizes: Callable[[], tuple[int, int]]) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter("byhand_requests", "Requests, by path and status", ("path", "status"), registry=own)
        self.prompt_tokens = Counter("byhand_prompt_tokens", "Tokens of prompts", registry=own)
        self.drawn_tokens = Counter("byhand_generated_tokens", "Tokens that were drawn", registry=own)
        self.first = Histogram("byhand_first_token_seconds", "To the first token", buckets=SECONDS, registry=own)
        self.between = Histogram("byhand_token_seconds", "Of each further token", buckets=FAST, registry=own)
        self.reloads = Counter("byhand_reloads", "Newer checkpoints that were read", registry=own)
        for i, name in enumerate(("waiting", "running")):
            gauge = Gauge(f"byhand_texts_{name}", f"Texts that are {name}", registry=own)
            gauge.set_function(lambda i=i: sizes()[i])

    def write(self) -> bytes:
        """Return them as Prometheus reads them."""
        return generate_latest(self._registry)
