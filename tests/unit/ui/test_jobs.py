"""Changes that pages ask for: one at a time, with their effect or what stopped them."""

from __future__ import annotations

import threading

import pytest

from errata.core.events import RunResult
from errata.core.failures import Stopped
from errata.ui.jobs import MOST_EFFECTS, Job, Jobs


def done(job, jobs):
    jobs.finish()
    return job


def test_a_change_has_its_effect_by_node():
    jobs = Jobs(threading.Lock())
    rows = [{"node": "a", "op": "+C", "before": {"v": 1}, "after": {"v": 2}}] + [{"node": "b", "op": "+A", "before": None, "after": {"v": at}} for at in range(MOST_EFFECTS + 5)]
    job = done(jobs.begin("t", lambda: (rows, RunResult(0, 7, committed=True))), jobs)
    assert (job.state, job.epoch, job.more) == ("done", 7, 6)
    assert [(node, len(table.rows)) for node, table in job.effect] == [("a", 1), ("b", MOST_EFFECTS - 1)]


def test_a_failure_says_why_and_what_to_do():
    def fails():
        raise Stopped("too much would be retracted", help="look at the file")

    jobs = Jobs(threading.Lock())
    job = done(jobs.begin("t", fails), jobs)
    assert (job.state, job.message) == ("failed", "too much would be retracted (look at the file)")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_ends_the_job_too():
    jobs = Jobs(threading.Lock())
    job = done(jobs.begin("t", lambda: 1 / 0), jobs)
    assert (job.state, jobs.running) == ("failed", False)


def test_jobs_wait_for_each_other():
    lock = threading.Lock()
    jobs = Jobs(lock)
    with lock:
        first, second = (jobs.begin("t", lambda: ([], RunResult(0))) for _ in range(2))
        assert {first.state, second.state} == {"waiting"}
        assert jobs.running
    jobs.finish()
    assert {first.state, second.state} == {"done"}
    assert jobs.find(first.number) is first
    assert jobs.find("other") is None


def test_what_waits_is_not_begun_when_the_server_ends():
    jobs, began, release, made = Jobs(threading.Lock()), threading.Event(), threading.Event(), []

    def first():
        began.set()
        assert release.wait(30)
        made.append("first")
        return [], RunResult(0)

    def second():
        made.append("second")
        return [], RunResult(0)

    computed = jobs.begin("t", first)
    assert began.wait(30)
    waiting = jobs.begin("t", second)
    ends = threading.Thread(target=jobs.close, daemon=True)
    ends.start()
    ends.join(0.05)
    assert ends.is_alive()
    release.set()
    ends.join(30)
    assert not ends.is_alive()
    assert (made, computed.state, waiting.state) == (["first"], "done", "failed")
    assert "ended before" in waiting.message


def test_jobs_may_begin_at_the_same_time(monkeypatch):
    """Other threads begin jobs while one looks for old jobs."""
    jobs, looked = Jobs(threading.Lock()), []

    def over(job):
        if not looked:
            looked.append(job)
            other = threading.Thread(target=jobs.begin, args=("other", lambda: ([], RunResult(0))), daemon=True)
            other.start()
            other.join(0.2)
        return job.state in ("done", "failed")

    monkeypatch.setattr(Job, "over", property(over))
    jobs.begin("t", lambda: ([], RunResult(0)))
    assert looked
    jobs.finish()
