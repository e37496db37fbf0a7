"""Joining the processes on several hosts: they meet at the coordinator, then JAX connects them."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from byhand.errors import ConfigError, reason
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.xla import coordinator
from byhand.runtimes.xla.cluster import Host, detected, host_of
from byhand.runtimes.xla.coordinator import FOR_EVER, LONGEST
from byhand.runtimes.xla.group import JoinedGroup, first_line
from byhand.runtimes.xla.watch import LOST, OUTSIDE
from byhand.version import __version__

log = logging.getLogger(__name__)
QUIET = 5.0  # seconds of waiting before a message


def join(text: str, run: str, patience: float, ended: Callable[[str], None]) -> ProcessGroup:
    """Join the hosts described by a text; ConfigError if that fails.

    text      host:port,N,ID; or auto: from SLURM, Kubernetes, Open MPI or torchrun
    run       name of what they train: hosts of another run are refused
    patience  seconds until an unresponsive host counts as lost
    ended     called with a message when another host is lost
    """
    if not 1 <= patience < FOR_EVER:
        raise ConfigError(
            f"patience is {patience:g} s, but must be at least 1, and less than a day. Use --patience 300."
        )
    host = detected(os.environ, patience) if text == "auto" else host_of(text)
    if host.count == 1:
        return ProcessGroup()
    for name in ("jax_enable_preemption_service", "jax_check_proxy_envs"):
        with suppress(AttributeError):  # byhand handles signals itself
            jax.config.update(name, False)
    service = _coordinator(host, patience) if host.index == 0 else None
    until = time.monotonic() + OUTSIDE * patience
    address = _met(host, run, until)
    _past_proxies(address.rsplit(":", 1)[0])
    _connect(replace(host, address=address), until)
    return JoinedGroup(host, patience, ended, service)


def _met(host: Host, run: str, until: float) -> str:
    """Wait for all hosts; return the address of JAX's service. ConfigError if one is late."""
    name, port = host.address.rsplit(":", 1)
    versions = f"byhand {__version__} and jax {jax.__version__}{f', for the run {run}' * bool(run)}"
    hello = json.dumps({"host": host.index, "of": host.count, "versions": versions}).encode() + b"\n"
    why, wrong, begun, told = "nothing listens there", "", time.monotonic(), [""]

    def tell() -> None:
        if time.monotonic() > begun + QUIET and why != told[-1]:
            log.info("waiting for the other hosts at %s (%s)", host.address, why)
            told.append(why)

    while time.monotonic() < until and not wrong:
        try:
            connection = socket.create_connection((name.strip("[]"), int(port)), timeout=1)
        except (OSError, ValueError) as error:  # ValueError: not a valid name
            why = f"nothing listens there: {reason(error)}"
        else:
            why = "what listens there does not answer as host 0 does"
            with connection, suppress(OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
                connection.sendall(hello)
                while not wrong and (answer := _line(connection, until, tell)):
                    said = json.loads(answer)
                    if 0 < int(said.get("port", 0)) < 1 << 16:
                        return f"{name}:{int(said['port'])}"
                    if not (wrong := str(said.get("error", ""))):
                        why = f"missing: {', '.join(str(int(i)) for i in said['missing'])}"
        tell()
        time.sleep(0.2)  # host 0 may start later
    if wrong:
        raise ConfigError(f"the hosts do not match: {wrong[:300]}. Start all alike, each with its own number.")
    raise ConfigError(
        f"host {host.index} did not meet all {host.count} hosts at {host.address} in time ({why}). "
        f"Start each of them, with the same address."
    )


def _past_proxies(name: str) -> None:
    """Make gRPC connect to the first host directly, not through a proxy from the environment."""
    for variable in ("no_proxy", "no_grpc_proxy"):
        os.environ[variable] = ",".join(filter(None, (os.environ.get(variable), name.strip("[]"))))


def _line(connection: socket.socket, until: float, idle: Callable[[], None]) -> bytes:
    """Return the next line of a connection, b"" if it closes; give up at `until`. Call `idle` each second."""
    found = b""
    while not found.endswith(b"\n") and len(found) < LONGEST and time.monotonic() < until:
        try:
            if not (read := connection.recv(1)):
                return b""
        except TimeoutError:
            idle()
            continue
        found += read
    return found


def _connect(host: Host, until: float) -> None:
    """Connect JAX to the other hosts, in a thread: on a timeout of its own, JAX ends the process with a trace."""
    errors: list[Exception] = []

    def connect() -> None:
        try:
            jax.distributed.initialize(
                host.address,
                host.count,
                host.index,
                host.devices,
                cluster_detection_method="deactivate",
                initialization_timeout=FOR_EVER,
                heartbeat_timeout_seconds=FOR_EVER,  # the watch is faster and prints one line
                coordinator_bind_address="127.0.0.1:0",  # for JAX's own service, which is unused
            )
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=connect, name="byhand-connect", daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()))
    if errors or thread.is_alive():
        why = first_line(errors[0]) if errors else "no answer in time"
        raise ConfigError(
            f"host {host.index} cannot join the others at {host.address}: {why}. Start all of them again."
        )


def _coordinator(host: Host, patience: float) -> Any:
    """Start the coordinator's process, and return it."""
    words = [bind_address(host.address), str(host.count), str(3 * min(LOST, patience))]
    service = subprocess.Popen(
        [sys.executable, "-P", str(Path(coordinator.__file__)), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must end the hosts only
    )
    said = service.stdout.readline().decode() if service.stdout else ""
    if said != "\n":
        service.communicate()
        why = said.strip() or "the coordinator ended"
        raise ConfigError(
            f"host 0 cannot listen at {host.address} ({why[:200]}). Use another port, at an address of its own."
        )
    return service


def bind_address(address: str) -> str:
    """Return the first host's listening address: its own, or any if its name resolves to a loopback address."""
    name, port = address.rsplit(":", 1)
    try:
        found = socket.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except (OSError, ValueError):  # ValueError: not a valid name
        raise ConfigError(
            f"host {name[:80]!r} cannot be found. Give --hosts an address that all hosts can reach."
        ) from None
    ip = str(found[4][0])
    loops = ip.startswith("127.") or ip == "::1"
    if loops and name not in ("localhost", ip, f"[{ip}]"):
        everywhere = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"
        return f"{everywhere}:{port}"  # other hosts resolve its name differently
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
