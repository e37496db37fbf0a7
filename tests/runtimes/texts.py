"""Texts of a decoder, without an engine."""

import numpy as np

from byhand.errors import UNSOUND_LOGITS, NonFiniteError
from byhand.generation import Sampling, Stream


def texts(decoder, prompts, count, sampling=None, allowed=None):
    """Return `count` ids of each prompt (count, prompts), all begun together; NonFiniteError if one fails."""
    streams = [Stream([int(t) for t in p], count, sampling or Sampling(0.0), allowed) for p in prompts]
    for slot, stream in enumerate(streams):
        decoder.admit(slot, stream)
    running = dict(enumerate(streams))
    try:
        while decoder.reading:
            decoder.read()
        while running:
            decoder.step(min(stream.left for stream in running.values()))
            for slot, stream in list(running.items()):
                if stream.status != "waiting":
                    decoder.free(slot)
                    del running[slot]
    finally:
        for slot in running:
            decoder.free(slot)
    if any(stream.status == "failed" for stream in streams):
        raise NonFiniteError(UNSOUND_LOGITS)
    return np.array([stream.drawn for stream in streams]).T
