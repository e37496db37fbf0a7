"""A signal ends a command at once, wherever it is; a loop that asks first ends its step."""

import os
import signal
import subprocess
import sys

import pytest

from byhand.cli.terminal import interrupts
from cli.process import PATIENCE, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no signals to one process")

# The signal comes from inside an import, where importlib and C code drop exceptions; then the import never ends, and
# Python would not end well.
INSIDE_AN_IMPORT = """
import atexit, os, signal, sys, time
class At:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            try:
                os.kill(os.getpid(), number)
                time.sleep(600)
            except BaseException:
                pass
program, module, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
del sys.argv[1:4]
sys.meta_path.insert(0, At())
atexit.register(os.abort)
import byhand.__main__
sys.exit(getattr(byhand.__main__, program)())
"""


def python(code: str, *arguments: str) -> tuple[int, bytes]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        timeout=PATIENCE,
        env=environment(),
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("program", "module", "number"),
    [
        ("main", "byhand.cli.main", signal.SIGINT),
        ("main", "numpy._core.multiarray", signal.SIGTERM),
        ("main", "secrets", signal.SIGTERM),  # in the middle of the import of `writing`
        ("train_gpt", "byhand.cli.seed.train_gpt_flags", signal.SIGHUP),
    ],
)
def test_while_something_is_imported(program, module, number):
    arguments = ["explain", "nothing", "x"] if program == "main" else ["--load", "nothing"]
    assert python(INSIDE_AN_IMPORT, program, module, str(int(number)), *arguments) == (
        128 + number,
        b"interrupted\n",
    )


def test_while_python_ends():
    code = (
        "import atexit, os, signal, sys\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "from byhand.__main__ import main\n"
        "sys.exit(main())"
    )
    assert python(code, "--version") == (-signal.SIGINT, b"")


def test_without_a_thread_a_signal_ends_the_process_itself():
    code = (
        "import os, signal, sys, threading\n"
        "def refuse(thread):\n"
        "    raise RuntimeError\n"
        "threading.Thread.start = refuse\n"
        "from byhand.cli import main as program\n"
        "program._command = lambda arguments: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from byhand.__main__ import main\n"
        "sys.exit(main())"
    )
    assert python(code, "--version") == (-signal.SIGTERM, b"")


# A step that never ends, in a run of its own runtime; what is to be done last takes for ever as well.
STEPS = """
import sys, threading, time
from byhand.cli.terminal import ending, interrupts
interrupts.CLOSING, interrupts.MOMENT = 0.01, 600.0
interrupts.receive()
with interrupts.at_the_end(lambda: "at last"), interrupts.at_the_end(lambda: time.sleep(600)):
    with interrupts.StopRequest() as stop:
        print("a step", file=sys.stderr, flush=True)
        while True:
            time.sleep(0.001)
            if stop.signal and sys.argv[1] == "stops":
                break
    sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize("what", ["stops", "goes on"])
def test_a_step_ends_first_and_the_second_signal_ends_all(what):
    with subprocess.Popen([sys.executable, "-c", STEPS, what], stderr=subprocess.PIPE) as process:
        assert process.stderr
        assert process.stderr.readline() == b"a step\n"
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline() == b"\n"
        assert b"stopping after this step, then saving" in process.stderr.readline()
        if what == "goes on":
            process.send_signal(signal.SIGTERM)  # at the same moment: it ends nothing
            process.send_signal(signal.SIGHUP)
        said = process.stderr.read()
    assert process.wait(PATIENCE) == 128 + (signal.SIGTERM if what == "stops" else signal.SIGHUP)
    assert said == (b"" if what == "stops" else b"\ninterrupted\n")


@pytest.mark.parametrize(
    ("came", "taken"),
    [
        ([(signal.SIGINT, 0.0), (signal.SIGINT, 0.0), (signal.SIGINT, 0.0)], [True, True, False]),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, interrupts.MOMENT)], [True, False]),
        ([(signal.SIGINT, 0.0), (signal.SIGTERM, 0.0)], [True, False]),
    ],
)
def test_the_same_signal_at_the_same_moment_is_one(came, taken, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(interrupts, "monotonic", lambda: clock[0])
    request, found = interrupts.StopRequest(), list[bool]()
    for number, clock[0] in came:
        found.append(request.take(number))
    assert found == taken


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_writes_leaves_nothing_half(tmp_path, number):
    """The process stops itself in the middle of the file: what is written so far has not its name."""
    code = (
        "import os, sys\n"
        "from byhand.files import writing\n"
        "number = int(sys.argv.pop())\n"
        "def slow(descriptor, content, write=writing._write):\n"
        "    write(descriptor, content[: len(content) // 2])\n"
        "    os.kill(os.getpid(), number)\n"
        "    os.read(os.pipe()[0], 1)  # hangs\n"
        "writing._write = slow\n"
        "from byhand.__main__ import main\n"
        "sys.exit(main())"
    )
    (tmp_path / "text").write_bytes(b"the quick brown fox " * 40)
    out = tmp_path / "tokens.json"
    arguments = ["tokenizer", "train", str(tmp_path / "text"), "--vocab-size", "260", "--out", str(out)]
    code, said = python(code, *arguments, str(int(number)))
    assert (code, said.splitlines()[-1]) == (128 + number, b"interrupted")
    assert os.listdir(tmp_path) == ["text"]


# The main thread fails because of what is done before the end, such as taking back the file that it writes.
FAILS = """
import os, signal, sys, threading
from byhand.cli.terminal import interrupts
from byhand.cli.terminal.guard import guarded
from byhand.errors import ByhandError
interrupts.receive()
begun = threading.Event()
def command():
    with interrupts.at_the_end(lambda: begun.set() or threading.Event().wait(0.2)):
        os.kill(os.getpid(), signal.SIGTERM)
        begun.wait()
        raise ByhandError("cannot write")
sys.exit(guarded(command))
"""


def test_what_fails_because_of_the_end_is_not_said():
    assert python(FAILS) == (128 + signal.SIGTERM, b"interrupted\n")
