"""Which host is gone or hangs, by a clock that the test turns."""

import pytest

from byhand.runtimes.xla.watch import LOST, OUTSIDE, Watch


class Times:
    """A clock, and the coordinator's keys and values; `silent` while it does not answer."""

    def __init__(self):
        self.now, self.silent, self.values = 1000.0, False, {}

    def key_value_set(self, key, value, allow_overwrite=False):
        assert allow_overwrite
        if self.silent:
            raise RuntimeError("DEADLINE_EXCEEDED")
        self.values[key] = value

    def key_value_dir_get(self, prefix):
        if self.silent:
            raise RuntimeError("UNAVAILABLE")
        return [(key, value) for key, value in self.values.items() if key.startswith(prefix)]


class Hosts:
    """So many hosts whose watches a test moves."""

    def __init__(self, count=3, patience=60.0):
        self.times = Times()
        self.watches = [
            Watch(self.times, i, count, patience, lambda line: pytest.fail(line), lambda: self.times.now)
            for i in range(count)
        ]
        self.beats = 0

    def seconds(self, count, dead=()):
        """Let so many seconds pass, with a beat of all but the dead in each."""
        for _ in range(count):
            self.times.now += 1
            self.beats += 1
            for index, watch in enumerate(self.watches):
                if index not in dead:
                    watch.exchange(self.beats)

    def mark(self, step, inside, *which):
        for index in which or range(len(self.watches)):
            self.watches[index].mark(step, inside)

    def verdicts(self):
        return [watch.verdict() for watch in self.watches]


def test_hosts_that_go_on_are_left_alone():
    hosts = Hosts()
    for step in range(20):
        hosts.mark(step, inside=True)
        hosts.seconds(59)
        hosts.mark(step + 1, inside=False)
        hosts.seconds(50)
        assert hosts.verdicts() == [""] * 3


def test_a_process_that_stood_still_blames_nobody():
    """A laptop that slept, or SIGSTOP: all clocks went on, and no beat came."""
    hosts = Hosts()
    hosts.seconds(5)
    hosts.mark(1, True)
    hosts.times.now += 1000
    assert hosts.watches[0].verdict() != ""
    hosts.watches[0].exchange(hosts.beats + 1)  # as the process wakes, whichever of its threads is first
    hosts.watches[0].paused(1000)
    assert hosts.watches[0].verdict() == ""
    hosts.seconds(18, dead=[2])
    assert hosts.watches[0].verdict() == "host 2 is gone: it was not heard for 15 s."


def test_a_host_that_is_not_heard_is_gone():
    hosts = Hosts()
    hosts.seconds(5)
    hosts.seconds(16, dead=[2])
    assert hosts.verdicts()[:2] == ["", ""]
    hosts.seconds(2, dead=[2])  # its last beat was read a second after it
    assert hosts.verdicts()[:2] == ["host 2 is gone: it was not heard for 15 s."] * 2


def test_a_host_that_was_never_heard_is_gone():
    hosts = Hosts(2)
    hosts.seconds(17, dead=[1])
    assert hosts.verdicts()[0] == "host 1 is gone: it was not heard for 15 s."


def test_a_host_that_is_heard_again_in_time_is_there():
    hosts = Hosts()
    for _ in range(5):
        hosts.seconds(15, dead=[1])
        assert hosts.verdicts() == ["", "", ""]
        hosts.seconds(1)


def test_little_patience_means_sooner_gone():
    hosts = Hosts(patience=10)
    hosts.seconds(7, dead=[1])
    assert hosts.verdicts()[0] == "host 1 is gone: it was not heard for 5 s."


def test_a_host_that_hangs_inside_of_a_step_is_named():
    hosts = Hosts()
    hosts.mark(6, True, 1)
    hosts.mark(7, True, 0, 2)
    hosts.seconds(60)
    assert hosts.verdicts() == [""] * 3
    hosts.seconds(1)
    line = "host 1 hangs: no host went on for 60 s, at step 8."
    assert hosts.verdicts() == [line, line.replace("step 8", "step 7"), line]


def test_hosts_that_hang_at_the_same_step_are_not_told_apart():
    hosts = Hosts()
    hosts.mark(3, inside=True)
    hosts.seconds(61)
    assert hosts.verdicts() == ["a host hangs: no host went on for 60 s, at step 4."] * 3


def test_of_several_behind_none_is_blamed():
    hosts = Hosts()
    hosts.mark(4, True, 0)
    hosts.mark(3, True, 1, 2)
    hosts.seconds(61)
    assert all(line.startswith("a host hangs: ") for line in hosts.verdicts())


def test_outside_of_steps_there_is_more_patience():
    hosts = Hosts()
    hosts.seconds(60 * OUTSIDE)
    assert hosts.verdicts() == [""] * 3
    hosts.seconds(1)
    assert hosts.verdicts() == ["a host hangs: no host went on for 360 s, at step 1."] * 3


def test_a_step_that_begins_after_a_long_time_outside_is_no_hang():
    """Whatever is written first, another thread may judge in between."""
    hosts = Hosts()
    watch = hosts.watches[0]
    hosts.seconds(300)
    found = []

    class Judged(Watch):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            found.append(self.verdict())

    watch.__class__ = Judged
    watch.mark(0, inside=True)
    hosts.seconds(59)
    watch.mark(1, inside=False)
    assert found
    assert not any(found)


def test_a_coordinator_that_does_not_answer_means_that_the_first_host_is_gone():
    hosts = Hosts()
    hosts.seconds(5)
    hosts.times.silent = True
    hosts.seconds(15)
    assert hosts.verdicts() == [""] * 3
    hosts.seconds(1)
    line = f"host 0 is gone: its coordinator has not answered for {LOST:.0f} s."
    assert hosts.verdicts() == [line] * 3


def test_a_coordinator_that_answers_again_in_time_is_there():
    hosts = Hosts()
    for _ in range(5):
        hosts.times.silent = True
        hosts.seconds(14)
        hosts.times.silent = False
        hosts.seconds(1)
        assert hosts.verdicts() == [""] * 3


def test_another_hosts_own_words_come_first():
    hosts = Hosts()
    hosts.times.values["byhand/gone/2"] = "the disk is full"
    hosts.seconds(100, dead=[2])
    assert hosts.verdicts()[:2] == ["host 2 ended: the disk is full"] * 2


def test_the_verdict_is_told_once_and_not_after_the_end():
    told = []
    times = Times()
    times.values["byhand/gone/1"] = "interrupted"
    watch = Watch(times, 0, 2, 60.0, told.append, lambda: times.now)
    watch.exchange(1)
    watch._judge()
    assert told == ["host 1 ended: interrupted"]
    watch.end()
    watch._judge()
    watch._beat()
    assert told == ["host 1 ended: interrupted"]
    assert watch.verdict() == "host 1 ended: interrupted"
