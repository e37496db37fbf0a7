"""What joined hosts say to each other through the coordinator's keys and values, here of one process."""

import threading

import jax
import pytest

from byhand.errors import ByhandError
from byhand.runtimes.xla import group as module
from byhand.runtimes.xla.cluster import Host
from byhand.runtimes.xla.group import JoinedGroup
from byhand.runtimes.xla.watch import Watch
from thread_group import on_each


class Store:
    """The coordinator's keys and values."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def key_value_set(self, key, value, allow_overwrite=False):
        with self.changed:
            assert allow_overwrite or key not in self.values
            value.encode()
            self.values[key] = value
            self.changed.notify_all()

    def blocking_key_value_get(self, key, milliseconds):
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, milliseconds / 1000):
                raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED: no such key")
            return self.values[key]

    def key_value_dir_get(self, prefix):
        with self.changed:
            return [(key, value) for key, value in self.values.items() if key.startswith(prefix)]

    def key_value_delete(self, key):
        with self.changed:
            del self.values[key]


def joined_groups(monkeypatch, count):
    """Return groups of so many hosts, without watches, and their store."""
    store = Store()
    monkeypatch.setattr(module, "_client", lambda: store)
    monkeypatch.setattr(Watch, "start", lambda watch: None)
    return [JoinedGroup(Host("h:1", count, i), 300.0, pytest.fail, None) for i in range(count)], store


@pytest.fixture
def joined(monkeypatch):
    """Return a function that makes groups of so many hosts, and their store."""
    return lambda count: joined_groups(monkeypatch, count)


def test_what_all_have_read_is_deleted(joined):
    groups, store = joined(3)
    said = on_each(groups, lambda group: [group.gather(f"{i}:{group.index}") for i in range(50)])
    assert said == [[[f"{i}:{host}" for host in range(3)] for i in range(50)]] * 3
    assert {key.split("/")[2] for key in store.values} == {"48", "49"}


def test_a_store_that_fails_is_one_line(joined, monkeypatch):
    groups, store = joined(2)

    def fail(*_):
        raise jax.errors.JaxRuntimeError("UNAVAILABLE: gone\ntrace\nof it")

    monkeypatch.setattr(store, "blocking_key_value_get", fail)
    with pytest.raises(ByhandError, match=r"^host 1 does not answer: UNAVAILABLE: gone\.$"):
        groups[0].gather("a")


@pytest.mark.parametrize("asked", [{0: 2}, {2: 15}, {0: 2, 1: 15, 2: 2}, {1: 15, 2: 2}])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_all_stop_after_the_same_step_by_the_same_signal(joined, asked, order):
    """A host asks after its step; the others read it by the end of the next, in whatever order they come."""
    groups, _ = joined(3)
    for step in range(1, 5):
        assert [groups[i].stopping(step, None) for i in order] == [None] * 3
    first = [groups[i].stopping(5, asked.get(i)) for i in order]
    assert first == [None] * 3
    assert [groups[i].stopping(6, asked.get(i)) for i in order] == [min(asked.values())] * 3


def test_a_host_that_asks_a_step_later_changes_nothing(joined):
    groups, _ = joined(2)
    assert [groups[0].stopping(5, 2), groups[1].stopping(5, None)] == [None, None]
    assert [groups[1].stopping(6, 15), groups[0].stopping(6, 2)] == [2, 2]


def test_a_host_that_leaves_for_a_reason_says_so(joined, monkeypatch):
    groups, store = joined(2)
    slept = []
    monkeypatch.setattr(module.time, "sleep", slept.append)
    groups[1].leave("the disk is full")
    assert store.values == {"byhand/gone/1": "the disk is full"}
    groups[0]._watch.exchange(1)
    assert groups[0]._watch.verdict() == "host 1 ended: the disk is full"
    assert slept == [1]
