"""Sources that read a dataset of Open Data Fabric: what publishers write, what is new of it, what is damaged."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import StorageFailed
from storage.odf import chain as chain_module
from tests.support.odf_datasets import BEGIN, MOMENT, Dataset
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {name: reader}
nodes:
  - type: source
    name: sales
    config: {name: sales, type: odf, path: feed, KEYS, schema: [{name: id, type: int}, {name: amount, type: float}, {name: event_time, type: date_time}]}
  - {type: output, name: out, input: sales, config: {name: out, type: csv, path: out.csv}}
"""
KEYED = "merge: {primary_key: [id]}"
DATA = [pa.field("id", pa.int64()), pa.field("amount", pa.float64())]
FIRST = [{"op": 0, "id": 1, "amount": 1.5}, {"op": 0, "id": 2, "amount": 2.5}, {"op": 0, "id": 3, "amount": 3.5}]
SECOND = [{"op": 2, "id": 1, "amount": 1.5}, {"op": 3, "id": 1, "amount": 9.5}, {"op": 1, "id": 2, "amount": 2.5}, {"op": 0, "id": 4, "amount": 4.5}]


def reader(tmp_path: Path, keys: str = KEYED, engine: str = "sail") -> Folder:
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE.replace("KEYS", keys))
    return folder


def feed(tmp_path: Path, *slices: Sequence[dict[str, Any]]) -> Dataset:
    made = Dataset(tmp_path / "feed").seed()
    for rows in slices:
        made.append(rows, DATA)
    return made


def changes(folder: Folder) -> list[tuple[Any, ...]]:
    return [(row["epoch"], row["op"], row["data"]["id"], row["data"]["amount"]) for row in folder.log("sales")]


def amounts(folder: Folder) -> dict[str, str]:
    return {row["id"]: row["amount"] for row in folder.rows("out.csv")}


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.rarely_on_spark)])
def test_op_rows_become_changes_and_only_new_blocks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    dataset, folder = feed(tmp_path, FIRST), reader(tmp_path, engine=engine)
    folder.run()
    assert changes(folder) == [(1, "+A", 1, 1.5), (1, "+A", 2, 2.5), (1, "+A", 3, 3.5)]
    assert folder.rows("out.csv")[0]["event_time"] == "2026-01-01T00:00:00"
    assert folder.run().epoch == 1
    dataset.add(("SetInfo", {"description": "nothing of interest"}))
    assert folder.run().epoch == 1
    dataset.append(SECOND, DATA, kind="ExecuteTransform")
    read: list[bytes] = []
    plain = chain_module.read_block
    monkeypatch.setattr(chain_module, "read_block", lambda data: read.append(data) or plain(data))
    folder.run()
    assert changes(folder)[3:] == [(2, "-C", 1, 1.5), (2, "+C", 1, 9.5), (2, "-R", 2, 2.5), (2, "+A", 4, 4.5)]
    assert len(read) == 1
    assert not folder.violations()
    folder.run(full_refresh=True)
    assert amounts(folder) == {"1": "9.5", "3": "3.5", "4": "4.5"}


def test_what_is_kept_of_a_chain_is_a_convenience(tmp_path: Path) -> None:
    dataset, folder = feed(tmp_path, FIRST), reader(tmp_path)
    folder.run()
    kept = tmp_path / ".errata/reader/fetched/sales/chain.json"
    assert kept.is_file()
    for text in ("", "{}", '{"head": 1'):
        kept.write_text(text)
        dataset.append([{"op": 3, "id": 1, "amount": float(len(text))}], DATA)
        folder.run()
        assert amounts(folder)["1"] == str(len(text))


def test_columns_of_other_names_and_wider_types(tmp_path: Path) -> None:
    """Data with a column `op` has the operations elsewhere. The event time may be a day, the offset unsigned."""
    own = [pa.field("offset", pa.uint64()), pa.field("_op", pa.uint8()), pa.field("system_time", MOMENT), pa.field("event_time", pa.date32())]
    made = Dataset(tmp_path / "feed").seed(operation_type_column="_op")
    made.append([{"_op": 0, "event_time": BEGIN.date(), "id": 1, "amount": 1.5}], DATA, own=own)
    folder = reader(tmp_path)
    with pytest.raises(StorageFailed, match="E664: the dataset has its operations in the column '_op'"):
        folder.run()
    folder = reader(tmp_path, "merge: {primary_key: [id], op: operation}")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("schema: [", "schema: [{name: operation, type: int, source_name: _op}, "))
    folder.run()
    assert amounts(folder) == {"1": "1.5"}


def test_a_dataset_without_a_key_is_appended_to(tmp_path: Path) -> None:
    dataset, folder = feed(tmp_path, FIRST, FIRST), reader(tmp_path, "merge: append")
    folder.run()
    assert len(folder.rows("out.csv")) == 6
    dataset.append(SECOND, DATA)
    with pytest.raises(StorageFailed, match="E665: the row with offset 6"):
        folder.run()


def test_a_dataset_may_come_later(tmp_path: Path) -> None:
    folder = reader(tmp_path)
    with pytest.raises(StorageFailed, match="there is no dataset in feed"):
        folder.run()
    folder = reader(tmp_path, f"{KEYED}, files: {{on_no_match: skip}}")
    folder.run()
    feed(tmp_path, FIRST)
    folder.run()
    assert len(amounts(folder)) == 3


def change_block(dataset: Dataset) -> None:
    file = dataset.root / "blocks" / dataset.blocks[-1]
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")


def change_data(dataset: Dataset) -> None:
    file = next((dataset.root / "data").iterdir())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def without_data(dataset: Dataset) -> None:
    shutil.rmtree(dataset.root / "data")


def cut_data(dataset: Dataset) -> None:
    file = next((dataset.root / "data").iterdir())
    file.write_bytes(file.read_bytes()[:-5])


DAMAGES: list[tuple[Callable[[Dataset], object], str]] = [
    (change_block, "has another content than its name says"),
    (change_data, "has another content than its name says"),
    (without_data, "is not there"),
    (cut_data, "bytes, and its block says"),
    (lambda one: (one.root / "blocks" / one.blocks[1]).unlink(), "is not there"),
    (lambda one: (one.root / "refs/head").write_text("nonsense"), "refs/head is no hash"),
    (lambda one: (one.root / "refs/head").write_text("z" + "2" * 200), "refs/head has more than 200 bytes"),
    (lambda one: os.truncate(one.root / "blocks" / one.blocks[-1], 20 << 20), "has more than 16,777,216 bytes"),
    (lambda one: one.add(("SetInfo", {}), sequence_number=9), "has number 3 and stands before block 9"),
    (lambda one: one.add(("Seed", {"dataset_id": bytes(34)})), "the first block, and no other, is a seed"),
    (lambda one: one.add(("AddData", {"prev_offset": 7})), "follows offset 7, and the data before ends at 2"),
    (lambda one: one.append(SECOND, DATA, offset_interval={"start": 5, "end": 8}), "adds offsets 5 to 8, and 3 follows"),
    (lambda one: one.append(SECOND, DATA, offset_interval={"start": 3, "end": 4}), "has 4 rows, and its block says offsets 3 to 4"),
    (lambda one: one.append(SECOND, DATA, physical_hash=b"\x16\x20"), "names no data"),
    (lambda one: one.add(("AddData", {}), prev_block_hash=bytes(3)), "bytes"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_a_damaged_dataset_ends_the_run_and_changes_nothing(tmp_path: Path, damage: Callable[[Dataset], object], said: str) -> None:
    dataset, folder = feed(tmp_path, FIRST), reader(tmp_path)
    damage(dataset)
    with pytest.raises(StorageFailed, match="E660: the dataset is damaged: ") as caught:
        folder.run()
    assert said in caught.value.message
    assert folder.load().head_epoch() is None


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A web server over a folder: its URL, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words, directory=str(folder))

        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/feed", asked
        server.shutdown()
        thread.join()


def test_a_dataset_on_a_web_server_is_copied_as_far_as_it_is_new(tmp_path: Path) -> None:
    dataset = feed(tmp_path / "web", FIRST)
    with served(tmp_path / "web") as (url, asked):
        transport = f"transport: {{kind: rest, url: '{url}/', max_pages: 9, allow_http: true, allow_private: true}}"
        folder = reader(tmp_path, f"{KEYED}, {transport}")
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: feed, ", ""))
        assert next(iter(folder.load().plan_next()))["reason"] == "first run"
        folder.run()
        assert sorted(path.split("/")[2] for path in asked) == ["blocks"] * 4 + ["data", "refs"]
        asked.clear()
        assert folder.run().epoch == 1
        assert asked == ["/feed/refs/head"]
        added = dataset.append(SECOND, DATA)
        asked.clear()
        folder.run()
        assert asked == ["/feed/refs/head", f"/feed/blocks/{dataset.blocks[-1]}", f"/feed/data/{added.name}"]
        assert amounts(folder) == {"1": "9.5", "3": "3.5", "4": "4.5"}
        assert not folder.violations()
        head = (dataset.root / "refs/head").read_text()
        (dataset.root / "refs/head").write_text("z" + "2" * 5000)
        with pytest.raises(StorageFailed, match="E660: the dataset is damaged: refs/head has more than 200 bytes"):
            folder.run()
        (dataset.root / "refs/head").write_text(head)
        broken = dataset.append([{"op": 0, "id": 9, "amount": 1.0}], DATA)
        broken.write_bytes(broken.read_bytes()[:-1] + b"!")
        with pytest.raises(StorageFailed, match=r"E660: the dataset is damaged: data/.* has another content"):
            folder.run()
        broken.unlink()
        with pytest.raises(StorageFailed, match="object 2: the server answers 404"):
            folder.run()
        for _ in range(9):
            dataset.add(("SetInfo", {"description": "again"}))
        with pytest.raises(StorageFailed, match=r"more than max_pages \(9\) objects"):
            folder.run()
        assert amounts(folder) == {"1": "9.5", "3": "3.5", "4": "4.5"}


def test_another_history_is_read_from_its_begin_only_when_asked(tmp_path: Path) -> None:
    feed(tmp_path, FIRST, SECOND)
    folder = reader(tmp_path)
    folder.run()
    for slices in ((FIRST,), (SECOND[3:], FIRST[1:])):
        shutil.rmtree(tmp_path / "feed")
        feed(tmp_path, *slices)
        with pytest.raises(StorageFailed, match="E661: the dataset in feed has another history") as caught:
            folder.run()
        assert "--full-refresh" in caught.value.help
    folder.run(full_refresh=True)
    assert amounts(folder) == {"2": "2.5", "3": "3.5", "4": "4.5"}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (f"{KEYED}, transport: {{kind: rest, url: 'https://example.com/feed', max_pages: 9}}", "path is about files"),
        (f"{KEYED}, min_size: 5", "min_size is about files"),
        (f"{KEYED}, files: {{take_last: 1}}", "files is about files"),
        (f"{KEYED}, on_unmapped: auto_widen", "on_unmapped is 'drop'"),
        ("merge: {strategy: snapshot, primary_key: [id]}", "no 'snapshot'"),
    ],
)
def test_what_a_dataset_lacks_is_an_error(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(PipelineErrors) as caught:
        reader(tmp_path, keys).load()
    assert {one.code for one in caught.value.diagnostics} == {"E664"}
    assert said in caught.value.diagnostics[0].message


def test_a_key_is_needed_where_rows_are_taken_back(tmp_path: Path) -> None:
    with pytest.raises(PipelineErrors) as caught:
        reader(tmp_path, "merge: changelog").load()
    assert "strategy 'changelog' needs primary_key" in caught.value.diagnostics[0].message
