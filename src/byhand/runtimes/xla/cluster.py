"""Which host this process is: by --hosts, or by what the launcher of a cluster says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byhand.errors import ConfigError

FORM = "Write the first host's address, the number of hosts and this one's, such as --hosts 10.0.0.1:9876,4,0."
MOST_HOSTS = 1 << 16
NO_JAX = "this version of JAX cannot join hosts the way byhand does. Use jax>=0.10,<0.12."


@dataclass(frozen=True)
class Host:
    """This process among those that train together.

    address  of the first one, host:port
    devices  numbers of this machine's devices that this process uses; None: all
    """

    address: str
    count: int
    index: int
    devices: Sequence[int] | None = None


def host_of(text: str) -> Host:
    """Return what `host:port,N,ID` says; ConfigError if it says nothing that can be."""
    match = re.fullmatch(r"(\S+:([0-9]{1,5})),([0-9]{1,5}),([0-9]{1,5})", text)
    if not match or not 0 < int(match[2]) < 1 << 16 or not 0 < int(match[3]) <= MOST_HOSTS:
        raise ConfigError(f"hosts is {text[:80]!r}. {FORM}")
    address, count, index = match[1], int(match[3]), int(match[4])
    if index >= count:
        raise ConfigError(f"--hosts says host {index} of {count}, but they are numbered from 0 to {count - 1}.")
    return Host(address, count, index)


def detected(environ: Mapping[str, str], seconds: float) -> Host:
    """Return what the launcher says of this process; ConfigError if there is none."""
    try:
        if {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"} <= environ.keys():  # torchrun
            port = int(environ["MASTER_PORT"]) + (environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True")
            several = int(environ.get("LOCAL_WORLD_SIZE", "1")) > 1
            devices = (int(environ["LOCAL_RANK"]),) if several else None
            return Host(f"{environ['MASTER_ADDR']}:{port}", int(environ["WORLD_SIZE"]), int(environ["RANK"]), devices)
        from jax._src.clusters import ClusterEnv  # JAX asks them only while it joins

        found = ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, int(seconds))
    except ImportError:
        raise ConfigError(NO_JAX) from None
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        raise ConfigError(f"--hosts auto: the launcher's variables make no sense ({error}). {FORM}") from None
    address, count, index, devices = found
    if address is None or count is None or index is None:
        raise ConfigError(f"--hosts auto finds no SLURM, Kubernetes, Open MPI or torchrun here. {FORM}")
    return Host(address, count, index, devices)
