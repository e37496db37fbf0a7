"""The team: every job has its own outcome, and no thread works on after the caller is interrupted."""

import os
import signal
import threading

import pytest

from byhand.errors import ConfigError
from byhand.runtimes.cores import MOST_THREADS
from byhand.runtimes.loops.run import thread_team as module
from byhand.runtimes.loops.run.thread_team import ThreadTeam
from cli.process import PATIENCE
from interrupts import at_every_point

SIZE = 4


class Meeting:
    """Work whose threads wait for the first one, as shares wait at a barrier, and then write."""

    def __init__(self, number):
        self.number = number
        self.first_is_here = threading.Event()
        self.begun = [threading.Event() for _ in range(SIZE)]
        self.inside = set()
        self.written = {}
        self.given_up = self.late = False

    def work(self, i):
        self.late |= self.given_up
        self.inside.add(i)
        self.begun[i].set()
        if i == 0:
            self.first_is_here.set()
        assert self.first_is_here.wait(PATIENCE), "waited for a share that never comes"
        self.written[i] = self.number
        self.inside.discard(i)

    def give_up(self, i):
        self.given_up = True
        self.first_is_here.set()


class PromptInbox:
    """Hands a job over and returns when the thread has begun, so that every interrupt finds it at work."""

    def __init__(self, inbox, i):
        self.inbox, self.i = inbox, i

    def put(self, job):
        self.inbox.put(job)
        if job and not job.cancelled:
            assert job.work.__self__.begun[self.i].wait(PATIENCE)


@pytest.fixture
def team():
    made = ThreadTeam(SIZE)
    yield made
    made.close()


def hold_that_it_works(team, number):
    after = Meeting(number)
    team.run(after.work, after.give_up)
    assert after.written == dict.fromkeys(range(SIZE), number)


@pytest.mark.parametrize("prompt", [False, True])
def test_an_interrupt_anywhere_leaves_nobody_at_work_and_no_outcome_behind(team, prompt):
    """At every instruction of the team's code that the calling thread runs."""
    number, points, meeting = 0, [], None
    if prompt:
        team._inboxes = [PromptInbox(inbox, i) for i, inbox in enumerate(team._inboxes, 1)]

    def run():
        nonlocal meeting
        meeting = Meeting(number)
        team.run(meeting.work, meeting.give_up)

    for point in at_every_point(run, "loops/run/thread_team.py", event="opcode"):
        assert meeting.inside <= {0}, f"{point}: others work on"  # 0 is the caller itself, which is here
        assert not (prompt and meeting.late), f"{point}: a thread began although the job was given up"
        hold_that_it_works(team, -number)
        points.append(point)
        number += 1
    assert {p.partition(":")[0] for p in points} >= {"run", "_finish", "settle", "__init__"}
    assert len(points) > 100


@pytest.mark.parametrize("times", [1, 2, 3, 4])
@pytest.mark.parametrize("consumed", [False, True])
def test_interrupts_of_the_wait_are_made_up_for(team, times, consumed, monkeypatch):
    """Interrupts before a thread's sign is taken, or after it was taken and before anybody saw it."""
    release = threading.Event()

    class Job(module.Job):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.real, self.tick, self.left = self.tick, self, times

        def put(self, sign):
            self.real.put(sign)

        def get(self):
            if self.left:
                self.left -= 1
                if self.left == 0:
                    release.set()
                if consumed:
                    self.real.put(None)  # a sign more, which is lost at once
                    self.real.get()
                raise KeyboardInterrupt
            return self.real.get()

    monkeypatch.setattr(module, "Job", Job)
    at_work = []

    def work(i):
        at_work.append(i)
        if i:
            assert release.wait(PATIENCE)
        at_work.remove(i)

    with pytest.raises(KeyboardInterrupt):
        team.run(work)
    if times <= 1:
        assert at_work == []
    for _ in range(times - 2):  # each wait was interrupted: one is left for the next run
        with pytest.raises(KeyboardInterrupt):
            team.settle()
    monkeypatch.undo()
    team.settle()
    assert at_work == []
    hold_that_it_works(team, 7)


def test_an_error_in_one_thread_ends_the_others_and_reaches_the_caller(team):
    given_up = []

    def work(i):
        if i == 2:
            raise ValueError("share 2")

    with pytest.raises(ValueError, match="share 2"):
        team.run(work, given_up.append)
    assert given_up == [2]
    hold_that_it_works(team, 1)


def test_the_caller_s_own_error_wins(team):
    def work(i):
        raise ValueError(f"share {i}")

    with pytest.raises(ValueError, match="share 0"):
        team.run(work)
    hold_that_it_works(team, 1)


@pytest.mark.parametrize("threads", [0, -1, MOST_THREADS + 1, 10**20])
def test_a_number_of_threads_that_cannot_be_meant_is_refused(threads):
    with pytest.raises(ConfigError, match=f"must be between 1 and {MOST_THREADS}"):
        ThreadTeam(threads)


def test_where_the_system_starts_no_more_threads_those_started_end(monkeypatch):
    started, start = [], threading.Thread.start

    def limited(self):
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(ConfigError, match="started only 3 of 7 threads"):
        ThreadTeam(8)
    for thread in started:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test has imported it
def test_a_fork_has_a_team_of_its_own(team):
    hold_that_it_works(team, 1)
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # a child that waits for threads that it does not have would wait for ever
        try:
            hold_that_it_works(team, 2)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    hold_that_it_works(team, 3)
