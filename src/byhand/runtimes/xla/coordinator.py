"""Where the hosts meet: a process beside the first host, which outlives it so that the others learn of its end.

    python coordinator.py ADDRESS HOSTS LINGER

It listens at ADDRESS until all hosts have come, each with a line of JSON: its number, how many it expects, and its
versions. They hear who is missing, and at last the port of JAX's coordination service, or what is wrong. Then ADDRESS
is free again. JAX ends every process at once, with a trace, when its service is gone; so this one goes on for LINGER
seconds when the first host ends otherwise than by saying so.
"""

import json
import os
import selectors
import socket
import sys
import time
from typing import Any

LONGEST = 4096  # bytes of what a host says
FOR_EVER = 24 * 3600  # seconds


class Meeting:
    """Connections of hosts that wait for all others.

    server  listens where they come
    first   can be read when the first host ends
    """

    def __init__(self, server: socket.socket, count: int, first: Any) -> None:
        self.count = count
        self.there: dict[int, socket.socket] = {}  # by the host's number
        self.said: dict[socket.socket, bytes] = {}
        self.versions: dict[int, str] = {}
        self.wrong = ""
        self.selector = selectors.DefaultSelector()
        for source in (server, first):
            self.selector.register(source, selectors.EVENT_READ)
        server.setblocking(False)
        self.server, self.first = server, first

    def wait(self) -> bool:
        """Return whether all came; False if the first host ended before, perhaps since they do not fit together."""
        while len(self.there) < self.count or self.wrong:
            for key, _ in self.selector.select():
                if key.fileobj is self.first:
                    return False
                if key.fileobj is self.server:
                    self.accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self.said:
                    self.hear(key.fileobj)
        return True

    def accept(self) -> None:
        """Accept a connection; one that cannot be accepted has left already, or silent ones hold all descriptors."""
        try:
            connection, _ = self.server.accept()
        except OSError:
            for stranger in set(self.said) - set(self.there.values()):
                self.forget(stranger)
            return
        connection.setblocking(False)
        self.said[connection] = b""
        self.selector.register(connection, selectors.EVENT_READ)

    def hear(self, connection: socket.socket) -> None:
        """Read what a host says; one that leaves, or says nothing sensible, is forgotten."""
        try:
            self.said[connection] += (read := connection.recv(LONGEST))
            if not read or len(self.said[connection]) > LONGEST:
                raise ValueError
            if self.said[connection].endswith(b"\n"):
                host = json.loads(self.said[connection])
                self.welcome(connection, int(host["host"]), int(host["of"]), str(host["versions"])[:200])
        except BlockingIOError:
            return
        except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
            self.forget(connection)

    def forget(self, connection: socket.socket) -> None:
        """Close a connection."""
        self.selector.unregister(connection)
        self.there = {i: c for i, c in self.there.items() if c is not connection}
        del self.said[connection]
        connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self.said]:
            self.forget(connection)
        self.selector.close()

    def welcome(self, connection: socket.socket, index: int, count: int, versions: str) -> None:
        """Take a host in, in place of one with its number that came before."""
        before = self.there.get(index)
        if before and before is not connection:
            self.tell({"error": f"another process is host {index}, too"}, before)
        others = [i for i in self.there if i != index and self.versions[i] != versions]
        if count != self.count or not 0 <= index < count:
            self.wrong = f"host {index} expects {count} hosts, but host 0 expects {self.count}"
        elif others:
            self.wrong = f"host {index} has {versions}, host {others[0]} {self.versions[others[0]]}"
        self.there[index], self.versions[index] = connection, versions
        missing = sorted(set(range(self.count)) - set(self.there))[:10]
        self.tell({"error": self.wrong[:500]} if self.wrong else {"missing": missing}, *self.there.values())

    def tell(self, what: dict[str, object], *whom: socket.socket) -> None:
        """Say something to hosts."""
        for connection in whom:
            try:
                connection.settimeout(1)
                connection.sendall(json.dumps(what).encode() + b"\n")
            except OSError:  # it has left, or does not listen: `hear` will notice
                pass
            connection.setblocking(False)


def main(address: str, count: int, linger: float) -> int:
    """Let the hosts meet, then run JAX's service for them; return the exit code."""
    # JAX offers the service only inside of the first host.
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    host, port = address.rsplit(":", 1)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        name, both = host.strip("[]"), host == "[::]"
        with socket.create_server((name, int(port)), family=family, backlog=count, dualstack_ipv6=both) as server:
            with socket.create_server((name, 0), family=family) as free:
                inner = free.getsockname()[1]
            service = _jax.get_distributed_runtime_service(
                f"{host}:{inner}", count, heartbeat_timeout=FOR_EVER, shutdown_timeout=60
            )
            print(flush=True)
            meeting = Meeting(server, count, sys.stdin)
            if not meeting.wait():
                return 0
        meeting.tell({"port": inner}, *meeting.there.values())
        meeting.close()
    except Exception as error:
        print(" ".join(str(error).split()), flush=True)
        return 2
    if sys.stdin.readline() != "done\n":  # the first host ended otherwise
        time.sleep(linger)
    del service
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
