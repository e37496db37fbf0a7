"""Memory, operations and messages of each device of a mesh in a training step, as XLA counts them; nothing is run.

    python benchmarks/mesh.py data=8,fsdp=8 --machine h100 --shape 512,1024,768,12,12,50304

The devices need not exist: as many CPU devices stand for them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import get_args

from sharing import device_share

from byhand.bench.shapes import shape_of
from byhand.config import OptimConfig, Recompute
from byhand.quantities import in_units
from byhand.runtimes.protocol import Request
from byhand.runtimes.xla.mesh import mesh_of

COMPUTING = 0.4  # of the peak, as large training runs report


@dataclass(frozen=True)
class Device:
    """Peak in bfloat16 (FLOP/s), memory (bytes), and the links within a host and between hosts (bytes/s)."""

    peak: float
    memory: float
    within: float
    between: float


DEVICES = {  # vendors' data sheets: dense products; NVLink in one direction; one network card a device
    "a100": Device(312e12, 80e9, 300e9, 25e9),
    "h100": Device(989e12, 80e9, 450e9, 50e9),
    "h200": Device(989e12, 141e9, 450e9, 50e9),
}


def main() -> None:
    """Count, and print the share of a device."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("mesh", help="such as data=8,fsdp=8,tensor=1")
    flags.add_argument("--shape", default="nano", help="tiny, nano, small, or B,T,C[/F],L,H[/K],V")
    flags.add_argument("--per-host", type=int, default=8, help="devices of a host")
    flags.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"), help="inputs of linear layers")
    flags.add_argument("--recompute", default="nothing", choices=get_args(Recompute), help="in the backward pass")
    flags.add_argument("--optimizer", default="adamw")
    flags.add_argument("--machine", choices=list(DEVICES), help="devices whose times are shown")
    given = flags.parse_args()
    mesh, shape, device = mesh_of(given.mesh), shape_of(given.shape), DEVICES.get(given.machine)
    request = Request("train", shape.model(), "xla", given.dtype, mesh=given.mesh, recompute=given.recompute)
    optim = OptimConfig(optimizer=given.optimizer)
    share = device_share(request, (shape.batch, shape.seq_len), given.per_host, optim)
    print(f"mesh {mesh}: {mesh.size}{f' × {given.machine}' if device else ' devices'}, {given.per_host} a host")
    step = f"{shape.batch} × {shape.seq_len} tokens, {given.dtype}, recompute {given.recompute}"
    print(f"a step of {step}; each device, as XLA counts,")
    room = f", of {device.memory / 1e9:.0f} GB" if device else ""
    state, beside = (in_units(n, "B") for n in (share.held, share.workspace))
    print(f"  holds     {state} of parameters and moments, {beside} more in a step{room}")
    print(f"  computes  {in_units(share.flops, 'FLOP')}")
    for (kind, far), sent in share.moved.items():
        if sent:
            print(f"  sends     {in_units(sent, 'B')} {'between hosts' if far else 'within its host'}: {kind}")
    if device:
        links = {True: device.between, False: device.within}
        sending = sum(sent / links[far] for (_, far), sent in share.moved.items())
        computing = share.flops / (COMPUTING * device.peak)
        peak = f"{COMPUTING:.0%} of {device.peak / 1e12:.0f} TFLOP/s"
        print(f"  takes     {1e3 * computing:.1f} ms to compute at {peak}, {1e3 * sending:.1f} ms to send")
        alone, together = computing / (computing + sending), computing / max(computing, sending)
        print(f"  computes  {alone:.0%} of the time if nothing overlaps, {together:.0%} if all does")


if __name__ == "__main__":
    main()
