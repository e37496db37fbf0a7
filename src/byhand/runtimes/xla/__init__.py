"""The XLA runtime: the model's own equations, traced once for a shape and compiled by JAX for its devices.

    placing       which part of a parameter a device holds, and what a step sends: arithmetic, without JAX
    layout        how parameters lie on the devices: blocks of one kind stacked, each array shared as its layer says
    applying      what applying an equation means in a trace: its precision, attention by name
    remembering   what a block keeps for the way back, and what is computed again
    gradients     a loss and its gradients: embedding, blocks scanned, head in chunks of rows; then the same backwards
    session       one compiled, donated step; losses; the state by name
    decoder       prefill and decode with a cache of fixed shape

Derivatives are the equations' vjps, walked back by the tape; only a kernel taken by name brings its own.
Needs JAX (`pip install byhand[xla]`).
"""
