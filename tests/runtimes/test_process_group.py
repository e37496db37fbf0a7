"""What hosts do together they all do, or all refuse with a line."""

import pytest

from byhand.errors import ByhandError, CheckpointError, ConfigError
from byhand.runtimes.process_group import ProcessGroup
from thread_group import on_each, on_hosts


@pytest.fixture(params=["threads", "xla"])
def on(request, monkeypatch):
    """Return a function (count, work) that returns what `work` returns or raises on each of so many hosts."""
    if request.param == "threads":
        return on_hosts
    pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
    from runtimes.xla.test_group import joined_groups

    return lambda count, work: on_each(joined_groups(monkeypatch, count)[0], work)


def failing(group, index, error):
    """What one host raises and the others do not."""
    if group.index == index:
        raise error
    return group.index


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_host_hears_all_by_their_numbers(on, count):
    said = on(count, lambda group: [group.gather(f"{i} of {group.index}") for i in range(3)])
    assert said == [[[f"{i} of {host}" for host in range(count)] for i in range(3)]] * count


def test_empty_and_odd_words_come_through(on):
    words = ["", "=", "/", "=a=", "\0", "步\n", "x" * 10**6]
    assert on(2, lambda group: [group.gather(word)[0] for word in words]) == [words] * 2


def test_what_is_made_together_is_each_hosts_own(on):
    assert on(3, lambda group: group.together(lambda: group.index**2)) == [0, 1, 4]


@pytest.mark.parametrize("guilty", [0, 1, 2])
def test_an_error_on_one_host_reaches_all(on, guilty):
    error = CheckpointError("the disk is full. Free some space.")
    said = on(3, lambda group: group.together(lambda: failing(group, guilty, error)))
    assert said[guilty] is error
    for index in {0, 1, 2} - {guilty}:
        assert type(said[index]) is ByhandError
        assert str(said[index]) == f"host {guilty}: the disk is full. Free some space."


def test_of_two_errors_each_host_raises_its_own_and_the_others_the_first(on):
    said = on(3, lambda group: group.together(lambda: 1 // (group.index == 0)))
    assert str(said[0]) == "host 1: integer division or modulo by zero"
    assert [type(error) for error in said[1:]] == [ZeroDivisionError] * 2


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "MemoryError"),
        (RuntimeError("\n"), "RuntimeError"),
        (RuntimeError("INTERNAL: a\n\n  trace\r\nof b"), "INTERNAL: a trace of b"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (CheckpointError("cannot read runs/\udcff\n at all"), r"cannot read runs/\udcff at all"),
    ],
)
def test_others_get_one_line_that_any_of_them_can_read(on, error, line):
    said = on(2, lambda group: group.together(lambda: failing(group, 1, error)))
    assert said[1] is error
    assert str(said[0]) == f"host 1: {line}"
    str(said[0]).encode()


def test_only_the_first_host_does_what_is_for_the_first_and_all_have_it(on):
    did = []
    assert on(3, lambda group: group.first(lambda: did.append(group.index) or "made")) == ["made"] * 3
    assert did == [0]


def test_an_error_of_the_first_reaches_all(on):
    def refuse():
        raise ConfigError("no room")

    said = on(3, lambda group: group.first(refuse))
    assert type(said[0]) is ConfigError
    assert [str(error) for error in said] == ["no room", "host 0: no room", "host 0: no room"]


def test_hosts_go_on_together_after_an_error(on):
    def work(group):
        with pytest.raises(ByhandError):
            group.together(lambda: failing(group, 1, ConfigError("no")))
        return group.gather(str(group.index)), group.first(lambda: "on")

    assert on(2, work) == [(["0", "1"], "on")] * 2


def test_settings_that_differ_are_refused_by_every_host(on):
    values = ["1", "1", "2"]
    said = on(3, lambda group: group.agree({"--seed": "3", "--lr": values[group.index]}))
    assert [type(error) for error in said] == [ConfigError] * 3
    pairs = ["hosts 0 and 2", "hosts 1 and 2", "hosts 0 and 2"]
    assert [str(e) for e in said] == [f"{pair} have different --lr: 1 and 2. Give all the same." for pair in pairs]
    assert on(3, lambda group: group.agree({"--lr": "1"})) == [None] * 3


def test_a_process_that_is_alone_asks_nobody():
    error, alone = ConfigError("no"), ProcessGroup()
    with pytest.raises(ConfigError) as caught:
        alone.together(lambda: failing(alone, 0, error))
    assert caught.value is error
    assert (alone.gather("a"), alone.together(lambda: 1), alone.first(lambda: "b")) == (["a"], 1, "b")
    alone.agree({"--lr": "1"})
    assert [alone.stopping(1, signal) for signal in (None, 2)] == [None, 2]
    assert (ProcessGroup.index, ProcessGroup.count) == (0, 1)
