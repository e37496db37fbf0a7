"""This process's rank among the hosts, from --hosts or from the launcher of a cluster."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.errors import ConfigError

FORM = "Write the first host's address, the number of hosts and this one's, such as --hosts 10.0.0.1:9876,4,0."
MOST_HOSTS = 1 << 16
ADDRESS = re.compile(r"(?:[\w.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}(?:%\w{1,20})?\]):([0-9]{1,5})")
NO_JAX = "this version of JAX cannot join hosts the way byhand does. Use jax>=0.10,<0.12."


@dataclass(frozen=True)
class Host:
    """The rank of this process among those that train together.

    address  of the first one, host:port
    devices  numbers of this machine's devices that this process uses; None: all
    """

    address: str
    count: int
    index: int
    devices: Sequence[int] | None = None


def host_of(text: str) -> Host:
    """Parse `host:port,N,ID`; ConfigError if it is invalid."""
    match, why = re.fullmatch(r"(.+),([0-9]{1,5}),([0-9]{1,5})", text), ""
    if match:
        count, index = int(match[2]), int(match[3])
        if index >= count > 0:
            raise ConfigError(f"--hosts says host {index} of {count}, but they are numbered from 0 to {count - 1}.")
        try:
            return _possible(match[1], count, index)
        except ValueError as error:
            why = f": {error}"
    raise ConfigError(f"hosts is {text[:80]!r}{why}. {FORM}")


def detected(environ: Mapping[str, str], seconds: float) -> Host:
    """Return this process's host as set by the launcher; ConfigError if there is no launcher."""
    try:
        if {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"} <= environ.keys():  # torchrun
            port = int(environ["MASTER_PORT"]) + (environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True")
            several = int(environ.get("LOCAL_WORLD_SIZE", "1")) > 1
            devices = (int(environ["LOCAL_RANK"]),) if several else None
            name = environ["MASTER_ADDR"]
            found = f"[{name}]:{port}" if ":" in name else f"{name}:{port}", environ["WORLD_SIZE"], environ["RANK"]
        else:
            *found, devices = _of_jax(int(seconds))
            devices = None if _alone_on_its_machine(environ) else devices
        if None in found:
            missing = "; for Kubernetes, pip install 'jax[k8s]'" if "KUBERNETES_SERVICE_HOST" in environ else ""
            raise ConfigError(f"--hosts auto finds no SLURM, Kubernetes, Open MPI or torchrun here{missing}. {FORM}")
        address, count, index = found
        return _possible(str(address), int(count), int(index), devices)
    except ImportError:
        raise ConfigError(NO_JAX) from None
    except ConfigError:
        raise
    except Exception as error:  # any error of a launcher's library
        why = " ".join(str(error).split())[:200] if not isinstance(error, KeyError) else f"no {error.args[0]}"
        raise ConfigError(f"--hosts auto: the launcher's variables are invalid ({why}). {FORM}") from None


def _of_jax(seconds: int) -> Sequence[Any]:
    """Return address, count, index and devices as JAX detects them, through a private function."""
    from jax._src.clusters import ClusterEnv

    with warnings.catch_warnings(action="ignore"):  # about launchers' missing libraries
        return ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, None, seconds)


def _alone_on_its_machine(environ: Mapping[str, str]) -> bool:
    """Return whether SLURM or Open MPI started one process per machine; JAX would give each only one device."""
    if of_mpi := environ.get("OMPI_COMM_WORLD_LOCAL_SIZE"):
        return of_mpi == "1"
    return bool(re.fullmatch(r"1(\(x[0-9]+\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", "")))


def _possible(address: str, count: int, index: int, devices: Sequence[int] | None = None) -> Host:
    """Return a host; ValueError if address, count or index is impossible."""
    match = ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[1]) < 1 << 16:
        raise ValueError(f"{address[:60]!r} is not an address")
    if not 0 < count <= MOST_HOSTS:
        raise ValueError(f"the number of hosts is {count}, but must be from 1 to {MOST_HOSTS}")
    if not 0 <= index < count:
        raise ValueError(f"host {index} of {count}, but they are numbered from 0 to {count - 1}")
    return Host(address, count, index, devices)
