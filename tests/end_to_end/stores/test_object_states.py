"""States and tables in a bucket of a real S3 server: one run at a time, and nothing of a run that lost its claim."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from errata.core.failures import Busy, StorageFailed
from errata.core.options import EngineOptions, Erasure, RunOptions
from storage import durable
from storage.durable import Moment
from storage.state.location import State
from storage.state.lock import Lease, claim
from storage.state.occupied import note_occupied, occupied
from storage.stores.client import Bucket
from storage.stores.connections import StoreConnection
from tests.support.lakes import ROWS, Lake, winners
from tests.support.object_stores import KEY, SECRET, TestBucket
from tests.support.pipelines import command

pytestmark = pytest.mark.servers

CHILD = """
import os, signal, sys
from storage import durable
from errata.cli import main
at = int(sys.argv[1])
with durable.probing(lambda moment: os.kill(os.getpid(), signal.SIGKILL) if moment.number == at and moment.side == sys.argv[2] else None):
    main(sys.argv[3:])
"""


def words(lake: Lake, name: str, *more: str) -> tuple[str, ...]:
    return (name, str(lake.folder.path / "pipeline.yaml"), *more)


def state_of(lake: Lake) -> State:
    loaded = lake.folder.load()
    return loaded.state


def test_a_state_in_the_bucket(far: Lake) -> None:
    assert far.run().epoch == 1
    assert far.run().committed is False
    far.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    assert far.run().counts["report"] == {"-C": 1, "+C": 1}
    assert far.folder.violations() == []
    assert {key.split("/")[0] for key in far.bucket.listed()} == {"in", "out", "state"}
    assert not (far.folder.path / ".errata").exists()
    assert not [key for key in far.bucket.listed() if any(secret.encode() in far.bucket.get(key) for secret in (KEY, SECRET))]
    for name in ("status", "log", "plan"):
        assert command(*words(far, name))[0] == 0
    code, out, _ = command(*words(far, "show", "report", "--format", "csv"))
    assert (code, out.splitlines()[1:]) == (0, ["1,10", "2,25"])


def test_another_pipeline_that_was_loaded_since_changes_nothing(far: Lake) -> None:
    loaded = far.folder.load()
    other = Lake(far.folder.__class__(far.folder.path / "other"), far.bucket, far.faults)
    other.pipeline(state="other", path="out/other.csv")
    other.folder.write("errata.toml", other.folder.text("errata.toml").replace(far.bucket.endpoint, "http://127.0.0.1:1"))
    other.folder.load()
    assert loaded.run(RunOptions(engine=EngineOptions("sail"))).epoch == 1
    assert far.report() == ROWS


def test_tables_in_the_bucket_are_written_and_followed(far: Lake) -> None:
    far.pipeline(kind="delta", path="out/table", state="state")
    far.run()
    followed = Lake(far.folder.__class__(far.folder.path / "next"), far.bucket, far.faults)
    followed.pipeline(f'type: delta, path: "{far.bucket.uri}/out/table"', path="out/copy.csv", state="state2")
    followed.run()
    assert followed.report("out/copy.csv") == ROWS
    far.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    far.run()
    assert followed.run().counts["report"] == {"-C": 1, "+C": 1}
    assert followed.run().committed is False
    assert followed.folder.violations() == []


def test_objects_in_the_way_are_noted_in_a_state(far: Lake, tmp_path: Path) -> None:
    for state in (state_of(far), State(str(tmp_path))):
        assert occupied(state) == {}
        note_occupied(state, {"s3://b/x": "1", "s3://b/y": "2"})
        note_occupied(state, {"s3://b/y": "3"})
        assert occupied(state) == {"s3://b/x": "1", "s3://b/y": "3"}


def test_one_run_at_a_time(far: Lake) -> None:
    state = state_of(far)
    with claim(state, "theirs"):
        with pytest.raises(Busy, match="run theirs"):
            far.run()
        assert far.bucket.listed() == ["in/a.csv", "state/far/claim", "state/far/claim-clock"]
    assert far.run().epoch == 1


@pytest.mark.deep
def test_a_run_that_lasts_longer_than_its_lease_keeps_it(far: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 5.0)  # the store's clock tells whole seconds
    monkeypatch.setattr("storage.state.lock.RENEW_SECONDS", 0.1)
    state = state_of(far)
    bucket, _ = state.claim_object()
    with claim(state, "theirs"):
        first, ends = bucket.now("clock"), time.monotonic() + 30
        while bucket.now("clock") - first < 6:
            assert time.monotonic() < ends
        code, _, said = command(*words(far, "run"))
        assert (code, "run theirs" in said) == (6, True)
    assert far.run().epoch == 1


def test_a_waiting_run_begins_when_the_other_one_ends(far: Lake) -> None:
    held = claim(state_of(far), "theirs")
    threading.Timer(0.3, held.release).start()
    assert far.folder.run(wait=True).epoch == 1


def test_of_many_that_claim_at_once_one_wins() -> None:
    bucket = TestBucket.new()
    connection = StoreConnection("lake", bucket.uri, (("endpoint", bucket.endpoint), ("access_key_id", KEY), ("secret_access_key", SECRET)), allow_http=True)
    for round_ in range(20):
        assert len(winners(lambda name=f"claim{round_}": Lease(Bucket(bucket.uri, connection), name))) == 1


def test_a_killed_owner_is_followed_only_after_its_lease(far: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys; from tests.end_to_end.stores.test_object_states import hold; hold(sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", text, str(far.folder.path / "pipeline.yaml")], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)
    with pytest.raises(Busy, match=f"process {process.pid}"):
        far.run()
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 1.0)
    assert far.folder.run(wait=True).epoch == 1
    assert far.report() == ROWS


def hold(pipeline: str) -> None:
    """Hold the claim of a pipeline until the process ends."""
    import errata

    claim(errata.load(pipeline).state, "killed")
    sys.stdout.write("held\n")
    sys.stdout.flush()
    time.sleep(60)


@pytest.mark.parametrize("ignored", ["if-none-match", "if-match"])
def test_a_store_without_conditions_is_refused_for_states_alone(lake: Lake, ignored: str) -> None:
    lake.faults.without = (ignored,)
    lake.run()
    lake.pipeline(state="state")
    with pytest.raises(StorageFailed, match="E642"):
        lake.run()
    assert lake.bucket.listed("state") == []


def between(far: Lake, at: int, names: list[str]) -> str:
    """How a run ends in which another one reads other input and commits, ahead of one of its durable steps."""
    taken: list[str] = []

    def probe(moment: Moment) -> None:
        if moment.side == "before" and threading.current_thread() is threading.main_thread():
            taken.append(moment.name)
            if len(taken) == at + 1:
                far.bucket.put("in/a.csv", "id,amount\n1,10\n2,99\n")
                names.append(moment.name)
                far.folder.run()

    with durable.probing(probe):
        try:
            return f"exit {far.folder.run().exit_code}"
        except Busy:
            return "exit 6"


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.deep), pytest.param(2, marks=pytest.mark.deep)])
def test_a_run_that_lost_its_claim_changes_nothing(far: Lake, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)
    steps: list[str] = []
    far.pipeline(state="steps")
    with durable.probing(lambda moment: steps.append(moment.name) if moment.side == "before" else None):
        far.run()
    commit = steps.index("append:ledger")
    for at in range(2 + part, len(steps) - 1, 3 if part else 6):
        names: list[str] = []
        far.bucket.delete("out/report.csv")
        far.pipeline(state=f"state{part}-{at}")
        far.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
        end = between(far, at, names)
        assert end == "exit 6" or at > commit, (names, end)
        far.folder.run()
        assert far.report() == [ROWS[0], {"id": "2", "amount": "99"}], names
        assert far.folder.violations() == [], names


@pytest.mark.deep
def test_a_killed_run_costs_nothing(far: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)
    steps: list[str] = []
    far.pipeline(state="steps")
    with durable.probing(lambda moment: steps.append(moment.name) if moment.side == "before" else None):
        far.run()
    for at, side in [(1, "after"), *((number, side) for number in range(3, len(steps), 6) for side in ("before", "after"))]:
        far.bucket.delete(*far.bucket.listed("out"))
        far.pipeline(state=f"state-{at}-{side}")
        child = [sys.executable, "-c", CHILD, str(at), side, *words(far, "run", "--engine", "sail")]
        assert subprocess.run(child, check=False, capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).returncode == -signal.SIGKILL
        assert far.run().epoch == 1, (at, side)
        assert far.report() == ROWS, (at, side)
        assert far.folder.violations() == [], (at, side)


def test_a_state_by_variables_of_the_environment(far: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"AWS_ENDPOINT_URL": far.bucket.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    near = far.folder.__class__(far.folder.path / "near")
    near.write("in.csv", "id\n1\n")
    near.write("errata.toml", f'[state]\npath = "{far.bucket.uri}/state"\n')
    near.write(
        "pipeline.yaml",
        "pipeline: { name: near }\nnodes:\n"
        "  - { type: source, name: rows, config: { name: rows, type: csv, path: in.csv, schema: [{ name: id, type: int }] } }\n"
        "  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv } }\n",
    )
    assert near.run().epoch == 1
    near.write("in.csv", "id\n1\n2\n")
    assert near.run().epoch == 2
    assert near.violations() == []
    assert "state/near/claim" in far.bucket.listed()
    claimed = claim(near.load().state, "theirs")
    with pytest.raises(Busy):
        near.run()
    claimed.release()


def test_an_erasure_leaves_nothing_in_the_bucket(far: Lake) -> None:
    far.pipeline(kind="delta", path="out/table", state="state")
    far.bucket.put("in/a.csv", "id,amount\n1,10\n777123,20\n")
    far.run()
    far.bucket.put("in/a.csv", "id,amount\n1,10\n")
    done = far.folder.load().erase(Erasure("asked", "the office", {"id": "777123"}), RunOptions(engine=EngineOptions("sail")))
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert not [key for key in far.bucket.listed() if holds(far.bucket.get(key), 777123)]
    assert far.folder.violations() == []
    assert far.run().committed is False
    assert far.folder.violations() == []


ASKED = Erasure("asked", "the office", {"id": "777123"})


@pytest.mark.parametrize("most", [3, pytest.param(1_000, marks=pytest.mark.deep)])
def test_an_erasure_in_the_bucket_that_is_killed_at_any_step_ends(far: Lake, most: int) -> None:
    """The claim of a killed process runs out, which has tests of its own: here it is gone at once."""
    far.pipeline(kind="delta", path="out/table", state="state")
    far.bucket.put("in/a.csv", "id,amount\n1,10\n777123,20\n")
    far.run()
    far.bucket.put("in/a.csv", "id,amount\n1,10\n")
    points: list[tuple[str, bool, dict[str, bytes]]] = []
    steps: list[str] = []

    def snapshot(moment: Moment) -> None:
        steps.extend([moment.name] if moment.side == "after" else [])
        found = {key: far.bucket.get(key) for key in far.bucket.listed() if not key.startswith("state/far/claim")}
        if not points or found != points[-1][2]:
            points.append((f"{moment.side} {moment.name}", "append:ledger" in steps, found))

    options = RunOptions(engine=EngineOptions("sail"))
    with durable.probing(snapshot):
        far.folder.load().erase(ASKED, options)
    assert {committed for _, committed, _ in points} == {False, True}
    for name, committed, found in points[:: -(-len(points) // most)]:
        far.bucket.delete(*far.bucket.listed())
        for key, content in found.items():
            far.bucket.put(key, content)
        if committed:
            far.run()
        else:
            far.folder.load().erase(ASKED, options)
        assert not [key for key in far.bucket.listed() if holds(far.bucket.get(key), 777123)], name
        assert far.folder.violations() == [], name
        assert [row["id"] for row in far.folder.load().show("report")] == [1], name


def holds(content: bytes, number: int) -> bool:
    """Whether a file holds a number, in Parquet pages too."""
    if content[:4] != b"PAR1":
        return str(number).encode() in content
    return any(number in column.to_pylist() for column in pq.read_table(io.BytesIO(content)).columns)
