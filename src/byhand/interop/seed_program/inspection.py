"""The original program's report on a model's next token, after a prompt or at places in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from byhand.corpus.dataset import ByteDataset
from byhand.engine import no_grad
from byhand.errors import DataError
from byhand.interop.seed_program.random import XorShift64Star
from byhand.interop.seed_program.sampling import likeliest
from byhand.model import TinyGPT
from byhand.quantities import counted

CHECKS = 0x51514E455854  # separates the generator of offsets from the others
ESCAPES = {ord("\n"): r"\n", ord("\r"): r"\r", ord("\t"): r"\t", ord("\\"): r"\\", ord("'"): r"\'"}


def as_byte(token: int) -> bytes:
    """Return the byte that the original program prints for an id: its lowest eight bits."""
    return bytes([token & 0xFF])


def next_tokens(logits: np.ndarray, count: int, text_of: Callable[[int], bytes] = as_byte) -> Iterator[str]:
    """Yield a heading and a line for each of the `count` likeliest ids after logits (V,)."""
    count = min(count, len(logits))
    yield f"Top-{count} next tokens"
    for rank, (token, p) in enumerate(likeliest(logits, count), 1):
        yield f"  {rank}) id={token}  p={p:g}  tok='{escaped(text_of(token))}'"


def check_places(
    text: ByteDataset, count: int, context: int, seq_len: int, offset: int | None, seed: int
) -> list[int]:
    """Return where the contexts of `count` checks start.

    context  bytes that the model sees, at most seq_len
    offset   the first start, each further one a byte later; None: random places from the seed

    Raises DataError if a context and the byte after it do not fit.
    """
    if context > seq_len:
        raise DataError(f"--sanity-ctx is {context}, but the model's seq_len is {seq_len}. Use at most that.")
    places = len(text) - context  # the byte after the context must be there too
    if places < 1:
        raise DataError(
            f"{text.name} holds {counted(len(text), 'byte')}, too few for --sanity-ctx {context}. Use a longer text."
        )
    if offset is None:
        return XorShift64Star(seed ^ CHECKS).integers(0, places, size=count).tolist()
    if offset + count > places:
        raise DataError(
            f"--sanity-offset {offset} leaves no room for {count} checks of {context} bytes in {text.name} "
            f"({len(text)} bytes). Use at most {max(places - count, 0)}."
        )
    return list(range(offset, offset + count))


def checks(
    model: TinyGPT, text: ByteDataset, places: list[int], context: int, top: int, preview: int
) -> Iterator[str]:
    """Compare the model's next token with the text's at every place; yield the lines to print.

    top      likeliest tokens to list
    preview  bytes of the context's end to show, 0 for none
    """
    hits = 0
    for number, place in enumerate(places, 1):
        window = text.tokens[place : place + context + 1].astype(np.int64)
        with no_grad():
            logits = model.forward_logits(window[None, :-1]).data[0, -1]
        expected, predicted = int(window[-1]), likeliest(logits, 1)[0][0]
        hits += expected == predicted
        yield f"Sanity check {number}/{len(places)}  offset={place}  ctx={context}"
        if preview:
            yield f"  context tail: '{escaped(bytes(window[:-1][-preview:].tolist()))}'"
        yield f"  expected next: id={expected} tok='{escaped(bytes([expected]))}'"
        verdict = "OK" if expected == predicted else "MISMATCH"
        yield f"  pred top1:    id={predicted} tok='{escaped(as_byte(predicted))}'  [{verdict}]"
        yield from next_tokens(logits, top)
    if len(places) > 1:
        yield f"Sanity checks: {hits} of {len(places)} OK"


def escaped(content: bytes, kept: bytes = b"") -> str:
    r"""Return bytes as printable ASCII, all others as \n, \t or \xHH; those in `kept` stay unchanged."""
    return "".join(
        chr(b) if b in kept or (32 <= b < 127 and b not in ESCAPES) else ESCAPES.get(b, f"\\x{b:02X}")
        for b in content
    )
