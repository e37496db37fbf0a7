"""The coordinator: a process next to the first host, where all hosts meet; it outlives the first host.

    python coordinator.py ADDRESS HOSTS LINGER

It listens at ADDRESS until all hosts have connected. Each sends a line of JSON: its number, the number of hosts it
expects, and its versions. The coordinator answers with the missing hosts, and finally with the port of JAX's
coordination service, or with an error. Then it releases ADDRESS. Without the service, JAX ends every process at once
with a trace; so if the first host ends without "done", the coordinator stays LINGER seconds, long enough for the
others to notice.
"""

import json
import os
import selectors
import socket
import sys
import time
from typing import Any

LONGEST = 4096  # bytes of a host's message
FOR_EVER = 24 * 3600  # seconds


class Meeting:
    """The rendezvous: connections of the hosts that are waiting.

    server  the listening socket
    first   the first host's pipe: readable when that host ends
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
        """Return True once all hosts have connected; False if the first one ends before, such as after an error."""
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
        """Accept a connection. On failure it is gone, or silent ones use up the descriptors: drop those."""
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
        """Read from a host; drop the connection if it ends or sends no valid message."""
        try:
            self.said[connection] += (read := connection.recv(LONGEST))
            if not read or len(self.said[connection]) > LONGEST:
                raise ValueError
            if self.said[connection].endswith(b"\n"):
                said = json.loads(self.said[connection])
                index, count, versions = said["host"], said["of"], said["versions"]
                if not (type(index) is type(count) is int and isinstance(versions, str) and 0 <= index < count):
                    raise ValueError  # impossible for any host: a stranger
                self.welcome(connection, index, count, versions[:200])
        except BlockingIOError:
            return
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
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
        """Register a host, replacing an earlier one with its number, and tell all which are missing."""
        before = self.there.get(index)
        if before and before is not connection:
            self.tell({"error": f"another process is host {index}, too"}, before)
        others = [i for i in self.there if i != index and self.versions[i] != versions]
        if count != self.count:
            self.wrong = f"host {index} expects {count} hosts, but host 0 expects {self.count}"
        elif others:
            self.wrong = f"host {index} has {versions}, host {others[0]} {self.versions[others[0]]}"
        self.there[index], self.versions[index] = connection, versions
        missing = sorted(set(range(self.count)) - set(self.there))[:10]
        self.tell({"error": self.wrong[:500]} if self.wrong else {"missing": missing}, *self.there.values())

    def tell(self, what: dict[str, object], *whom: socket.socket) -> None:
        """Send a message to hosts."""
        for connection in whom:
            try:
                connection.settimeout(1)
                connection.sendall(json.dumps(what).encode() + b"\n")
            except OSError:  # it is gone or does not read: `hear` will notice
                pass
            connection.setblocking(False)


def main(address: str, count: int, linger: float) -> int:
    """Let the hosts meet, then run JAX's service for them; return the exit code."""
    # JAX's public API runs this service only inside the first host.
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
    if sys.stdin.readline() != "done\n":  # the first host was lost
        time.sleep(linger)
    del service
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
