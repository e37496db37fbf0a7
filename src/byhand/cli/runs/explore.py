"""`byhand explore [MODEL]`: every number of a model, in the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byhand.book.port.theirs import opened
from byhand.cli.arguments.parsing import Given, parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.runs import serve, train
from byhand.cli.terminal import clock
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.corpus.texts import MEMORY
from byhand.errors import ConfigError, command
from byhand.host import multiply_on_one_core
from byhand.interop import exchange

if TYPE_CHECKING:
    from byhand.exploring.view import Subject
    from byhand.runs.run import Pace, Run
    from byhand.serving.explorer import Explorer
    from byhand.serving.guard import Access, Guard


@dataclass(frozen=True)
class Screen(serve.Listening):
    """Where the page is, and who may look at it."""

    port: int = 8010
    """Port; 0 takes a free one."""


@dataclass(frozen=True)
class Options:
    """Look at every number of a model in the browser: the arithmetic behind it, its derivative, its code.

    Ctrl-C stops it. Without a model, it shows the GPT of the lessons paper-gpt and kv-cache.
    """

    run: Positional[Path | None] = None
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2; or a lesson that works
    a GPT: paper-gpt (also paper), kv-cache, post-norm."""
    prompt: str = ""
    """The text that the model reads first; the page can change it."""
    next: str = ""
    """The text that follows it, whose first token the loss expects last."""
    where: Screen = field(default_factory=Screen)
    static: Path | None = None
    """Write a page that needs no server into this folder instead, of a model that is small enough."""
    compare_with: Path | None = None
    """Arrays of a port of this model: a folder of .npy files, an .npz or a .safetensors; the first that
    differs lights."""
    no_browser: Switch = False
    """Only say the address."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand explore")
    with serve.needing("byhand explore"):
        from byhand.serving.app import application
        from byhand.serving.explorer import Explorer
        from byhand.serving.limits import Limits
        from byhand.serving.train import Trainings
    limits = Limits(slots=2)
    theirs = opened(options.compare_with) if options.compare_with else None
    hash_ = "#/?vs=theirs&metric=differs" if theirs else ""
    if options.static and theirs:
        raise ConfigError("a page without a server compares with nothing. Leave out --static or --compare-with.")
    if options.static:
        return _written(options.static, Explorer(*_texts(options, limits)[:3]))

    def app(access: Access) -> Guard:
        multiply_on_one_core()
        subject, prompt, after, service = _texts(options, limits)
        explorer = Explorer(subject, prompt, after, limits)
        explorer.theirs = theirs
        Trainings(explorer, _training)
        return application(service, access, explorer)

    def begun(address: str) -> None:
        page = f"{address}/explore{hash_}"
        say(f"exploring at {page} (Ctrl-C stops)")
        if not options.no_browser and not webbrowser.open(page):
            say("no browser opened. Open that address yourself.")

    return serve.run(options.where, limits, app, begun)


def _written(folder: Path, explorer: Explorer) -> int:
    """Write the page without a server."""
    from byhand.exploring import static

    view = explorer.view(explorer.subject, explorer.prompt, explorer.next)
    count = static.write(view, folder, explorer.prompt, explorer.next)
    look = command("python", "-m", "http.server", "--directory", folder)
    show(f"wrote {shown(folder)}: {count:,} numbers. Look at it with: {shown(look)}")
    return 0


def _texts(options: Options, limits: Any) -> tuple[Subject, str, str, Any]:
    """Return the model to look at, the text that comes first and what follows it, and the chat page's service."""
    run = options.run or Path("paper")
    lesson = None if options.run and exists(run) else _of_lesson(str(run))
    subject, prompt, after, service = lesson or _read(run, options, limits)
    return subject, options.prompt or prompt, options.next or ("" if options.prompt else after), service


@contextmanager
def _training(settings: Mapping[str, Any], text: str) -> Iterator[tuple[Run, Pace | None]]:
    """Begin the run that `byhand train` begins with these settings on a text."""
    clock.start()  # the minutes are those of the run
    given = Given(train.Options, "explore", {**settings, "data": MEMORY}, False)
    with train.opened(given, text) as (run, promise):
        yield run, promise and promise.pace


def _of_lesson(name: str) -> tuple[Subject, str, str, None] | None:
    """Return the GPT of the lesson of this name, its text and what follows; None for a model of another kind."""
    from byhand.book.finding.search import index
    from byhand.book.lessons.examples import TITLES
    from byhand.exploring import paper

    if model := paper.of_lesson(name):
        return *model, None
    if name in TITLES:
        (lesson,) = (found for found in index().findings() if found.name == f"work {name}")
        pages = " and ".join(f"docs/{page}.md" for page in lesson.see)
        live = f"; on the site, in {pages}, with your numbers too" if pages else ""
        raise ConfigError(f"the lesson {name} has no GPT to explore. Work it with `{lesson.command}`{live}.")
    return None


def _read(run: Path, options: Options, limits: Any) -> tuple[Subject, str, str, Any]:
    """Return a model to look at, a text, and the same model for the chat page, on the same weights."""
    from byhand.exploring.view import Subject
    from byhand.serving.service import Service

    loaded = exchange.model(run, unread=False)
    if wrong := loaded.first_non_finite():
        raise ConfigError(f"{wrong} of this model is not finite. Use an earlier checkpoint of the run.")
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    model, tokenizer = loaded.model(not options.last), loaded.tokenizer
    served = serve.Options(run, last=options.last, streams=limits.slots, runtime="numpy")
    service = Service(serve.served_by(served, loaded), serve.Explanations(served), limits=limits)
    step = None if exchange.IMPORTED in loaded.state and not loaded.step else loaded.step
    subject = Subject(service.served.name, step, model, tokenizer.encode, tokenizer.token_bytes, tokenizer.unit)
    return subject, "To be", "", service
