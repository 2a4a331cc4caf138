"""One run at a time: claims of two processes, of a dead process, and as a lease in an object store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from errata.execution.epoch import _Alone
from storage.errors import StorageError
from storage.state.location import State
from storage.state.lock import LEASE_SECONDS, Claim, Held, Lease, Owner, claim
from storage.stores.client import Changed, StoreFailed, Unconditional
from tests.support.leases import BucketInMemory, small

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
    owners: list[Owner | None] = []
    with other_process(state) as process:

        def let_go(owner: Owner | None) -> None:
            owners.append(owner)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

        with claim(state, "mine", wait=True, waiting=let_go) as held:
            assert held.taken_from is None
    assert [owner.pid for owner in owners if owner] == [process.pid]


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
    """The clocks of a store and of this machine, which tests move. `ahead`: seconds by which the store's is ahead of the true time."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.now = 1_000_000.0
        self.bucket = BucketInMemory.new()
        self.bucket.shift[0] = ahead

    def __call__(self) -> float:
        return self.now

    def goes_on(self, seconds: float) -> None:
        self.now += seconds
        self.bucket.shift[0] += seconds

    def lease(self) -> Lease:
        return Lease(self.bucket, "p/claim", elapsed=self)

    @property
    def version(self) -> str:
        return small(self.bucket, "p/claim")[1].identity


ELSEWHERE, MINE = Owner("elsewhere", 1, 0.0, "theirs"), Owner.this_process("mine")


DAY = 86_400.0


@pytest.fixture(params=[0.0, DAY, -DAY], ids=["true", "a day ahead", "a day behind"])
def clock(request: pytest.FixtureRequest) -> Clock:
    return Clock(request.param)


def test_a_lease_is_exclusive_and_free_after_its_end(clock: Clock) -> None:
    one, two = clock.lease(), clock.lease()
    assert one.take(ELSEWHERE, wait=False) is None
    with pytest.raises(Held, match="run theirs"):
        two.take(MINE, wait=False)
    assert one.renew()
    one.leave()
    assert two.take(MINE, wait=False) is None
    assert [one.key for one in clock.bucket.list("p/")] == ["p/claim", "p/claim-clock"]


def test_a_lease_that_is_not_renewed_is_taken_over_and_its_owner_notices(clock: Clock) -> None:
    one, two = clock.lease(), clock.lease()
    one.take(ELSEWHERE, wait=False)
    clock.goes_on(LEASE_SECONDS - 1)
    with pytest.raises(Held):
        two.take(MINE, wait=False)
    clock.goes_on(2)
    assert two.take(MINE, wait=False) == ELSEWHERE
    assert not one.renew()
    assert not one.holds()
    one.leave()
    assert two.renew()
    assert two.holds()


def test_only_the_clock_of_the_store_ends_a_lease(clock: Clock) -> None:
    one, two = clock.lease(), clock.lease()
    one.take(MINE, wait=False)
    clock.now += 10 * LEASE_SECONDS
    with pytest.raises(Held):
        two.take(ELSEWHERE, wait=False)
    assert one.holds()


def test_the_owner_of_a_lease_may_be_dead_on_this_machine(clock: Clock) -> None:
    clock.lease().take(replace(MINE, pid=2**22 + 1), wait=False)
    with pytest.raises(Held):
        clock.lease().take(MINE, wait=False)


def test_of_many_that_ask_for_a_lease_at_once_one_gets_it(clock: Clock) -> None:
    for gone in (False, True):
        gate, won = threading.Barrier(6), list[int]()

        def ask(number: int, gate: threading.Barrier = gate, won: list[int] = won) -> None:
            gate.wait()
            try:
                clock.lease().take(Owner("elsewhere", number, 0.0, str(number)), wait=False)
            except Held:
                return
            won.append(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1, gone
        clock.goes_on(LEASE_SECONDS + 1)


def test_a_holder_renews_the_second_half_of_its_lease_before_it_goes_on(clock: Clock) -> None:
    lease = clock.lease()
    lease.take(ELSEWHERE, wait=False)
    version = clock.version
    clock.goes_on(LEASE_SECONDS / 2 - 1)
    assert lease.holds()
    assert clock.version == version
    clock.goes_on(1)
    assert lease.holds()
    assert clock.version != version


def test_an_answer_that_was_lost_is_looked_up(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    put = BucketInMemory.put

    def twice(bucket: BucketInMemory, key: str, body: bytes, **condition: Any) -> str:
        put(bucket, key, body, **condition)
        return put(bucket, key, body, **condition)

    lease, other = clock.lease(), clock.lease()
    lease.take(ELSEWHERE, wait=False)
    with monkeypatch.context() as patched:
        patched.setattr(BucketInMemory, "put", twice)
        assert lease.renew()
    assert lease.renew()
    with pytest.raises(Held):
        other.take(MINE, wait=False)


def test_a_store_that_honours_no_conditions_is_refused(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    put = BucketInMemory.put
    for ignored in ("absent", "over"):
        with monkeypatch.context() as patched:
            patched.setattr(BucketInMemory, "put", lambda bucket, key, body, ignored=ignored, **given: put(bucket, key, body, **{name: value for name, value in given.items() if name != ignored}))
            with pytest.raises(Unconditional, match="E642"):
                clock.lease().take(MINE, wait=False)
        assert clock.bucket.facts("p/claim") is None


def test_a_lost_answer_to_the_first_put_says_nothing_against_a_store(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    put = BucketInMemory.put

    def twice(bucket: BucketInMemory, key: str, body: bytes, **given: Any) -> str:
        put(bucket, key, body, **given)
        return put(bucket, key, body, **given)

    with monkeypatch.context() as patched:
        patched.setattr(BucketInMemory, "put", lambda bucket, key, body, **given: (twice if body == b"1" else put)(bucket, key, body, **given))
        clock.bucket.require_conditions("p/probe")
    assert clock.bucket.facts("p/probe") is None
    clock.bucket.put("p/probe", b"theirs")
    with pytest.raises(Changed):
        clock.bucket.require_conditions("p/probe")
    assert small(clock.bucket, "p/probe")[0] == b"theirs"


def test_a_place_that_does_not_answer_is_a_storage_error_and_hides_no_other(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = clock.lease()
    lease.take(ELSEWHERE, wait=False)
    held = Claim(lease, "s3://nowhere/p/claim", None, None)
    clock.goes_on(LEASE_SECONDS)

    def silent(*_: object, **__: object) -> str:
        raise StoreFailed("s3://nowhere/p/claim", "no answer in time", again=True)

    monkeypatch.setattr(BucketInMemory, "put", silent)
    for ask in (lease.renew, lease.holds, held.confirm, held.release):
        with pytest.raises(StorageError, match="claim: E641"):
            ask()
    held = Claim(lease, "s3://nowhere/p/claim", None, None)
    with pytest.raises(ZeroDivisionError), _Alone(held):
        raise ZeroDivisionError


def test_a_local_claim_ends_with_its_file(state: State) -> None:
    with claim(state, "first") as held:
        assert held.held
        Path(state.claim).unlink()
        assert not held.held


def test_a_claim_file_that_names_nobody_does_no_harm(state: State) -> None:
    Path(state.claim).write_bytes(b"\0" * 40)
    with claim(state, "mine") as held:
        assert held.taken_from is None
