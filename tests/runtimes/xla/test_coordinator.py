"""The hosts meet through real sockets, whatever else comes to their door."""

import io
import json
import os
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import jaxlib
import pytest

from byhand.errors import ConfigError
from byhand.runtimes.xla import coordinator, joining
from byhand.runtimes.xla.cluster import Host
from byhand.runtimes.xla.coordinator import LONGEST, Meeting
from cli.process import PATIENCE


def later():
    return time.monotonic() + PATIENCE


class Met:
    """A meeting that runs in a thread, and clients of it."""

    def __init__(self, count):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.first, ours = socket.socketpair()
        self.meeting = Meeting(self.server, count, ours)
        self.found = []
        self.sockets: list[socket.socket] = [self.server, self.first, ours]
        self.clients: list[Client] = []
        self.thread = threading.Thread(target=lambda: self.found.append(self.meeting.wait()))
        self.thread.start()

    def client(self):
        connection = socket.create_connection(self.server.getsockname(), timeout=PATIENCE)
        self.clients.append(Client(connection))
        return self.clients[-1]

    def host(self, index, of=None, versions="1"):
        client = self.client()
        client.say({"host": index, "of": of or self.meeting.count, "versions": versions})
        return client

    def all_came(self):
        self.thread.join(PATIENCE)
        assert self.found == [True]
        return sorted(self.meeting.there)

    def close(self):
        self.first.close()
        self.thread.join(PATIENCE)
        for connection in self.sockets:
            connection.close()
        for client in self.clients:
            client.leave()
        self.meeting.close()
        assert self.found, "the meeting ended otherwise than it should"


class Client:
    """A connection that speaks lines of JSON."""

    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile("rb")

    def say(self, what):
        self.connection.sendall(what if isinstance(what, bytes) else json.dumps(what).encode() + b"\n")

    def hear(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def leave(self, reset=False):
        if reset and self.connection.fileno() >= 0:  # the other side gets a reset instead of an end
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.file.close()
        self.connection.close()


@contextmanager
def met(count):
    found = Met(count)
    try:
        yield found
    finally:
        found.close()


def test_all_come_and_hear_who_is_missing():
    with met(3) as hosts:
        second = hosts.host(1)
        assert second.hear() == {"missing": [0, 2]}
        first = hosts.host(0)
        assert [first.hear(), second.hear()] == [{"missing": [2]}] * 2
        third = hosts.host(2)
        assert [c.hear() for c in (first, second, third)] == [{"missing": []}] * 3
        assert hosts.all_came() == [0, 1, 2]


def test_of_many_missing_ten_are_named():
    with met(10_000) as hosts:
        assert hosts.host(5).hear() == {"missing": [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]}


@pytest.mark.parametrize("reset", [False, True])
def test_a_host_that_leaves_and_comes_back_is_there_once(reset):
    with met(2) as hosts:
        for _ in range(3):
            one = hosts.host(1)
            assert one.hear() == {"missing": [0]}
            one.leave(reset)
        one = hosts.host(1)
        assert one.hear() == {"missing": [0]}
        assert hosts.host(0).hear() == {"missing": []}
        assert hosts.all_came() == [0, 1]


def test_a_host_that_left_is_missing_again():
    with met(3) as hosts:
        one = hosts.host(1)
        assert one.hear() == {"missing": [0, 2]}
        one.leave()
        while (two := hosts.host(2)).hear() == {"missing": [0]}:  # until its end was noticed
            two.leave()
        assert hosts.host(0).hear() == {"missing": [1]}


def test_of_two_with_one_number_the_later_is_there_and_the_earlier_hears_of_it():
    with met(2) as hosts:
        one = hosts.host(1)
        assert one.hear() == {"missing": [0]}
        two = hosts.host(1)
        assert one.hear() == {"error": "another process is host 1, too"}
        assert two.hear() == {"missing": [0]}
        one.leave()
        assert hosts.host(0).hear() == {"missing": []}
        assert two.hear() == {"missing": []}
        assert hosts.all_came() == [0, 1]


@pytest.mark.parametrize(
    ("index", "of", "versions", "said"),
    [
        (1, 3, "1", "host 1 expects 3 hosts, but host 0 expects 2"),
        (2, 3, "1", "host 2 expects 3 hosts, but host 0 expects 2"),
        (1, 2, "2", "host 1 has 2, host 0 1"),
        (1, 2, "é" * 500, f"host 1 has {'é' * 200}, host 0 1"),
    ],
    ids=["more", "beyond", "version", "long version"],
)
@pytest.mark.parametrize("first", [True, False])
def test_hosts_that_do_not_fit_are_told_whoever_came_first(index, of, versions, said, first):
    with met(2) as hosts:
        if first:
            zero = hosts.host(0)
            assert zero.hear() == {"missing": [1]}
        other = hosts.host(index, of, versions)
        if not first:
            if "has" in said:
                assert other.hear() == {"missing": [0]}
            zero = hosts.host(0)
            said = f"host 0 has 1, host 1 {versions[:200]}" if "has" in said else said
        assert [zero.hear(), other.hear()] == [{"error": said}] * 2
        assert len(json.dumps({"error": said})) < LONGEST
        assert hosts.host(1).hear() == {"error": said}  # a late one, too
        hosts.first.close()
        hosts.thread.join(PATIENCE)
        assert hosts.found == [False]


def test_a_host_that_went_away_to_get_the_others_version_fits():
    with met(2) as hosts:
        one = hosts.host(1, versions="old")
        assert one.hear() == {"missing": [0]}
        one.leave()
        one = hosts.host(1, versions="new")
        assert one.hear() == {"missing": [0]}
        assert hosts.host(0, versions="new").hear() == {"missing": []}
        assert hosts.all_came() == [0, 1]


GARBAGE = [
    b"\0\xff\n",
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    b"null\n",
    b"{}\n",
    b'{"host": 1e999, "of": 2, "versions": "1"}\n',
    b'{"host": NaN, "of": 2, "versions": "1"}\n',
    b'{"host": 1}\n',
    b'{"host": 2, "of": 2, "versions": "1"}\n',  # no host: they are numbered from 0
    b'{"host": -1, "of": 2, "versions": "1"}\n',
    b'{"host": 9%s, "of": 2, "versions": "1"}\n' % (b"9" * 3000),
    b'{"host": true, "of": 2, "versions": "1"}\n',
    b'{"host": "1", "of": 2, "versions": "1"}\n',
    b'{"host": 1, "of": 2, "versions": ["1"]}\n',
    b"[" * (LONGEST - 1) + b"\n",
    b'{"a":' * 600 + b"\n",
    b"x" * (LONGEST + 1),
    b"9" * (LONGEST - 1) + b"\n",
    b" " * 3 * LONGEST,
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda g: ascii(g[:24].decode("latin-1")))
def test_garbage_ends_its_own_connection_alone(garbage):
    with met(2) as hosts:
        one = hosts.host(1)
        stranger = hosts.client()
        stranger.say(garbage)
        with suppress(ConnectionResetError):  # if it was closed before all was read
            assert stranger.hear() is None
        assert one.hear() == {"missing": [0]}
        assert hosts.host(0).hear() == {"missing": []}
        assert hosts.all_came() == [0, 1]


def test_a_second_line_of_a_host_is_garbage():
    with met(2) as hosts:
        one = hosts.host(1)
        assert one.hear() == {"missing": [0]}
        one.say({"host": 0, "of": 2, "versions": "1"})
        assert one.hear() is None
        hosts.host(1)
        hosts.host(0)
        assert hosts.all_came() == [0, 1]


def test_a_line_in_pieces_is_one():
    with met(1) as hosts:
        zero = hosts.client()
        for byte in json.dumps({"host": 0, "of": 1, "versions": "1"}).encode() + b"\n":
            zero.say(bytes([byte]))
        assert zero.hear() == {"missing": []}
        assert hosts.all_came() == [0]


def test_connections_that_are_silent_or_reset_keep_nobody_away():
    with met(3) as hosts:
        for _ in range(20):
            hosts.client()
            half = hosts.client()
            half.say(b'{"host": 1, "of"')
            for reset in (True, False):
                hosts.client().leave(reset)
                gone = hosts.client()
                gone.say(b'{"host"')
                gone.leave(reset)
                hosts.host(2).leave(reset)
        for index in range(3):
            hosts.host(index)
        assert 0 in hosts.all_came()


def test_a_connection_that_cannot_be_accepted_costs_the_silent_ones_theirs():
    """So it is when they hold all of a process's descriptors."""
    with met(2) as hosts:
        one, silent = hosts.host(1), hosts.client()
        assert one.hear() == {"missing": [0]}

        while len(hosts.meeting.said) < 2:
            time.sleep(0.01)
        accept, refused = hosts.meeting.accept, []

        class Full:
            def accept(self):
                refused.append(24)
                raise OSError(24, "Too many open files")

        def refuse_once():
            hosts.meeting.server = hosts.server if refused else Full()
            accept()
            hosts.meeting.server = hosts.server

        hosts.meeting.accept = refuse_once
        hosts.host(0)
        assert hosts.all_came() == [0, 1]
        assert refused == [24]
        assert silent.hear() is None


def test_the_first_hosts_end_ends_the_meeting():
    with met(2) as hosts:
        one = hosts.host(1)
        assert one.hear() == {"missing": [0]}
        hosts.first.close()
        hosts.thread.join(PATIENCE)
        assert hosts.found == [False]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def run_main(monkeypatch, address, count, said=b""):
    """Run the process's `main` in a thread; yield its exit code and what it slept, and what ends the first host."""
    reader, writer = os.pipe()
    slept, codes, service = [], [], []
    monkeypatch.setattr(coordinator, "time", SimpleNamespace(sleep=slept.append))
    monkeypatch.setattr(
        jaxlib._jax, "get_distributed_runtime_service", lambda *given, **_: service.append(given) or object()
    )
    printed = io.StringIO()
    monkeypatch.setattr(coordinator, "print", lambda *said, flush: printed.write(*said or "\n"), raising=False)
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        thread = threading.Thread(target=lambda: codes.append(coordinator.main(address, count, 45.0)))
        thread.start()

        def end(last=b""):
            os.write(writer, last)
            os.close(writer)
            thread.join(PATIENCE)
            return codes, slept

        yield end, printed, service


@contextmanager
def coming(*hosts, deadline=None):
    """Let each host of a run come, in a thread; yield what each gets in the end, a place or an error."""
    found: list = [None] * len(hosts)

    def come(i, host, run):
        try:
            found[i] = joining._met(host, run, deadline or later())
        except ConfigError as error:
            found[i] = error

    threads = [threading.Thread(target=come, args=(i, *each)) for i, each in enumerate(hosts)]
    for thread in threads:
        thread.start()
    yield found
    for thread in threads:
        thread.join(PATIENCE)


def meet(address, count):
    """Let all hosts of a run meet at an address; return what each gets."""
    with coming(*((Host(address, count, index), "r") for index in range(count))) as found:
        pass
    return found


@pytest.mark.parametrize(("last", "slept"), [(b"done\n", []), (b"", [45.0]), (b"don", [45.0])])
def test_the_process_outlives_a_first_host_that_did_not_say_it_was_done(monkeypatch, last, slept):
    address = f"127.0.0.1:{free_port()}"
    with run_main(monkeypatch, address, 3) as (end, printed, service):
        met_at = meet(address, 3)
        assert met_at[0].startswith("127.0.0.1:")
        assert met_at == met_at[:1] * 3
        assert service == [(met_at[0], 3)]
        assert end(last) == ([0], slept)
        assert printed.getvalue() == "\n"


def test_hosts_that_wait_in_vain_say_for_whom(monkeypatch, caplog):
    """In the log after a while, and in the error when their time is over."""
    clock = [0.0]
    monkeypatch.setattr(joining, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=time.sleep))
    caplog.set_level("INFO", logger=joining.log.name)
    with met(3) as hosts, coming(*((Host(hosts.address, 3, i), "r") for i in (0, 2)), deadline=60.0) as errors:
        while len(hosts.meeting.there) < 2:
            time.sleep(0.01)
        clock[0] = joining.QUIET + 1
        while caplog.text.count("(missing: 1)") < 2:
            time.sleep(0.01)
        clock[0] = 99.0
    words = f"did not meet all 3 hosts at {hosts.address} in time (missing: 1). Start each of them, with the same "
    assert [str(error) for error in errors] == [f"host {index} {words}address." for index in (0, 2)]


def test_if_the_first_host_ends_before_all_came_so_does_the_process(monkeypatch):
    with run_main(monkeypatch, f"127.0.0.1:{free_port()}", 3) as (end, _, _):
        assert end() == ([0], [])


def test_after_all_came_the_address_is_free_again(monkeypatch):
    port = free_port()
    with run_main(monkeypatch, f"127.0.0.1:{port}", 1) as (end, _, _):
        assert meet(f"127.0.0.1:{port}", 1)[0]
        with socket.create_server(("127.0.0.1", port)):
            pass
        end(b"done\n")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_everywhere_means_both_kinds_of_addresses(monkeypatch):
    port = free_port()
    with run_main(monkeypatch, f"[::]:{port}", 2) as (end, printed, service):
        assert meet(f"127.0.0.1:{port}", 2) == [f"127.0.0.1:{service[0][0].rsplit(':')[-1]}"] * 2
        assert end(b"done\n") == ([0], [])
        assert printed.getvalue() == "\n"


@pytest.mark.parametrize(("of", "versions"), [(3, None), (2, "another one")])
def test_hosts_that_do_not_fit_end_with_a_line_at_once(monkeypatch, of, versions):
    with met(2) as hosts:
        zero = hosts.host(0, versions="byhand 0 and jax 0")
        assert zero.hear() == {"missing": [1]}
        with pytest.raises(
            ConfigError,
            match=r"^the hosts do not match: host 1 .*\. Start all alike, each with its own number\.$",
        ) as error:
            joining._met(Host(hosts.address, of, 1), "r", later())
        assert "expects 3 hosts, but host 0 expects 2" in str(error.value) or "byhand 0 and jax 0" in str(error.value)
        assert "error" in zero.hear()


def test_a_host_whose_number_another_took_ends_with_a_line():
    with met(2) as hosts:
        with coming((Host(hosts.address, 2, 1), "r")) as errors:
            while 1 not in hosts.meeting.there:
                time.sleep(0.01)
            hosts.host(1, versions="any")
        line = "the hosts do not match: another process is host 1, too. Start all alike, each with its own number."
        assert [str(error) for error in errors] == [line]


def test_a_host_of_another_run_is_refused():
    with met(2) as hosts:
        with coming(*((Host(hosts.address, 2, i), run) for i, run in enumerate(("novel", "poem")))) as errors:
            pass
        assert all("for the run novel" in str(error) and "for the run poem" in str(error) for error in errors)


def test_no_proxy_stands_between_hosts(monkeypatch):
    monkeypatch.setenv("no_proxy", "example.org")
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    joining._past_proxies("[::1]")
    found = {name: value for name, value in os.environ.items() if name in ("no_proxy", "no_grpc_proxy")}
    assert found == {"no_proxy": "example.org,::1", "no_grpc_proxy": "::1"}
    monkeypatch.delenv("no_grpc_proxy")


def test_a_host_that_meets_nobody_in_time_says_why():
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(
        ConfigError, match=r"did not meet all 4 hosts at 127.0.0.1:\d+ in time \(nothing listens there\)"
    ):
        joining._met(Host(address, 4, 3), "r", time.monotonic() - 1)


@pytest.mark.parametrize("answer", [b"", b"220 mail\r\n"], ids=["silent", "mail"])
def test_what_listens_but_is_no_host_0_is_told_from_nothing(monkeypatch, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, clock = f"127.0.0.1:{server.getsockname()[1]}", [0.0]
        time = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda seconds: clock.__setitem__(0, 99.0))
        monkeypatch.setattr(joining, "time", time)

        def serve():
            connection, _ = server.accept()
            with connection, suppress(ConnectionError):
                connection.recv(LONGEST)
                connection.sendall(answer)
                clock[0] = 99.0
                connection.recv(1)  # until the other end gives up

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ConfigError, match=r"in time \(what listens there does not answer as host 0 does\)"):
            joining._met(Host(address, 2, 1), "r", 60.0)
        thread.join(PATIENCE)


STRANGERS = [b"", b"\n", b"220 mail\r\n", b"[1]\n", b"5\n", b"[" * 4000 + b"\n", b"{" * 5000]
STRANGERS += [b'{"port": "x"}\n', b'{"port": 0}\n', b'{"port": 65536}\n', b'{"port": -7}\n', b'{"port": null}\n']
STRANGERS += [b'{"missing": ["\\u001b[31m"]}\n']


@pytest.mark.parametrize("answer", STRANGERS, ids=lambda a: ascii(a[:20].decode()))
def test_a_host_that_meets_something_else_goes_on_looking(monkeypatch, answer):
    """The next one to listen there is the coordinator."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve():
            for said in (answer, b'{"missing": []}\n{"port": 7}\n'):
                connection, _ = server.accept()
                with connection, connection.makefile("rb") as file:
                    file.readline()
                    connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        assert joining._met(Host(address, 2, 1), "r", later()) == "127.0.0.1:7"
        thread.join(PATIENCE)


def test_a_port_in_use_gets_one_line():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            ConfigError, match=rf"^host 0 cannot listen at {address} \(.*in use.*\)\. Use another port"
        ) as e:
            joining._coordinator(Host(address, 2, 0), 60)
    assert str(e.value).isprintable()
    assert len(str(e.value)) < 400


def test_a_coordinator_that_cannot_begin_gets_one_line(monkeypatch):
    monkeypatch.setattr(coordinator, "__file__", os.devnull)
    with pytest.raises(
        ConfigError, match=r"cannot listen at 127.0.0.1:\d+ \(the coordinator ended\)\. Use another port"
    ):
        joining._coordinator(Host(f"127.0.0.1:{free_port()}", 2, 0), 60)


def test_the_process_itself_brings_hosts_together_and_ends_when_told():
    address = f"127.0.0.1:{free_port()}"
    service = joining._coordinator(Host(address, 2, 0), 60)
    try:
        met_at = meet(address, 2)
        assert met_at[0] == met_at[1]
        assert met_at[0] != address
        service.communicate(b"done\n", PATIENCE)
        assert service.returncode == 0
    finally:
        service.kill()
        service.communicate()
