"""Renders an untrusted chat template as transformers does.

Jinja's sandbox keeps it from attributes with an underscore, from files and from changing its values. It runs in a
process of its own (`rendering.py`), which ends if a text takes longer than `SECONDS` and gets at most `MEMORY` (on
Linux; other systems do not limit it). One process serves all templates of a program.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib.util import find_spec
from io import BufferedReader, BufferedWriter
from pathlib import Path

from byhand.conversations import rendering
from byhand.conversations.messages import OURS
from byhand.conversations.rendering import WRITTEN
from byhand.errors import DataError, brief

NEEDED = ("jinja2", "markupsafe")  # by the process; they may lie in two folders
SECONDS = 5.0  # a conversation takes a thousandth
Cut = tuple[int, bool]  # how many messages, and whether the assistant is to answer


class Refused(DataError):
    """A template refuses these messages."""


class Template:
    """A template, compiled on first use. DataError in one line if it is not valid, or Jinja is not installed.

    source  Jinja
    tells   it marks what the assistant generates: `{% generation %}` … `{% endgeneration %}`
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        if any(mark in source for mark in OURS):
            raise DataError("the chat template holds a noncharacter of Unicode. Use another model.")
        self.source, self.tells = source, "endgeneration" in source
        now = datetime.now().isoformat()  # a template sees one time as long as it lives
        self._fixed = {"source": source, "values": dict(tokens), "now": now}

    def __call__(self, messages: Sequence[Mapping[str, str]], prompt: bool = False) -> str:
        """Return the text of messages; with `prompt` up to where the assistant begins to answer.

        Text marked as generated stands between `OPEN` and `CLOSE`. Refused if the template refuses the messages.
        """
        return self.places(messages, (), prompt)[0]

    def places(
        self, messages: Sequence[Mapping[str, str]], cuts: Iterable[Cut], prompt: bool = False
    ) -> tuple[str, list[int]]:
        """Return the text, and the offset at which each cut's text ends in it; -1 if it does not begin with that."""
        request = {**self._fixed, "messages": messages, "prompt": prompt, "cuts": list(cuts), "seconds": SECONDS}
        kind, content, places = _PROCESS.ask(
            json.dumps(request, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
        )
        if kind == "text":
            try:
                return content.decode(), json.loads(places)
            except UnicodeDecodeError:
                kind, content = "refused", b"what it writes is no Unicode text"
        why = brief(ValueError(content.decode(errors="replace")), 200)
        if kind == "refused":
            raise Refused(f"the model's chat template refuses a conversation: {why}.")
        raise DataError(f"the model's chat template cannot be used: {why}.")


class _Process:
    """The rendering process, started when needed, and again after it has ended."""

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), None

    def ask(self, request: bytes) -> tuple[str, bytes, bytes]:
        """Return the result of `rendering.answer`, or that the process has ended."""
        with self._lock:
            try:
                process = self._started()
                assert process.stdin
                assert process.stdout
                with suppress(OSError):  # it has ended
                    process.stdin.write(request)
                    process.stdin.flush()
                kind, _, size = process.stdout.readline(64).decode().partition(" ")
                if size and int(size) <= 4 * WRITTEN:
                    return kind, process.stdout.read(int(size)), process.stdout.readline(4 * WRITTEN)
                late = not size and process.wait() == 1
                self.stop()
                why = f"does not end within {SECONDS:g} seconds" if late else "breaks the process that renders it"
                return "unusable", f"it {why}".encode(), b""
            except BaseException:  # half an answer may be in the pipe
                self.stop()
                raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._running and self._running.poll() is not None:
            self.stop()
        if not self._running:
            found = [spec.origin for name in NEEDED if (spec := find_spec(name)) and spec.origin]
            if len(found) < len(NEEDED):
                raise DataError("the model's chat template is rendered by Jinja. Use pip install 'byhand[chat]'.")
            self._running = subprocess.Popen(
                [sys.executable, "-I", "-S", rendering.__file__, *(str(Path(place).parents[1]) for place in found)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )  # fmt: skip  (keeps Ctrl-C from it)
        return self._running

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self._running = self._running, None
        if process:
            process.kill()
            _close(process)
            process.wait()

    def forget(self) -> None:
        """Leave the process to the parent from which this one was forked."""
        if process := self._running:
            _close(process)
            process.returncode = 0  # nobody waits for it here
        self.__init__()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert isinstance(pipe, BufferedReader | BufferedWriter)
        pipe.raw.close()  # discards what it still buffers


_PROCESS = _Process()
atexit.register(_PROCESS.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.forget)
