"""Which host this process is, by what the user or a launcher says; the worst gets one line."""

import os
import re
import socket
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import ConfigError
from byhand.runtimes.xla.cluster import FORM, MOST_HOSTS, Host, detected, host_of
from byhand.runtimes.xla.coordinator import FOR_EVER
from byhand.runtimes.xla.joining import bind_address, join

LAUNCHERS = re.compile("MASTER_|RANK|WORLD_SIZE|LOCAL_|TORCHELASTIC|SLURM_|OMPI_|KUBERNETES_|JAX_COORDINATOR")


@pytest.fixture
def variables(monkeypatch):
    """Return a function that sets a launcher's variables and asks; no other launcher's are there."""
    for name in [name for name in os.environ if LAUNCHERS.match(name)]:
        monkeypatch.delenv(name)

    def ask(**given):
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        return detected(os.environ, 60)

    return ask


def expect_a_line(error, most=500):
    line = str(error.value)
    assert line.isprintable()
    assert len(line) < most
    assert line.endswith(FORM)
    return line


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("10.0.0.1:9876,4,0", Host("10.0.0.1:9876", 4, 0)),
        ("node-1.cluster_a.local:1,2,1", Host("node-1.cluster_a.local:1", 2, 1)),
        ("[fe80::1]:65535,65536,65535", Host("[fe80::1]:65535", 65536, 65535)),
        ("[fe80::1%eth0]:80,1,0", Host("[fe80::1%eth0]:80", 1, 0)),
        ("localhost:09876,02,01", Host("localhost:09876", 2, 1)),
    ],
)
def test_what_the_user_says(text, host):
    assert host_of(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "auto ",
        "10.0.0.1",
        "10.0.0.1:9876",
        "10.0.0.1:9876,4",
        "10.0.0.1:9876,4,",
        "10.0.0.1:9876,4,0,0",
        "10.0.0.1:9876,0,0",
        "10.0.0.1:9876,65537,0",
        "10.0.0.1:9876,-4,0",
        "10.0.0.1:9876,4,-1",
        "h:9876,4.0,0",
        "10.0.0.1:0,4,0",
        "10.0.0.1:65536,4,0",
        "10.0.0.1:99999,4,0",
        "10.0.0.1:-1,4,0",
        "h:٩٨٧٦,٤,٠",
        "h:1,²,0",
        ":9876,4,0",
        " :9876,4,0",
        "a b:9876,4,0",
        "a\0b:9876,4,0",
        "a\nb:9876,4,0",
        "h:9876,4,0\n",
        "\ud800:1,2,0",
        "fe80::1:9876,4,0",
        "[]:9876,4,0",
        "[::1:9876,4,0",
        "::1]:9876,4,0",
        "[a[b]:9876,4,0",
        "\x1b[31m:9876,4,0",
        f"h:{'9' * 5000},4,0",
        f"h:1,{'9' * 5000},0",
        f"h:1,4,{'9' * 5000}",
        f"{'h' * 10**5}:9876,4,0",
        "x" * 10**6,
    ],
)
def test_what_says_nothing_gets_one_line(text):
    with pytest.raises(ConfigError, match=r"^hosts is '") as error:
        host_of(text)
    expect_a_line(error)


@pytest.mark.parametrize(("count", "index"), [(1, 1), (4, 4), (4, 99999), (65536, 65536)])
def test_a_number_beyond_the_hosts_is_told(count, index):
    with pytest.raises(ConfigError, match=rf"host {index} of {count}, but they are numbered from 0 to {count - 1}\."):
        host_of(f"10.0.0.1:9876,{count},{index}")


PIECES = ["h", "10.0.0.1", "[::1]", "[", ":", ",", "0", "1", "9", "65536", " ", "\0", "é", "٣", "-", "%", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.integers(-1, 99999), st.integers(-1, 99999))
def test_any_text_is_a_host_or_a_line(start, count, index):
    try:
        host = host_of(f"{start}:9{abs(index)},{count},{index}")
    except ConfigError as error:
        line = str(error)
        host = Host("h:1", 1, 0)
    else:
        line = ""
    assert line == "" or line.isprintable()
    assert 0 <= host.index < host.count <= MOST_HOSTS
    assert 0 < int(host.address.rsplit(":", 1)[1]) < 1 << 16


TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29400", "WORLD_SIZE": "16", "RANK": "9", "LOCAL_RANK": "1"}
SLURM = {
    "SLURM_JOB_ID": "4096", "SLURM_STEP_NODELIST": "node[07-10,12]", "SLURM_NTASKS": "5", "SLURM_PROCID": "3",
    "SLURM_LOCALID": "0",
}  # fmt: skip
MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}  # fmt: skip
NODE = Host("node1:29400", 16, 9)
FIFTH = Host("node07:61440", 5, 3)
OF_MPI = Host(f"10.96.0.1:{1531576320 // 4096 % 4096 + 61440}", 4, 2)


@pytest.mark.parametrize(
    ("launcher", "more", "host"),
    [
        (TORCHRUN, {}, NODE),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "1"}, NODE),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "8"}, replace(NODE, devices=(1,))),
        (TORCHRUN, {"TORCHELASTIC_USE_AGENT_STORE": "True"}, Host("node1:29401", 16, 9)),
        (TORCHRUN, {"TORCHELASTIC_USE_AGENT_STORE": "False"}, NODE),
        (TORCHRUN, {"MASTER_ADDR": "fe80::1"}, Host("[fe80::1]:29400", 16, 9)),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "8", "SLURM_STEP_TASKS_PER_NODE": "1"}, replace(NODE, devices=(1,))),
        (SLURM, {"SLURM_STEP_TASKS_PER_NODE": "1(x5)"}, FIFTH),
        (SLURM, {"SLURM_STEP_TASKS_PER_NODE": "1"}, FIFTH),
        *(
            (SLURM, {"SLURM_STEP_TASKS_PER_NODE": tasks}, replace(FIFTH, devices=[0]))
            for tasks in ("2(x2),1", "8", "11", "")
        ),
        (MPI, {}, replace(OF_MPI, devices=[0])),
        (MPI, {"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, OF_MPI),
        (MPI, {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, replace(OF_MPI, devices=[0])),
        (
            MPI,
            {"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"},
            replace(OF_MPI, devices=[0]),
        ),
    ],
)
def test_what_a_launcher_says(variables, launcher, more, host):
    """A process that is alone on its machine uses all of its devices."""
    assert variables(**{**launcher, **more}) == host


@pytest.mark.parametrize(
    ("launcher", "wrong", "why"),
    [
        (TORCHRUN, {"MASTER_PORT": "ssh"}, "invalid literal"),
        (TORCHRUN, {"MASTER_PORT": ""}, "invalid literal"),
        (
            TORCHRUN,
            {"MASTER_PORT": "65535", "TORCHELASTIC_USE_AGENT_STORE": "True"},
            "'node1:65536' is not an address",
        ),
        (TORCHRUN, {"MASTER_PORT": "-1"}, "'node1:-1' is not an address"),
        (TORCHRUN, {"MASTER_PORT": "9" * 5000}, "digits"),
        (TORCHRUN, {"MASTER_ADDR": ""}, "':29400' is not an address"),
        (TORCHRUN, {"MASTER_ADDR": "a b"}, "'a b:29400' is not an address"),
        (TORCHRUN, {"MASTER_ADDR": "a\nb\x1b"}, "is not an address"),
        (TORCHRUN, {"MASTER_ADDR": "h" * 10**4}, "is not an address"),
        (TORCHRUN, {"WORLD_SIZE": "0"}, "the number of hosts is 0,"),
        (TORCHRUN, {"WORLD_SIZE": "-3"}, "the number of hosts is -3,"),
        (TORCHRUN, {"WORLD_SIZE": "1000000"}, "the number of hosts is 1000000,"),
        (TORCHRUN, {"WORLD_SIZE": "9" * 4000}, "the number of hosts is 9999"),
        (TORCHRUN, {"WORLD_SIZE": "4"}, "host 9 of 4"),
        (TORCHRUN, {"RANK": "-1"}, "host -1 of 16"),
        (TORCHRUN, {"RANK": "first"}, "invalid literal"),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "two"}, "invalid literal"),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "x" * 5000}, "invalid literal"),
        (TORCHRUN, {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": None}, r"no LOCAL_RANK\)"),
        (SLURM, {"SLURM_JOB_ID": "x"}, ""),
        (SLURM, {"SLURM_JOB_ID": "9" * 5000}, ""),
        (SLURM, {"SLURM_STEP_NODELIST": ""}, ""),
        (SLURM, {"SLURM_STEP_NODELIST": "["}, ""),
        (SLURM, {"SLURM_NTASKS": ""}, ""),
        (SLURM, {"SLURM_NTASKS": "3"}, ""),
        (SLURM, {"SLURM_PROCID": "-1"}, ""),
        (SLURM, {"SLURM_LOCALID": "none"}, ""),
        (MPI, {"OMPI_MCA_orte_hnp_uri": ""}, ""),
        (MPI, {"OMPI_MCA_orte_hnp_uri": "4096.0;udp://10.96.0.1"}, ""),
        (MPI, {"OMPI_COMM_WORLD_SIZE": "1e3"}, ""),
        (MPI, {"OMPI_COMM_WORLD_RANK": "4"}, ""),
        (MPI, {"OMPI_COMM_WORLD_SIZE": None}, r"no OMPI_COMM_WORLD_SIZE\)"),
    ],
)
def test_nonsense_of_a_launcher_gets_one_line(variables, launcher, wrong, why):
    given = {name: value for name, value in {**launcher, **wrong}.items() if value is not None}
    line = rf"^--hosts auto: the launcher's variables are invalid \(.*({why})"
    with pytest.raises(ConfigError, match=line) as error:
        variables(**given)
    expect_a_line(error)


def test_without_a_launcher_there_is_a_line(variables):
    with pytest.raises(
        ConfigError, match=r"^--hosts auto finds no SLURM, Kubernetes, Open MPI or torchrun here\."
    ) as e:
        variables()
    expect_a_line(e)
    with pytest.raises(ConfigError, match="finds no SLURM"):
        variables(MASTER_ADDR="node1", WORLD_SIZE="2", RANK="0")  # no port: not torchrun's


def test_kubernetes_without_its_package_says_what_is_missing(variables, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(
        ConfigError, match=r"finds no SLURM.* here; for Kubernetes, pip install 'jax\[k8s\]'\. "
    ) as error:
        variables(KUBERNETES_SERVICE_HOST="10.0.0.1")
    expect_a_line(error)


@pytest.mark.parametrize("failure", [RuntimeError("Pods need\n```\na service\n```"), Exception("not in a cluster")])
def test_whatever_a_launchers_library_raises_is_one_line(variables, monkeypatch, failure):
    from jax._src.clusters import ClusterEnv

    def fail(*_):
        raise failure

    monkeypatch.setattr(ClusterEnv, "auto_detect_unset_distributed_params", fail)
    with pytest.raises(ConfigError, match=r"are invalid \((Pods need ``` a service ```|not in a cluster)\)") as error:
        variables()
    expect_a_line(error)


@pytest.mark.parametrize("patience", [0, 0.9, -1, float("nan"), float("inf"), FOR_EVER])
@pytest.mark.parametrize("hosts", ["auto", "10.0.0.1:9876,4,0"])
def test_patience_is_a_number_of_seconds(variables, patience, hosts):
    with pytest.raises(ConfigError, match=r"^patience is \S+ s, but must be at least 1, and less than a day\."):
        join(hosts, "run", patience, pytest.fail)


def test_one_host_joins_nobody():
    assert join("10.0.0.1:9876,1,0", "run", 300, pytest.fail).count == 1


@pytest.mark.parametrize(
    ("name", "ip", "bound"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("node1", "10.0.0.1", "10.0.0.1"),
        ("[fe80::1]", "fe80::1", "[fe80::1]"),
        ("node1", "fe80::1", "[fe80::1]"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1", "127.0.0.1"),
        ("localhost", "::1", "[::1]"),
        ("[::1]", "::1", "[::1]"),
    ],
)
def test_the_first_host_listens_at_its_address_alone(monkeypatch, name, ip, bound):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (ip, 9876))])
    assert bind_address(f"{name}:9876") == f"{bound}:9876"


@pytest.mark.parametrize("ip", ["127.0.1.1", "127.0.0.1", "::1"])
@pytest.mark.parametrize(("both", "bound"), [(True, "[::]"), (False, "0.0.0.0")])
def test_a_name_that_is_only_here_a_loop_means_everywhere(monkeypatch, ip, both, bound):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (ip, 9876))])
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: both)
    assert bind_address("node1:9876") == f"{bound}:9876"


@pytest.mark.parametrize("name", ["a\0b", "a" * 64 + ".b", "..", "\ud800"])
def test_a_name_that_cannot_be_gets_a_line(name):
    with pytest.raises(ConfigError, match=r"^host '.*' cannot be found\. Give --hosts an address that all") as error:
        bind_address(f"{name}:9876")
    assert str(error.value).isprintable()


def test_a_name_that_nobody_has_gets_a_line(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConfigError, match=r"^host 'node1' cannot be found\."):
        bind_address("node1:9876")
