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

LONGEST = 4096  # bytes of what a host says
FOR_EVER = 24 * 3600  # seconds


class Meeting:
    """Connections of hosts that wait for all others."""

    def __init__(self, server: socket.socket, count: int) -> None:
        self.count = count
        self.there: dict[int, socket.socket] = {}  # by the host's number
        self.said: dict[socket.socket, bytes] = {}
        self.versions = ""
        self.wrong = ""
        self.selector = selectors.DefaultSelector()
        for source in (server, sys.stdin):
            self.selector.register(source, selectors.EVENT_READ)
        self.server = server

    def wait(self) -> bool:
        """Return whether all came; False if the first host ended before."""
        while len(self.there) < self.count and not self.wrong:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    return False
                if key.fileobj is self.server:
                    connection, _ = self.server.accept()
                    connection.setblocking(False)
                    self.said[connection] = b""
                    self.selector.register(connection, selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket):
                    self.hear(key.fileobj)
        return True

    def hear(self, connection: socket.socket) -> None:
        """Read what a host says; one that leaves, or says nothing sensible, is forgotten."""
        try:
            self.said[connection] += (read := connection.recv(LONGEST))
            whole = self.said[connection].endswith(b"\n")
            if not read or len(self.said[connection]) > LONGEST:
                raise ValueError
            host = json.loads(self.said[connection]) if whole else None
            if host:
                self.welcome(connection, int(host["host"]), int(host["of"]), str(host["versions"]))
        except (OSError, ValueError, KeyError, TypeError):
            self.selector.unregister(connection)
            self.there = {i: c for i, c in self.there.items() if c is not connection}
            del self.said[connection]
            connection.close()

    def welcome(self, connection: socket.socket, index: int, count: int, versions: str) -> None:
        """Take a host in, in place of one with its number that came before."""
        self.versions = self.versions or versions
        if count != self.count or not 0 <= index < count:
            self.wrong = f"host {index} expects {count} hosts, but host 0 expects {self.count}"
        elif versions != self.versions:
            self.wrong = f"host {index} has {versions}, another one {self.versions}"
        self.there[index] = connection
        self.tell({"missing": sorted(set(range(self.count)) - set(self.there))[:10]})

    def tell(self, what: dict[str, object]) -> None:
        """Say something to all hosts that are there."""
        for connection in self.there.values():
            try:
                connection.setblocking(True)
                connection.sendall(json.dumps(what).encode() + b"\n")
                connection.setblocking(False)
            except OSError:  # it has left: `hear` will notice
                continue


def main(address: str, count: int, linger: float) -> int:
    """Let the hosts meet, then run JAX's service for them; return the exit code."""
    # JAX offers the service only inside of the first host.
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    host, port = address.rsplit(":", 1)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), int(port)), family=family, backlog=count) as server:
            with socket.create_server((host.strip("[]"), 0), family=family) as free:
                inner = free.getsockname()[1]
            service = _jax.get_distributed_runtime_service(
                f"{host}:{inner}", count, heartbeat_timeout=FOR_EVER, shutdown_timeout=60
            )
            print(flush=True)
            meeting = Meeting(server, count)
            if not meeting.wait():
                return 0
        meeting.tell({"error": meeting.wrong} if meeting.wrong else {"port": inner})
    except Exception as error:
        print(" ".join(str(error).split()), flush=True)
        return 2
    if sys.stdin.readline() != "done\n":  # the first host ended otherwise
        time.sleep(linger)
    del service
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
