"""The XLA runtime: the model's own equations, traced once per shape and compiled by JAX for its devices.

    placing       each device's shard of each parameter, and the bytes a step sends: arithmetic, without JAX
    layout        the parameters on the devices: equal blocks stacked, each array sharded as its layer declares
    applying      how a trace applies equations: precision, attention kernels
    recomputing   what a block keeps for the backward pass, and what it recomputes
    gradients     a loss and its gradients: embedding, scan over blocks, head in chunks; then the same backwards
    session       one compiled, donated step; losses; the state by name
    decoder       prefill and decode with a cache of fixed shape

Derivatives are the equations' vjps, applied by the tape; only JAX's attention kernels bring their own.
Needs JAX (`pip install byhand[xla]`).
"""
