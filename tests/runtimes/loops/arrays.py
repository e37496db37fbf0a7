"""Arrays of the loops runtime by name: what a step or a token has left in the arena."""

import numpy as np


def gradients_of(session):
    """Return the last step's gradients by name, before clipping: views that the next step overwrites."""
    arena, regions = session.arena, session.arena.regions
    places = {name: place for name, place in regions.place.items() if place < regions.size}  # of those not frozen
    return {name: arena.view(regions.gradients + place, regions.shapes[name]) for name, place in places.items()}


def logits_of(decoder):
    """Return the logits (streams, V) of the last position as sampling left them."""
    return decoder.decoding.shares[0].array(decoder.decoding.result)[:, 0]


def apart(logits, weights, relative=1e-4):
    """Return how far logits may lie from these: with quantised weights a last bit may round x to another integer."""
    return (relative if weights.block == 1 else 0.1) * np.abs(logits).max()


def assert_close(found, logits, weights, relative=1e-4):
    """Hold logits against the reference's."""
    np.testing.assert_allclose(found, logits, rtol=0, atol=apart(logits, weights, relative))
