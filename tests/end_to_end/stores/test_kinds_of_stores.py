"""The same runs over each kind of store: files, tables and the state in a container of Azure (Azurite), a bucket of Google (a stand-in) and one of S3."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import deltalake
import pyarrow as pa
import pytest

from errata.core.failures import Busy, StorageFailed
from errata.project.workspace import read_workspace
from storage import durable
from storage.engines import EngineChoice, engine
from storage.files.stores import store_of
from storage.state.lock import Lease, Owner, claim
from storage.stores.client import PART_BYTES, Bucket, Changed, bucket_of
from storage.stores.connections import reach_by_environment
from storage.stores.places import ObjectPath
from tests.end_to_end.stores.test_object_states import CHILD, state_of, words
from tests.support.lakes import ROWS, Lake, winners
from tests.support.object_stores import Faults
from tests.support.other_stores import ACCOUNT_KEY, KINDS, SERVICE_ACCOUNT
from tests.support.pipelines import Folder, command

pytestmark = pytest.mark.servers


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """Two orders in a bucket of each kind, and a pipeline with its state in the bucket."""
    with mock.patch.dict(os.environ, LAKE_ACCOUNT_KEY=ACCOUNT_KEY, LAKE_SERVICE_ACCOUNT=SERVICE_ACCOUNT):
        made = Lake(Folder(tmp_path), KINDS[request.param].new(), Faults())
        made.pipeline(state="state")
        made.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
        yield made


def bucket_for(store: Lake) -> Bucket:
    uri = f"{store.bucket.uri}/x"
    return bucket_of(uri, read_workspace(store.folder.path / "errata.toml").stores(os.environ).require(uri))[0]


def test_files_and_the_state(store: Lake) -> None:
    assert store.run().epoch == 1
    assert store.report() == ROWS
    assert store.run().committed is False
    store.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")  # another ETag or version with the same content
    assert store.run().committed is False
    store.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    assert store.run().counts["report"] == {"-C": 1, "+C": 1}
    store.bucket.delete("out/report.csv")
    store.run()
    assert store.report() == [ROWS[0], {"id": "2", "amount": "25"}]
    assert store.folder.violations() == []
    assert {key.split("/")[0] for key in store.bucket.listed()} == {"in", "out", "state"}
    assert not [key for key in store.bucket.listed() if ACCOUNT_KEY.encode() in store.bucket.get(key)]
    for name in ("status", "log", "plan"):
        assert command(*words(store, name))[0] == 0


def test_an_object_of_somebody_else_stays(store: Lake) -> None:
    store.bucket.put("out/report.csv", "theirs\n")
    with pytest.raises(StorageFailed):
        store.run()
    assert store.bucket.get("out/report.csv") == b"theirs\n"


def test_an_output_that_somebody_else_changed_is_written_anew(store: Lake) -> None:
    store.run()
    store.bucket.put("out/report.csv", "theirs\n")
    store.run()
    assert store.report() == ROWS


def test_tables_are_written_and_followed(store: Lake) -> None:
    store.pipeline(kind="delta", path="out/table", state="state")
    store.run()
    followed = Lake(Folder(store.folder.path / "next"), store.bucket, store.faults)
    followed.pipeline(f'type: delta, path: "{store.bucket.uri}/out/table"', path="out/copy.csv", state="state2")
    followed.run()
    assert followed.report("out/copy.csv") == ROWS
    store.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    store.run()
    assert followed.run().counts["report"] == {"-C": 1, "+C": 1}
    assert followed.run().committed is False
    assert followed.folder.violations() == []


def test_the_engine_reads_and_writes_tables(store: Lake) -> None:
    reach_by_environment(read_workspace(store.folder.path / "errata.toml").stores(os.environ).connections)
    rows = pa.table({"id": [1, 2, 3]})
    session = engine(EngineChoice("sail")).session
    deltalake.write_deltalake(f"{store.bucket.uri}/ours", rows)
    session.read.format("delta").load(f"{store.bucket.uri}/ours").write.format("delta").save(f"{store.bucket.uri}/its")
    assert sorted(row.id for row in session.read.format("delta").load(f"{store.bucket.uri}/its").collect()) == [1, 2, 3]
    assert deltalake.DeltaTable(f"{store.bucket.uri}/its").to_pyarrow_table().sort_by("id") == rows


def test_a_secret_of_the_environment_is_not_taken_beside_that_of_a_connection(store: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SESSION_TOKEN", "GOOGLE_SERVICE_ACCOUNT", "AZURE_STORAGE_TOKEN"):
        monkeypatch.setenv(name, "/of/another")
    assert store.run().epoch == 1
    assert store.report() == ROWS


def test_large_objects_go_in_parts_and_come_by_ranges_of_one_version(store: Lake, tmp_path: Path) -> None:
    bucket, file = bucket_for(store), tmp_path / "large"
    content = bytes(range(256)) * (PART_BYTES // 128 + 7)
    file.write_bytes(content)
    bucket.upload("large", file, "hash", absent=False)
    found = bucket.content("large")
    assert found is not None
    assert (found[0].size, found[1]) == (len(content), "hash")
    (listed,) = bucket.list("large")
    assert listed.tag == found[0].tag
    place = ObjectPath(f"{bucket.root}/large", bucket.connection).at(listed.identity, listed.size)
    assert store_of(place).content(place)[:] == content
    bucket.upload("large", file, "other", absent=False)
    if store.bucket.uri.startswith("az"):  # the ETag of others is the same for the same content
        with pytest.raises(Changed):
            bucket.read("large", 0, 10, listed.tag)
    store.bucket.put("large", "short")
    with pytest.raises(Changed):
        bucket.read("large", 0, 10, listed.tag)
    with pytest.raises(Changed):
        bucket.upload("large", file, "hash", absent=True)


def test_more_objects_than_a_page_of_a_listing_are_read(store: Lake) -> None:
    for number in range(150):
        store.bucket.put(f"in/b{number:03}.csv", f"id,amount\n{100 + number},1\n")
    store.run()
    assert len(store.report()) == 152


def test_one_run_at_a_time(store: Lake) -> None:
    with claim(state_of(store), "theirs"), pytest.raises(Busy, match="run theirs"):
        store.run()
    assert store.run().epoch == 1


def test_of_many_that_claim_at_once_one_wins(store: Lake) -> None:
    bucket = bucket_for(store)
    for round_ in range(5):
        (won,) = winners(lambda name=f"claim{round_}": Lease(bucket, name))
        assert won.renew()


def test_a_lease_that_was_taken_over_is_lost(store: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = bucket_for(store)
    first, second = Lease(bucket, "claim"), Lease(bucket, "claim")
    first.take(Owner("here", 1, 0.0, "1"), wait=False)
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)
    assert second.take(Owner("here", 2, 0.0, "2"), wait=False) == Owner("here", 1, 0.0, "1")
    assert not first.renew()
    assert second.renew()


@pytest.mark.deep
def test_a_killed_run_costs_nothing(store: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)
    steps: list[str] = []
    store.pipeline(state="steps")
    with durable.probing(lambda moment: steps.append(moment.name) if moment.side == "before" else None):
        store.run()
    for at in range(1, len(steps), 7):
        store.bucket.delete(*store.bucket.listed("out"))
        store.pipeline(state=f"state-{at}")
        child = [sys.executable, "-c", CHILD, str(at), "before", *words(store, "run", "--engine", "sail")]
        assert subprocess.run(child, check=False, capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).returncode == -signal.SIGKILL
        assert store.run().epoch == 1, at
        assert store.report() == ROWS, at
        assert store.folder.violations() == [], at
