"""Templates of others: bounded, and refused in one line."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from byhand.conversations import sandbox
from byhand.conversations.sandbox import Template
from byhand.errors import DataError

pytest.importorskip("jinja2")
MESSAGES = [{"role": "user", "content": "abc"}]
MEMORY = "more than 512 MB of memory"
HOSTILE = {
    "{% if %}": "cannot be used",
    "{{ messages[7].content.x }}": "refuses a conversation",
    "{{ raise_exception('not so') }}": "not so",
    "{{ ''.__class__.__mro__ }}": "unsafe|undefined",
    "{{ messages.append(1) }}": "unsafe|not safely",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "recursion",
    "{{ range(100000000) }}": "Range too big",
    "{% for a in range(999) %}{{ 'a' * 99999 }}{% endfor %}": "writes more than",
    "{% include '/etc/passwd' %}": "refuses",
    "{{ '\\ud800' }}": "no Unicode text",
    "\ufdd0": "noncharacter",
}
LARGE = (  # texts of a thousand MB and more
    "{{ 'a' * 1000000000 }}", "{{ 'a' | center(1000000000) }}", "{{ '%0999999999d' % 1 }}",
    "{{ ('a' * 50000).replace('a', 'b' * 20000) | length }}",
    "{% set n = namespace(x='a' * 999) %}{% for i in range(27) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
)  # fmt: skip
ENDLESS = (
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% set x = [1] * 99999 %}{{ ([x] * 99999) == ([[1] * 99999] * 99999) }}",  # in C
    "{% set n = namespace(x=1) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ raise_exception(n.x) }}",
)


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_template_ends_in_one_line(source):
    with pytest.raises(DataError, match=HOSTILE[source]) as caught:
        Template(source, {})(MESSAGES)
    assert "\n" not in str(caught.value)


def test_what_ordinary_templates_use_works():
    source = (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 7 %}{{ m | tojson }}{% endfor %}"
        "{{ ns.n % 4 }}{{ '-' * 3 }}{{ bos_token }}"
    )
    assert Template(source, {"bos_token": "<s>"})(MESSAGES) == '{"role": "user", "content": "abc"}3---<s>'


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of a process")
@pytest.mark.parametrize("source", LARGE)
def test_a_template_gets_little_memory(source):
    with pytest.raises(DataError, match=MEMORY):
        Template(source, {})(MESSAGES)


@pytest.mark.parametrize("source", ENDLESS)
def test_a_template_that_does_not_end_is_ended(source, monkeypatch):
    monkeypatch.setattr("byhand.conversations.sandbox.SECONDS", 0.2)
    endless, other = Template(source, {}), Template("{{ messages | length }}", {})
    with pytest.raises(DataError, match=r"does not end within 0\.2 seconds"):
        endless(MESSAGES)
    assert other(MESSAGES) == "1"


SAYS = Template("{{ messages[0].content }}", {})


def wrong(name, template=SAYS):
    said = [f"{name} {i}" for i in range(50)]
    return [text for text in said if template([{"role": "user", "content": text}]) != text]


def test_threads_share_no_answers():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, "abcd")) == [[]] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are not forked here")
def test_a_forked_program_has_a_process_of_its_own():
    """Both render at once; no process is left behind by either."""
    program = (
        "import os, sys; from conversations.test_sandbox import wrong\n"
        "assert not wrong('a')\n"
        "child = os.fork()\n"
        "assert not wrong('b' if child else 'c')\n"
        "if child: assert os.waitpid(child, 0)[1] == 0"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", program]
    found = subprocess.run(command, env=environment, capture_output=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


def test_a_jinja_that_cannot_be_imported_is_not_called_slow(monkeypatch, tmp_path):
    found = type("Spec", (), {"origin": str(tmp_path / "jinja2.py")})
    monkeypatch.setattr("byhand.conversations.sandbox.find_spec", lambda name: found)
    monkeypatch.setattr("byhand.conversations.sandbox._PROCESS", sandbox._Process())
    with pytest.raises(DataError, match="breaks the process"):
        SAYS(MESSAGES)


def test_the_packages_of_jinja_may_lie_in_two_folders(monkeypatch, tmp_path):
    """As with `pip install --user` together with system packages."""
    for name in ("jinja2", "markupsafe"):
        shutil.copytree(Path(find_spec(name).origin).parent, tmp_path / name / name)
        monkeypatch.syspath_prepend(tmp_path / name)
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("byhand.conversations.sandbox._PROCESS", process := sandbox._Process())
    assert SAYS(MESSAGES) == "abc"
    process.stop()


def test_an_interrupted_rendering_leaves_no_half_answer(monkeypatch):
    def interrupted(self, *args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("byhand.conversations.sandbox.WRITTEN", type("Written", (int,), {"__rmul__": interrupted})(1))
        with pytest.raises(KeyboardInterrupt):
            SAYS([{"role": "user", "content": "first"}])
    assert SAYS(MESSAGES) == "abc"


def test_a_text_is_bounded_before_it_is_read(monkeypatch):
    monkeypatch.setattr("byhand.conversations.sandbox.WRITTEN", 10)
    with pytest.raises(DataError, match="breaks the process"):
        Template("{{ 'a' * 100 }}", {})(MESSAGES)
    monkeypatch.undo()
    assert Template("{{ 'a' * 100 }}", {})(MESSAGES) == "a" * 100
