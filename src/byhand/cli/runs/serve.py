"""`byhand serve`: a model behind OpenAI's endpoints, for other programs on this machine or beyond."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byhand.cli.arguments.parsing import Given, parse
from byhand.cli.arguments.settings import Positional, Repeated, Switch
from byhand.cli.learn import explain
from byhand.cli.runs.sample import MOST_STREAMS, drawable
from byhand.cli.terminal.interrupts import StopRequest
from byhand.cli.terminal.say import say
from byhand.config_checks import at_least, at_most
from byhand.errors import ConfigError, install, reason
from byhand.files import run_folder
from byhand.formats.names import Weights
from byhand.generation import Engine
from byhand.interop import exchange
from byhand.memory import require_room
from byhand.runs.contents import Checkpoint
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import offered

if TYPE_CHECKING:
    from byhand.serving.guard import Access, Guard
    from byhand.serving.limits import Limits
    from byhand.serving.served import Served

KEY = "BYHAND_API_KEY"
SHORTEST_KEY, LONGEST_KEY = 8, 512


@dataclass(frozen=True)
class Listening:
    """Where a server listens, and who may ask it."""

    host: str = "127.0.0.1"
    """Address to listen at; 0.0.0.0 lets other machines in, and needs a key."""
    port: int = 8000
    """Port; 0 takes a free one."""
    api_key: str = ""
    """Key that requests must have; rather set BYHAND_API_KEY, which other users of the machine do not see."""
    allow_host: Repeated[str] = ()
    """Another name by which clients reach this server. Repeat it for several."""
    allow_origin: Repeated[str] = ()
    """A page of another server that may ask, such as http://localhost:3000. Repeat it for several."""

    def __post_init__(self) -> None:
        at_least(self, 0, "port")
        if self.port > 65535:
            raise ConfigError(f"port is {self.port}, but can be at most 65535. Use 8000.")


@dataclass(frozen=True)
class Options:
    """Serve a model at OpenAI's endpoints: /v1/completions, /v1/chat/completions, /v1/models.

    Programs on this machine reach it at http://127.0.0.1:8000/v1; Ctrl-C stops it when the answers that have begun
    are finished.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    where: Listening = field(default_factory=Listening)
    name: str = ""
    """The model's id; its folder's name unless given."""
    streams: int = 8
    """How many texts are continued side by side; others wait."""
    queue: int = 256
    """How many texts may wait; more are refused, to be sent again later."""
    timeout: float = 600.0
    """Seconds that a request may take."""
    watch: Switch = False
    """Serve each newer checkpoint of the run, without dropping requests."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 reads half as much; q8_0 and q4_0 (blocks of 8 and 4 bits) a quarter and an eighth, at some loss."""
    threads: int = 0
    """Threads of the loops runtime; 0 uses all cores."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""

    def __post_init__(self) -> None:
        at_least(self, 0, "threads")
        at_least(self, 1, "streams", "queue")
        at_most(self)
        if self.streams > MOST_STREAMS:
            raise ConfigError(f"streams is {self.streams}, but can be at most {MOST_STREAMS}. Use 8.")
        if not 1 <= self.timeout <= 86400:
            raise ConfigError(f"timeout is {self.timeout:g}, but must be between 1 and 86400 seconds. Use 600.")


class Finishing(StopRequest):
    """In the `with` block the first signal lets the server finish, the next one ends the process."""

    words = "stopping when the answers that have begun are finished; press Ctrl-C again to stop now"

    def __init__(self, server: Any) -> None:
        super().__init__()
        self._server = server

    def take(self, number: int) -> bool:
        """Take a signal."""
        self._server.should_exit = True
        return super().take(number)


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand serve")
    with needing("byhand serve"):
        from byhand.serving.app import application
        from byhand.serving.limits import Limits
        from byhand.serving.service import Service
    limits = Limits(slots=options.streams, queue=options.queue, seconds=options.timeout)
    name = ""

    def app(access: Access) -> Guard:
        nonlocal name
        served = _served(options)
        name = served.name
        newer = _newer(options) if options.watch else None
        return application(Service(served, Explanations(options), newer, limits), access)

    return run(options.where, limits, app, lambda address: say(f"serving {name} at {address}/v1 (Ctrl-C stops)"))


@contextmanager
def needing(command: str) -> Iterator[None]:
    """Say in one line which package is missing."""
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] == "byhand":
            raise
        raise ConfigError(f"{command} needs {error.name}. {install('serve')} brings it.") from None


def run(
    where: Listening, limits: Limits, application: Callable[[Access], Guard], begun: Callable[[str], None]
) -> int:
    """Serve an application until a signal comes.

    application  for who may ask; it is made when the socket is there
    begun        is called with the server's address as soon as it answers
    """
    from byhand.serving.connections import Server
    from byhand.serving.guard import Access

    key = _key(where)
    listening = _listening(where, bool(key))
    host, port = listening.getsockname()[:2]
    hosts = {name.lower() for name in (where.host, *where.allow_host)}
    if not _is_local(host):
        hosts.add(socket.gethostname().lower())
    shown = f"[{host}]" if ":" in host else host
    app = application(Access(key, frozenset(hosts), frozenset(where.allow_origin)))
    server = Server(app, limits, lambda: begun(f"http://{shown}:{port}"))
    with listening, Finishing(server):
        server.run([listening])
    return 0


def _key(options: Listening) -> str:
    key = options.api_key or os.environ.get(KEY, "")
    if key and not (
        SHORTEST_KEY <= len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key
    ):
        raise ConfigError(
            f"the API key must have {SHORTEST_KEY} to {LONGEST_KEY} printable characters of ASCII, without a space."
        )
    return key


def _listening(options: Listening, has_key: bool) -> socket.socket:
    """Return a socket that listens; ConfigError if there is none, or if other machines could ask without a key."""
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        if not _is_local(str(address[0])) and not has_key:
            raise ConfigError(f"--host {options.host} lets other machines in. Set a key, in {KEY} or with --api-key.")
        found = socket.socket(family, kind)
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except (OSError, UnicodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a host's name"
        raise ConfigError(
            f"cannot listen at {options.host}, port {options.port}: {why}. "
            "Use --port 0 for a free one, or another --host."
        ) from None
    return found


def _is_local(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def _served(options: Options) -> Served:
    return served_by(options, exchange.model(options.run))


def served_by(options: Options, loaded: Checkpoint) -> Served:
    """Return the model with its engine; ConfigError if it does not fit into the memory."""
    from byhand.serving.served import Served

    model = loaded.model(not options.last).merged()
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    how: Any = {"runtime": options.runtime, "weights": options.weights, "threads": options.threads}
    request = Request("generate", model.config, dtype=str(model.dtype), streams=options.streams, **how)
    require_room("the server", request, "Use fewer --streams, or a smaller model.")
    tokenizer, allowed = loaded.tokenizer, drawable(False, loaded)
    loaded.forget()
    engine = Engine(model, options.streams, **how, moves=True, queue=options.queue)
    if engine.choice.why:
        say(f"runtime {engine.choice.runtime.name}: {engine.choice.why}")
    return Served(
        options.name or _name(options.run), _version(loaded), model.config, tokenizer, loaded.ends, allowed, engine,
        command=_command(options),
    )  # fmt: skip


def _command(options: Options) -> str:
    """Return the command that chats with the same model; other machines do not see where it is."""
    from byhand.serving.guard import LOCAL

    if options.where.host not in LOCAL:
        return ""
    weights = ["--weights", options.weights] if options.weights != "float32" else []
    return shlex.join(["byhand", "chat", str(options.run), *weights, *(["--last"] if options.last else [])])


def _name(path: Path) -> str:
    folder = run_folder.run_of(path).resolve()
    return folder.stem if folder.suffix in run_folder.FOREIGN else folder.name


def _version(loaded: Checkpoint) -> str:
    return run_folder.name_of(loaded.step)


def _newer(options: Options) -> Callable[[Served], Served | None]:
    """Return what reads the model of a newer checkpoint, if there is one: once, unless its files have changed."""
    tried: list[Any] = []

    def read(served: Served) -> Served | None:
        nonlocal tried
        listed = run_folder.checkpoints(options.run)
        if not listed or listed[0].name <= served.version:
            return None
        before, tried = tried, sorted((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in listed[0].iterdir())
        found = None if tried == before else _served(options)
        return found if found and found.version > served.version else None  # not one that a broken one stands before

    return read


class Explanations:
    """The answers of `byhand explain --json` about the model that is served. It is read once; its last pass is kept.

    Called with None instead of settings, it forgets them.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._passes = options, explain.Passes()

    def __call__(self, version: str, values: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return an answer about a version of the model."""
        if values is None:
            self._passes = explain.Passes()
            return {}
        run, checkpoint = self._options.run, self._options.run / version
        given = {"run": checkpoint if checkpoint.is_dir() else run, "last": self._options.last, **values}
        _, _, found = explain.explained(Given(explain.Options, "explain", given, False), self._passes)
        assert found  # `target` is never empty
        return found.as_json(values.get("terms"))  # all would be 100 MB where a sum goes over a large vocabulary
