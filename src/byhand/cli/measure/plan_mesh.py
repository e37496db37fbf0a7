"""`byhand plan --mesh`: memory, operations and messages of each device of a mesh in a step, without running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.bench.shapes import Shape
from byhand.cli.measure.plan_options import Options
from byhand.cli.terminal.say import show, show_json
from byhand.config import OptimConfig
from byhand.errors import ConfigError
from byhand.quantities import in_units
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose
from byhand.runtimes.xla.mesh import MOST_CPU_DEVICES, mesh_of

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


def run(options: Options, shape: Shape) -> int:
    """Print the share of a device; return the exit code."""
    mesh = mesh_of(options.mesh)
    if mesh.size > MOST_CPU_DEVICES:
        raise ConfigError(f"mesh {mesh} has {mesh.size:,} devices, but can have at most {MOST_CPU_DEVICES:,} here.")
    if options.per_host < 1:
        raise ConfigError(f"per_host is {options.per_host}, but must be at least 1. Use 8.")
    request = Request("train", shape.model(), "xla", options.dtype, mesh=options.mesh, recompute=options.recompute)
    choose(request)
    from byhand.runtimes.xla.sharing import device_share

    share = device_share(
        request, (shape.batch, shape.seq_len), options.per_host, OptimConfig(optimizer=options.optimizer)
    )
    device = DEVICES.get(options.machine)
    facts: dict[str, Any] = {
        "mesh": str(mesh), "devices": mesh.size, "per_host": options.per_host, "shape": options.shape,
        "held_bytes": share.held, "step_bytes": share.workspace, "flops": share.flops,
        "sent": [{"kind": kind, "between_hosts": far, "bytes": n} for (kind, far), n in share.moved.items() if n],
    }  # fmt: skip
    if device:
        sending = sum(s["bytes"] / (device.between if s["between_hosts"] else device.within) for s in facts["sent"])
        times = {"computing_s": share.flops / (COMPUTING * device.peak), "sending_s": sending}
        facts |= {"machine": options.machine, **times}
    if options.json:
        show_json(facts)
        return 0
    of = f" × {options.machine}" if device else " devices"
    show(f"mesh {mesh}: {mesh.size}{of}, {options.per_host} a host")
    step = f"{shape.batch} × {shape.seq_len} tokens, {options.dtype}, recompute {options.recompute}"
    show(f"a step of {step}; each device, as XLA counts,")
    room = f", of {device.memory / 1e9:.0f} GB" if device else ""
    state, beside = (in_units(n, "B") for n in (share.held, share.workspace))
    show(f"  holds     {state} of parameters and moments, {beside} more in a step{room}")
    show(f"  computes  {in_units(share.flops, 'FLOP')}")
    for sent in facts["sent"]:
        where = "between hosts" if sent["between_hosts"] else "within its host"
        show(f"  sends     {in_units(sent['bytes'], 'B')} {where}: {sent['kind']}")
    if device:
        _print_times(facts["computing_s"], facts["sending_s"], device)
    return 0


def _print_times(computing: float, sending: float, device: Device) -> None:
    peak = f"{COMPUTING:.0%} of {device.peak / 1e12:.0f} TFLOP/s"
    show(f"  takes     {1e3 * computing:.1f} ms to compute at {peak}, {1e3 * sending:.1f} ms to send")
    alone, together = computing / (computing + sending), computing / max(computing, sending)
    show(f"  computes  {alone:.0%} of the time if nothing overlaps, {together:.0%} if all does")
