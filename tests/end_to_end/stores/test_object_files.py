"""Sources and outputs in a bucket of a real S3 server: what is read and written, what counts as a change, and what nobody may see."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.amend.dataset_export import export_dataset
from errata.core.failures import StorageFailed
from storage import durable
from storage.durable import Moment
from storage.files import stores
from storage.stores import client
from tests.support.examples import examples
from tests.support.lakes import ROWS, Lake
from tests.support.object_stores import TestBucket, proxied
from tests.support.odf_datasets import Dataset, check
from tests.support.pipelines import Folder, command

pytestmark = pytest.mark.servers


def test_from_a_bucket_to_a_bucket(lake: Lake) -> None:
    assert lake.run().epoch == 1
    assert lake.report() == ROWS
    assert lake.run().committed is False
    assert (lake.faults.count("PUT"), lake.faults.count("GET", "/in/a.csv")) == (0, 0)
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    assert lake.run().counts["report"] == {"-C": 1, "+C": 1}
    assert lake.report() == [ROWS[0], {"id": "2", "amount": "25"}]
    assert lake.folder.violations() == []


def test_one_listing_and_one_read_of_what_is_new(lake: Lake) -> None:
    lake.run()
    lake.bucket.put("in/b.csv", "id,amount\n3,30\n")
    lake.run()
    assert [one.path for one in lake.faults.seen if "list-type" in one.path] == [f"/{lake.bucket.name}?list-type=2&prefix=in%2F"]
    assert [one.path for one in lake.faults.seen if one.method == "GET" and "/in/" in one.path] == [f"/{lake.bucket.name}/in/b.csv"]
    assert all(one.headers.get("if-match") for one in lake.faults.seen if one.range)


def test_the_same_bytes_put_again_are_no_change(lake: Lake) -> None:
    lake.run()
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
    assert lake.run().committed is False
    assert lake.faults.count("GET", "/in/a.csv") == 0


def test_another_etag_with_the_same_content_is_no_change(lake: Lake) -> None:
    rows = "".join(f"{number},{number}\n" for number in range(900_000))
    lake.bucket.put("in/a.csv", f"id,amount\n{rows}")
    lake.run()
    lake.bucket.put_in_parts("in/a.csv", f"id,amount\n{rows}")
    assert lake.run().committed is False
    assert lake.faults.count("GET", "/in/a.csv") > 1  # its hash decides: it is read by ranges


@pytest.mark.deep
def test_removed_renamed_and_many_objects(lake: Lake) -> None:
    numbers = range(1_101)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: lake.bucket.put(f"in/n{number:04}.csv", f"id,amount\n{number},{number}\n"), numbers))
    lake.pipeline(f'type: csv, glob: "{lake.bucket.uri}/in/n*[05]5.csv"')
    lake.run()
    assert [int(row["id"]) for row in lake.report()] == [number for number in numbers if number % 50 == 5]
    assert lake.faults.count("GET", "list-type") == 2  # a page has a thousand keys
    lake.bucket.delete("in/n0005.csv", "in/n0055.csv")
    lake.bucket.put("in/n9955.csv", "id,amount\n5,5\n")
    assert lake.run().counts["report"] == {"-R": 1}
    assert [int(row["id"]) for row in lake.report()] == [5, *(number for number in numbers if number % 50 == 5 and number > 55)]


def test_a_report_that_somebody_else_changed_is_written_anew(lake: Lake) -> None:
    lake.run()
    for change in (lambda: lake.bucket.put("out/report.csv", "id,amount\n1,10\n2,21\n"), lambda: lake.bucket.delete("out/report.csv")):
        change()
        assert "restore" in command("plan", str(lake.folder.path / "pipeline.yaml"))[1]
        assert lake.run().committed is False
        assert lake.report() == ROWS


def test_a_foreign_object_is_refused(lake: Lake) -> None:
    lake.bucket.put("out/report.csv", "theirs")
    with pytest.raises(StorageFailed, match=f"{lake.bucket.uri}/out/report.csv exists and was not written by this pipeline"):
        lake.run()
    assert lake.bucket.get("out/report.csv") == b"theirs"
    assert lake.folder.run(force=True).epoch == 1
    assert lake.report() == ROWS


def test_an_object_that_came_meanwhile_is_not_replaced(lake: Lake) -> None:
    lake.faults.before = lambda request: lake.bucket.put("out/report.csv", "theirs") if request.headers.get("if-none-match") == "*" else None
    with pytest.raises(StorageFailed, match="E641: it is there since this run began"):
        lake.run()
    assert lake.bucket.get("out/report.csv") == b"theirs"
    lake.faults.before = lambda _: None
    for _ in range(2):
        with pytest.raises(StorageFailed, match="exists and was not written by this pipeline"):
            lake.run()
        assert lake.bucket.get("out/report.csv") == b"theirs"
    lake.folder.run(force=True)
    assert lake.report() == ROWS
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n")
    lake.run()
    assert lake.report() == ROWS[:1]
    assert lake.folder.violations() == []


def test_of_two_runs_that_create_one_object_one_wins(lake: Lake) -> None:
    other = Lake(Folder(lake.folder.path / "other"), lake.bucket, lake.faults)
    other.pipeline(f'type: csv, path: "{lake.bucket.uri}/theirs.csv"')
    lake.bucket.put("theirs.csv", "id,amount\n7,70\n")
    waits = [True]

    def before_its_put(moment: Moment) -> None:
        if waits and (moment.name, moment.side) == ("object:put", "before"):
            waits.clear()
            assert other.run().epoch == 1

    with durable.probing(before_its_put), pytest.raises(StorageFailed, match="E641: it is there since this run began"):
        lake.folder.run()
    assert (waits, lake.report()) == ([], [{"id": "7", "amount": "70"}])
    with pytest.raises(StorageFailed, match="exists and was not written by this pipeline"):
        lake.run()
    assert other.run().committed is False
    assert lake.report() == [{"id": "7", "amount": "70"}]


def test_a_plan_tells_what_changed(lake: Lake) -> None:
    bucket, same = lake.bucket, "id,amount\n1,10\n2,20\n"
    lake.run()

    def changed(reason: str, *, reads: bool = False) -> None:
        lake.faults.seen.clear()
        stores.forget_contents()
        nodes = json.loads(command("plan", str(lake.folder.path / "pipeline.yaml"), "--format", "json")[1])
        assert (nodes[0]["node"], nodes[0]["reason"]) == ("orders", reason)
        assert {node["action"] for node in nodes} == {"skip" if reason == "input unchanged" else "delta"}
        assert (lake.faults.count("GET", "/in/a.csv") > 0, lake.faults.count("PUT")) == (reads, 0)

    changed("input unchanged")
    bucket.put("in/a.csv", same)
    changed("input unchanged")
    bucket.put_in_parts("in/a.csv", same)
    changed("input unchanged", reads=True)
    bucket.put("in/a.csv", same.replace("20", "25"))
    changed("files: 1 changed", reads=True)
    bucket.put("in/a.csv", same)
    bucket.put("in/b.csv", "id,amount\n3,30\n")
    changed("files: 1 new")
    bucket.delete("in/b.csv")
    bucket.delete("in/a.csv")
    bucket.put("in/renamed.csv", same)
    changed("files: 1 changed")
    assert lake.run().counts.get("report", {}) == {}


def test_a_name_that_was_refused_is_not_used_again(lake: Lake) -> None:
    lake.pipeline(output=", if_exists: unique_suffix")
    lake.faults.before = lambda request: lake.bucket.put("out/report.csv", "theirs") if request.headers.get("if-none-match") == "*" else None
    with pytest.raises(StorageFailed, match="E641"):
        lake.run()
    lake.faults.before = lambda _: None
    assert lake.run().committed
    assert lake.run().committed is False
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n")
    lake.run()
    assert lake.report("out/report-1.csv") == ROWS[:1]
    assert lake.bucket.get("out/report.csv") == b"theirs"
    assert lake.bucket.listed("out/") == ["out/report-1.csv", "out/report.csv"]
    assert lake.folder.violations() == []


def test_all_files_of_a_pipeline_may_be_objects(lake: Lake) -> None:
    uri = lake.bucket.uri
    lake.pipeline(
        head=f'error_handling: {{ strategy: continue, dlq: {{ path: "{uri}/out/dlq.csv" }} }}\n',
        output=f', write_meta: true, changelog: {{ path: "{uri}/out/changes-{{epoch}}.jsonl", format: jsonl }}',
    )
    lake.bucket.put("in/b.csv", "id,amount\nx,30\n")
    assert lake.run().exit_code == 2
    assert lake.bucket.listed("out") == ["out/changes-1.jsonl", "out/dlq.csv", "out/report.csv", "out/report.csv.meta.json"]
    assert f"{uri}/in/b.csv,1,source:orders" in lake.bucket.get("out/dlq.csv").decode()
    lake.bucket.delete("in/b.csv")
    assert lake.run().exit_code == 0
    assert "out/dlq.csv" not in lake.bucket.listed("out")
    assert command("correct", str(lake.folder.path / "pipeline.yaml"), "orders", "--key", "id=1", "--set", "amount=11", "--reason", "typing error")[0] == 0
    assert lake.report() == [{"id": "1", "amount": "11"}, ROWS[1]]


def test_parts_of_an_output_come_and_go(lake: Lake) -> None:
    lake.pipeline(output=", split: { max_records: 1 }")
    lake.run()
    assert lake.bucket.listed("out") == ["out/report_0001.csv", "out/report_0002.csv"]
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n")
    lake.run()
    assert lake.bucket.listed("out") == ["out/report_0001.csv"]


def test_a_file_for_each_object(lake: Lake) -> None:
    lake.bucket.put("in/b.csv", "id,amount\n3,30\n")
    lake.pipeline(path="out/{source_file}-sum.csv")
    lake.run()
    assert lake.bucket.listed("out") == ["out/a-sum.csv", "out/b-sum.csv"]
    assert lake.report("out/b-sum.csv") == [{"id": "3", "amount": "30"}]


def test_parquet_and_compressed_objects(lake: Lake) -> None:
    table = BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "amount": [10, 20], "other": ["x", "y"]}), table)
    lake.bucket.put("in/a.parquet", table.getvalue())
    lake.bucket.put("in/z.csv.gz", gzip.compress(b"id,amount\n1,10\n2,20\n"))
    for kind, name in (("parquet", "a.parquet"), ("csv", "z.csv.gz")):
        lake.pipeline(f'type: {kind}, path: "{lake.bucket.uri}/in/{name}", on_unmapped: {{ mode: drop }}', path=f"out/{name}.parquet", kind="parquet")
        lake.run()
        assert pq.read_table(BytesIO(lake.bucket.get(f"out/{name}.parquet"))).to_pydict() == {"id": [1, 2], "amount": [10, 20]}


@pytest.mark.deep
def test_a_large_object_is_read_by_ranges_in_tasks(lake: Lake) -> None:
    rows = "".join(f"{number},{number % 7}\n" for number in range(2_500_000))
    lake.bucket.put("in/a.csv", f"id,amount\n{rows}")
    lake.run()
    assert lake.bucket.get("out/report.csv").decode() == f"id,amount\n{rows}"
    assert max(int(end) - int(start) for start, end in (one.range.removeprefix("bytes=").split("-") for one in lake.faults.seen if one.range)) < client.PART_BYTES
    lake.bucket.put("in/a.csv", f"id,amount\n{rows.replace('77777,0', '77777,9')}")
    counts = lake.run().counts["report"]
    assert counts == {"-C": counts["+C"], "+C": counts["-C"]}
    assert lake.bucket.get("out/report.csv").decode() == f"id,amount\n{rows.replace('77777,0', '77777,9')}"


@pytest.mark.parametrize("name", ["a b.csv", "ä ö.csv", "a+b=c&d.csv", "100%.csv", "a#b?c.csv", "a%20b.csv"])
def test_odd_names(lake: Lake, name: str) -> None:
    lake.bucket.delete("in/a.csv")
    lake.bucket.put(f"in/{name}", "id,amount\n1,10\n2,20\n")
    lake.pipeline(path=f"out/{name}")
    lake.run()
    assert lake.report(f"out/{name}") == ROWS
    assert lake.run().committed is False


@pytest.mark.parametrize("place", ["source", "output", "changelog", "dlq"])
def test_a_bucket_that_no_connection_covers_is_not_asked(lake: Lake, place: str) -> None:
    there, elsewhere = f"{lake.bucket.uri}/in/near", f"{lake.bucket.uri}/out"
    lake.pipeline(
        f'type: csv, glob: "{elsewhere if place == "source" else there}/*.csv"',
        path="PATH",
        head=f'error_handling: {{ strategy: continue, dlq: {{ path: "{elsewhere}/dlq.csv" }} }}\n' if place == "dlq" else "",
        output=f', changelog: {{ path: "{elsewhere}/changes.jsonl", format: jsonl }}' if place == "changelog" else "",
    )
    lake.folder.write("pipeline.yaml", lake.folder.text("pipeline.yaml").replace(f"{lake.bucket.uri}/PATH", f"{elsewhere}/report.csv" if place == "output" else "out/report.csv"))
    lake.folder.write("errata.toml", lake.bucket.toml.replace(f'"{lake.bucket.uri}"', f'"{lake.bucket.uri}/in"'))
    code, _, stderr = command("run", str(lake.folder.path / "pipeline.yaml"))
    assert (code, "E640" in stderr, lake.faults.seen) == (1, True, [])


@pytest.mark.parametrize(("path", "word"), [("in/report.csv", "check"), ("in/report-{batch_id}.csv", "run")])
def test_an_output_over_an_input_is_refused(lake: Lake, path: str, word: str) -> None:
    lake.pipeline(path=path)
    code, _, stderr = command(word, str(lake.folder.path / "pipeline.yaml"))
    assert (code, "E349" in stderr) == (1, True)


STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc"), st.dictionaries(st.integers(1, 5), st.integers(0, 9), max_size=4)),
    st.tuples(st.just("append"), st.sampled_from("abc"), st.dictionaries(st.integers(6, 9), st.integers(0, 9), max_size=2)),
    st.tuples(st.just("delete"), st.sampled_from("abc"), st.just({})),
)


@pytest.mark.property
@examples(16)
@given(history=st.lists(st.lists(STEP, min_size=1, max_size=3), min_size=2, max_size=4), strategy=st.sampled_from(["snapshot", "append", "ledger"]))
def test_objects_give_what_files_of_the_same_content_give(history: list[list[tuple[str, str, dict[int, int]]]], strategy: str) -> None:
    with TemporaryDirectory() as place, proxied() as (port, faults):
        far = Lake(Folder(Path(place) / "far"), TestBucket.new(port), faults)
        near = Folder(Path(place) / "near")
        merge = f"merge: {{ strategy: {strategy}{', primary_key: [id]' if strategy == 'ledger' else ''} }}"
        far.pipeline(f'type: csv, glob: "{far.bucket.uri}/in/*.csv", {merge}, files: {{ on_no_match: skip }}', keyed=False)
        near.write("pipeline.yaml", far.folder.text("pipeline.yaml").replace(f"{far.bucket.uri}/", ""))
        texts: dict[str, str] = {}
        for step in history:
            for what, name, rows in step:
                lines = "".join(f"{key},{value}\n" for key, value in rows.items())
                if what == "delete":
                    texts.pop(name, None)
                elif strategy == "append" or what == "append":
                    texts[name] = texts.get(name, "id,amount\n") + lines
                else:
                    texts[name] = f"id,amount\n{lines}"
            far.bucket.delete(*(f"in/{name}.csv" for name in "abc" if name not in texts))
            for name in "abc":
                if name not in texts:
                    near.remove(f"in/{name}.csv")
                elif not (near.path / f"in/{name}.csv").exists() or near.text(f"in/{name}.csv") != texts[name]:
                    near.write(f"in/{name}.csv", texts[name])
                    far.bucket.put(f"in/{name}.csv", texts[name])
            assert _outcome(far.run) == _outcome(near.run)
            assert far.bucket.get("out/report.csv").decode() == near.text("out/report.csv")
        assert far.folder.violations() == []


def _outcome(run: Callable[[], Any]) -> tuple[Any, ...]:
    """The counts of a run, or how it failed; both without places."""
    try:
        result = run()
    except StorageFailed as failure:
        return ("failed", failure.exit_code)
    return result.exit_code, result.epoch, dict(result.counts)


@pytest.mark.deep
@pytest.mark.spark
def test_tasks_of_spark_read_ranges_by_themselves(lake: Lake) -> None:
    """Their processes get the connection without its secrets, which are in their environment."""
    rows = "".join(f"{number},{number % 7}\n" for number in range(400_000))
    lake.bucket.put("in/a.csv", f"id,amount\n{rows}")
    lake.folder.engine = "spark"
    lake.run()
    assert lake.bucket.get("out/report.csv").decode() == f"id,amount\n{rows}"
    assert {one.range for one in lake.faults.seen if "/in/a.csv" in one.path} != {"bytes=0-" + str(len(rows) + 9)}


def test_objects_that_match_are_staged(lake: Lake) -> None:
    copies = lake.folder.path / "copies"
    copies.mkdir()
    lake.folder.write("errata.toml", lake.bucket.toml + '[storage.staging]\nenabled = true\ndir = "copies"\ncleanup = "never"\non_existing = "reuse"\npatterns = ["s3://**"]\n')
    lake.run()
    assert lake.report() == ROWS
    assert [file.read_bytes() for file in copies.glob("*.staged")] == [lake.bucket.get("in/a.csv")]
    lake.bucket.put("in/a.csv", "id,amount\n1,10\n2,25\n")
    lake.run()
    assert lake.report()[1] == {"id": "2", "amount": "25"}
    assert [file.read_bytes() for file in copies.glob("*.staged")] == [lake.bucket.get("in/a.csv")]


def test_a_dataset_of_open_data_fabric_in_a_bucket(lake: Lake, tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "made").seed()
    data = [pa.field("id", pa.int64()), pa.field("amount", pa.int64())]

    def publish() -> None:
        for file in sorted(dataset.root.rglob("*/*")):
            lake.bucket.put(f"feed/{file.relative_to(dataset.root)}", file.read_bytes())

    dataset.append([{"op": 0, "id": 1, "amount": 10}, {"op": 0, "id": 2, "amount": 50}], data)
    publish()
    lake.pipeline(f'type: odf, path: "{lake.bucket.uri}/feed", merge: {{ primary_key: [id] }}', keyed=False)
    lake.run()
    assert lake.report() == [ROWS[0], {"id": "2", "amount": "50"}]
    added = dataset.append([{"op": 2, "id": 2, "amount": 50}, {"op": 3, "id": 2, "amount": 20}], data)
    publish()
    lake.run()
    assert lake.report() == ROWS
    assert sorted({one.path.rpartition("/")[2] for one in lake.faults.seen if one.method == "GET" and "/feed/" in one.path}) == sorted(["head", dataset.blocks[-1], added.name])
    assert lake.run().committed is False
    assert lake.folder.violations() == []


def test_the_identity_of_a_dataset_lies_with_a_state_in_a_bucket(lake: Lake, tmp_path: Path) -> None:
    """The bucket is reached without a proxy, which is in this process: reading the ledger would wait for it."""
    bucket = lake.bucket = TestBucket.new()
    bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
    lake.pipeline(state="states")
    lake.run()
    identities = [export_dataset(lake.folder.load().snapshot(), "orders", tmp_path / name).dataset for name in ("one", "two")]
    assert identities[0] == identities[1]
    check(tmp_path / "one")
    assert bucket.listed("states/far/identities/") == ["states/far/identities/orders.chain", "states/far/identities/orders.json"]
