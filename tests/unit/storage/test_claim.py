"""One run at a time: claims of two processes, of a dead process, and as a lease on a table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from errata.execution.epoch import _Alone
from storage.errors import StorageError
from storage.state.location import State
from storage.state.lock import LEASE_SECONDS, Claim, Held, Owner, _TableLock, claim

if TYPE_CHECKING:
    from collections.abc import Iterator

HOLDER = """
import sys
from storage.state.lock import claim
from storage.state.location import State
held = claim(State(sys.argv[1]), "other")
print("held", flush=True)
sys.stdin.readline()
held.release()
"""


@pytest.fixture
def state(tmp_path: Path) -> State:
    place = State(str(tmp_path / "orders"))
    place.prepare()
    return place


@contextmanager
def other_process(state: State) -> Iterator[subprocess.Popen[str]]:
    """Start another process that holds the claim until it reads a line."""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", HOLDER, state.root]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_claim_is_free_after_its_release(state: State) -> None:
    for _ in range(2):
        with claim(state, "mine") as held:
            assert held.taken_from is None


def test_two_claims_in_one_process(state: State) -> None:
    with claim(state, "first"), pytest.raises(Held, match="run first") as refused:
        claim(state, "second")
    assert refused.value.owner is not None
    assert refused.value.owner.pid == os.getpid()


def test_another_process_holds_it(state: State) -> None:
    with other_process(state) as process:
        with pytest.raises(Held) as refused:
            claim(state, "mine")
        assert refused.value.owner is not None
        assert refused.value.owner.pid == process.pid


def test_a_waiting_run_gets_the_claim_and_hears_of_the_owner_once(state: State) -> None:
    told: list[Owner | None] = []
    with other_process(state) as process:

        def let_go(owner: Owner | None) -> None:
            told.append(owner)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

        with claim(state, "mine", wait=True, waiting=let_go) as held:
            assert held.taken_from is None
    assert [owner.pid for owner in told if owner] == [process.pid]


def test_a_dead_owner_is_followed(state: State) -> None:
    with other_process(state) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with claim(state, "mine") as held:
            assert held.taken_from is not None
            assert held.taken_from.pid == process.pid


def test_forgetting_the_state_does_not_open_the_claim(state: State) -> None:
    with claim(state, "first"):
        state.forget()
        with pytest.raises(Held):
            claim(state, "second")


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


ELSEWHERE = Owner("elsewhere", 1, 0.0, "theirs")


def test_a_table_claim_is_exclusive_and_free_after_its_end(tmp_path: Path) -> None:
    one, two = _TableLock(str(tmp_path / "claim")), _TableLock(str(tmp_path / "claim"))
    assert one.take(ELSEWHERE, wait=False) is None
    with pytest.raises(Held, match="run theirs"):
        two.take(Owner.this_process("mine"), wait=False)
    assert one.renew()
    assert not two.renew()
    one.leave()
    assert two.take(Owner.this_process("mine"), wait=False) is None


def test_a_table_claim_that_is_not_renewed_is_taken_over_and_its_owner_notices(tmp_path: Path) -> None:
    clock = Clock()
    one, two = _TableLock(str(tmp_path / "claim"), clock=clock), _TableLock(str(tmp_path / "claim"), clock=clock)
    one.take(ELSEWHERE, wait=False)
    clock.now += LEASE_SECONDS - 1
    assert one.renew()
    clock.now += LEASE_SECONDS - 1
    with pytest.raises(Held):
        two.take(Owner.this_process("mine"), wait=False)
    clock.now += 1
    assert two.take(Owner.this_process("mine"), wait=False) == ELSEWHERE
    assert not one.renew()
    one.leave()
    assert two.renew()


def test_of_many_that_ask_for_a_table_claim_at_once_one_gets_it(tmp_path: Path) -> None:
    gate = threading.Barrier(6)
    won: list[int] = []

    def ask(number: int) -> None:
        lock = _TableLock(str(tmp_path / "claim"))
        gate.wait()
        try:
            lock.take(Owner("elsewhere", number, 0.0, str(number)), wait=False)
        except Held:
            return
        won.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_a_holder_that_was_stopped_past_its_lease_renews_it_before_it_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    lock = _TableLock(str(tmp_path / "claim"), clock=clock)
    lock.take(ELSEWHERE, wait=False)
    version = DeltaTable(str(tmp_path / "claim")).version()
    clock.now += LEASE_SECONDS - 1
    assert lock.holds()
    assert DeltaTable(str(tmp_path / "claim")).version() == version
    clock.now += 1
    assert lock.holds()
    assert DeltaTable(str(tmp_path / "claim")).version() == version + 1


def test_a_place_that_does_not_answer_is_a_storage_error_and_hides_no_other(tmp_path: Path) -> None:
    clock = Clock()
    lock = _TableLock(str(tmp_path / "claim"), clock=clock)
    lock.take(ELSEWHERE, wait=False)
    held = Claim(lock, lock._uri, None, None)
    clock.now += LEASE_SECONDS
    for entry in (tmp_path / "claim/_delta_log").iterdir():
        entry.write_bytes(b"nothing that can be read")
    for ask in (lock.renew, lock.holds, lock.leave, held.confirm, held.release):
        with pytest.raises(StorageError, match="claim: "):
            ask()
    held = Claim(lock, lock._uri, None, None)
    with pytest.raises(ZeroDivisionError), _Alone(held):
        raise ZeroDivisionError


def test_a_holder_that_another_one_took_over_does_not_hold(tmp_path: Path) -> None:
    clock = Clock()
    one, two = _TableLock(str(tmp_path / "claim"), clock=clock), _TableLock(str(tmp_path / "claim"), clock=clock)
    one.take(ELSEWHERE, wait=False)
    clock.now += LEASE_SECONDS
    two.take(Owner.this_process("mine"), wait=False)
    assert not one.holds()
    assert two.holds()


def test_a_local_claim_ends_with_its_file(state: State) -> None:
    with claim(state, "first") as held:
        assert held.held
        Path(state.claim).unlink()
        assert not held.held


def test_a_claim_file_that_names_nobody_does_no_harm(state: State) -> None:
    Path(state.claim).write_bytes(b"\0" * 40)
    with claim(state, "mine") as held:
        assert held.taken_from is None
