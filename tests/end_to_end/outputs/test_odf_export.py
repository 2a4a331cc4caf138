"""`errata export odf`: nodes as datasets of Open Data Fabric, and datasets read again."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.amend.dataset_export import Exported, export_dataset
from errata.core.failures import Failure
from errata.core.options import RunOptions
from storage import durable
from storage.odf import chain as chain_module
from storage.odf import live_rows as live_rows_module
from tests.support.examples import examples
from tests.support.killing import Died, dies_at
from tests.support.odf_datasets import chain, check, folded, tables
from tests.support.pipelines import Folder, command, standing_in

COLUMNS = "[{name: id, type: int}, {name: name, type: string}, {name: price, type: 'decimal(10,2)'}, {name: paid, type: bool}, {name: at, type: date_time}, {name: more, type: any}]"
HEADER = ("id", "name", "price", "paid", "at", "more")
WRITER = f"""\
pipeline: {{name: writer}}
nodes:
  - type: source
    name: orders
    config: {{name: orders, type: csv, path: orders.csv, watermark: {{column: at}}, merge: {{strategy: snapshot, primary_key: [id]}}, schema: {COLUMNS}}}
  - {{type: aggregate, name: totals, input: orders, config: {{group_by: [name], cxl: "emit total = sum(price)\\nemit n = count(*)"}}}}
  - {{type: output, name: sums, input: totals, config: {{name: sums, type: csv, path: sums.csv}}}}
  - {{type: output, name: out, input: orders, config: {{name: out, type: csv, path: out.csv}}}}
"""
READER = f"""\
pipeline: {{name: reader}}
nodes:
  - type: source
    name: orders
    config: {{name: orders, type: odf, path: published, merge: {{primary_key: [id]}}, watermark: {{column: at}}, schema: {COLUMNS}}}
  - {{type: output, name: out, input: orders, config: {{name: out, type: csv, path: copy.csv}}}}
"""
orders = st.tuples(
    st.sampled_from(["x", "", "é"]), st.sampled_from(["1.50", "", "-0.25"]), st.sampled_from(["true", ""]), st.sampled_from(["2024-02-29T12:30:00.123456", "1969-12-31T23:59:59.999999", ""]),
    st.sampled_from(["", "7", "text"]),
)  # fmt: skip
versions = st.lists(st.dictionaries(st.integers(1, 4), orders, max_size=4), min_size=2, max_size=3)
ROWS = {1: ("x", "1.50", "true", "2024-01-01T00:00:00", "7"), 2: ("y", "2.00", "", "2024-01-02T00:00:00", "")}
CHANGED = {1: ("x", "3.25", "true", "2024-01-01T00:00:00", "7"), 3: ("y", "2.00", "", "2024-01-03T00:00:00", "")}
BACK = {2: ("z", "9.00", "", "2024-01-02T00:00:00", ""), 3: ("y", "2.00", "", "2024-01-03T00:00:00", "")}


def lay_out(folder: Folder, records: Mapping[int, tuple[str, ...]]) -> None:
    folder.write_csv("orders.csv", HEADER, [dict(zip(HEADER, (str(number), *rest), strict=True)) for number, rest in records.items()])


def wrote(folder: Folder, *history: Mapping[int, tuple[str, ...]], text: str = WRITER) -> Folder:
    """A run over each version."""
    folder.write("pipeline.yaml", text)
    for records in history:
        lay_out(folder, records)
        folder.run()
    return folder


def export(folder: Folder, node: str = "orders", directory: str = "published", **more: Any) -> Exported:
    folder.write("pipeline.yaml", WRITER)
    return export_dataset(folder.load().snapshot(), node, folder.path / directory, **more)


def content(root: Path) -> dict[str, bytes]:
    """Every file of a dataset that belongs to it."""
    used = {"refs/head", *(f"blocks/{file.name}" for file in (root / "blocks").iterdir()), *(f"data/{file.name}" for file in (root / "data").iterdir())}
    return {name: (root / name).read_bytes() for name in used}


def per_epoch(folder: Folder) -> list[list[tuple[str, str]]]:
    """The ops and the data of each epoch that changed something."""
    found: dict[int, list[tuple[str, str]]] = {}
    for row in folder.log("orders"):
        found.setdefault(row["epoch"], []).append((row["op"], json.dumps(row["data"], default=str, sort_keys=True)))
    return [sorted(rows) for rows in found.values()]


@pytest.mark.deep
@given(history=versions)
@examples(24)
def test_whatever_is_exported_and_read_is_the_same(history: list[dict[int, tuple[str, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        round_trip(Path(place, "one"), history)


def test_what_is_exported_and_read_has_the_same_rows_and_the_same_changes(tmp_path: Path) -> None:
    round_trip(tmp_path, [ROWS, CHANGED, {**BACK, 4: ("é", "", "", "1969-12-31T23:59:59.999999", "text")}])


def round_trip(place: Path, history: Sequence[Mapping[int, tuple[str, ...]]]) -> None:
    """Run, export and read each version: rows and changes of every epoch are the same."""
    writer, reader = Folder(place), Folder(place)
    for records in history:
        wrote(writer, records)
        export(writer)
        reader.write("pipeline.yaml", READER)
        reader.run()
        assert reader.text("copy.csv") == writer.text("out.csv")
    check(place / "published")
    exported = per_epoch(reader)
    writer.write("pipeline.yaml", WRITER)
    assert exported == per_epoch(writer)
    assert not writer.violations()


def test_one_export_of_all_epochs_writes_the_bytes_that_one_export_an_epoch_writes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for records in (ROWS, CHANGED, CHANGED, BACK):
        wrote(folder, records)
        done = export(folder)
        assert export(folder).added == []
    whole = list(folder.load().export_odf("orders", tmp_path / "whole"))
    assert whole[-1]["block"] == done.head
    assert content(tmp_path / "published") == content(tmp_path / "whole")
    check(tmp_path / "whole")
    assert [row["rows"] for row in whole] == [2, 4, 2]


def test_event_times_are_those_of_the_rows_or_of_the_epochs_that_brought_them(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS, CHANGED, BACK)
    export(folder)
    for table in tables(tmp_path / "published"):
        assert all(row["event_time"] == row["at"] for row in table.to_pylist())
    export(folder, "totals", "sums")
    check(tmp_path / "sums")
    begun = {row["epoch"]: row["started"] for row in folder.load().runs()}
    times = [(row["op"], row["name"], round((row["event_time"] - begun[1]).total_seconds(), 1), round((row["system_time"] - begun[1]).total_seconds(), 1)) for table in tables(tmp_path / "sums") for row in table.to_pylist()]
    second, third = (round((begun[epoch] - begun[1]).total_seconds(), 1) for epoch in (2, 3))
    assert times[:2] == [(0, "x", 0.0, 0.0), (0, "y", 0.0, 0.0)]
    assert (2, "x", 0.0, second) in times
    assert (3, "x", second, second) in times
    assert (1, "x", second, third) in times


def test_the_column_with_the_event_time_can_be_named_and_stays(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS)
    assert "no column 'price' of type date or date_time" in failure(lambda: export(folder, event_time="price"))
    two = WRITER.replace("{name: more, type: any}", "{name: more, type: any}, {name: day, type: date, optional: true}")
    wrote(folder, CHANGED, text=two)
    reading = folder.load().snapshot()
    export_dataset(reading, "out", tmp_path / "published", event_time="at")
    assert "has its event times from column 'at'" in failure(lambda: export_dataset(reading, "out", tmp_path / "published", event_time="day"))
    export_dataset(reading, "out", tmp_path / "published")
    assert all(row["event_time"] == row["at"] for table in tables(tmp_path / "published") for row in table.to_pylist())
    export_dataset(reading, "totals", tmp_path / "sums")
    assert "has no column 'day'" in failure(lambda: export_dataset(reading, "totals", tmp_path / "sums", event_time="day"))


def failure(action: Callable[[], object]) -> str:
    with pytest.raises(Failure) as caught:
        action()
    return f"{caught.value.message} = {caught.value.help}"


def test_an_export_that_is_killed_is_completed_by_the_next_one(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS)
    export(folder)
    wrote(folder, CHANGED, BACK)
    shutil.copytree(tmp_path / "published", tmp_path / "before")
    steps: list[str] = []
    with durable.numbered_run(), durable.probing(lambda moment: steps.append(moment.name)):
        export(folder)
    whole = content(tmp_path / "published")
    for number in range(1, len(steps) // 2 + 1):
        shutil.rmtree(tmp_path / "published")
        shutil.copytree(tmp_path / "before", tmp_path / "published")
        with pytest.raises(Died), durable.numbered_run(), durable.probing(dies_at(number, "before" if number % 2 else "after")):
            export(folder)
        check(tmp_path / "published")
        export(folder)
        assert {name: text for name, text in content(tmp_path / "published").items() if name in whole} == whole
        assert not list((tmp_path / "published").rglob(".*.tmp"))


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS)
    (tmp_path / "published").mkdir()
    (tmp_path / "published/notes.txt").write_text("mine")
    assert "E662: " in (message := failure(lambda: export(folder)))
    assert "has no dataset, but other files: notes.txt" in message
    (tmp_path / "published/notes.txt").unlink()
    export(folder)
    assert "E662: " in (message := failure(lambda: export(folder, "totals")))
    assert "has another dataset, did:odf:fed01" in message
    (tmp_path / "file").write_text("")
    assert "is a file" in failure(lambda: export(folder, directory="file"))


def test_a_dataset_keeps_its_columns(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS)
    export(folder, "out")
    wider = WRITER.replace("path: out.csv", "path: out.csv, mapping: {called: name}").replace("{name: more, type: any}", "{name: more, type: any}, {name: extra, type: int, optional: true}")
    folder.write("pipeline.yaml", wider)
    folder.run()
    message = failure(lambda: export_dataset(folder.load().snapshot(), "out", tmp_path / "published"))
    assert "E663: " in message
    assert "lacks: name" in message
    folder.write("pipeline.yaml", wider.replace(", mapping: {called: name}", ""))
    folder.run()
    export_dataset(folder.load().snapshot(), "out", tmp_path / "published")
    check(tmp_path / "published")
    assert [block["event"][0] for block in chain(tmp_path / "published")].count("SetDataSchema") == 2


def test_data_keeps_the_names_of_the_dataset_s_own_columns(tmp_path: Path) -> None:
    """The dataset calls its own columns otherwise, and is read by these names."""
    folder = wrote(Folder(tmp_path), ROWS, CHANGED, text=WRITER.replace("path: out.csv", "path: out.csv, mapping: {op: paid, offset: name}"))
    export_dataset(folder.load().snapshot(), "out", tmp_path / "published")
    first = tables(tmp_path / "published")[0]
    assert first.column_names[:6] == ["odf_offset", "odf_op", "system_time", "event_time", "id", "offset"]
    folder.write("pipeline.yaml", READER.replace("[id]}", "[id], op: odf_op}").replace("name: name", "name: offset").replace("name: paid", "name: op"))
    folder.run()
    folder.write("reader.csv", folder.text("copy.csv"))
    assert folder.text("copy.csv") == folder.text("out.csv")


def live(folder: Folder, node: str) -> Counter[Any]:
    return Counter(tuple(sorted((name, repr(value)) for name, value in row.items() if value is not None)) for row in folder.load().rows(node).to_arrow().to_pylist())


@pytest.mark.parametrize("node", [pytest.param("orders", marks=pytest.mark.deep), "totals"])
def test_epochs_that_were_folded_are_one_difference(tmp_path: Path, node: str) -> None:
    folder = wrote(Folder(tmp_path), ROWS)
    export(folder, node)
    wrote(folder, CHANGED, BACK, ROWS)
    folder.load().compact(4)
    done = export(folder, node)
    assert done.note is not None
    assert "epochs 2 to 3 were folded" in done.note
    assert [row["kind"] for row in done.added] == ["difference", "epoch"]
    check(tmp_path / "published")
    assert folded(tmp_path / "published") == live(folder, node)
    wrote(folder, CHANGED)
    assert [row["kind"] for row in export(folder, node).added] == ["epoch"]
    check(tmp_path / "published")
    fresh = export(folder, node, "fresh")
    assert "the dataset begins with the rows of epoch 3" in str(fresh.note)
    check(tmp_path / "fresh")
    assert folded(tmp_path / "fresh") == folded(tmp_path / "published") == live(folder, node)


def test_an_export_reads_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dataset that is there only newer blocks are read, and no data but where rows are taken back whose epochs were folded."""
    more = {4: ("new", "1.00", "", "2024-01-05T00:00:00", "")}
    folder = wrote(Folder(tmp_path), ROWS, CHANGED, {**CHANGED, **more})
    export(folder, "totals")
    folder.load().compact(3)
    blocks: list[bytes] = []
    files: list[Path] = []
    monkeypatch.setattr(chain_module, "read_block", lambda data, original=chain_module.read_block: (blocks.append(data), original(data))[1])
    monkeypatch.setattr(live_rows_module.pq, "read_table", lambda path, original=live_rows_module.pq.read_table: (files.append(path), original(path))[1])
    assert export(folder, "totals").added == []
    assert (len(blocks), files) == (1, [])  # the block with the schema
    wrote(folder, {**CHANGED, **more, 5: ("newer", "1.00", "", "2024-01-06T00:00:00", "")})
    blocks.clear()
    assert [row["rows"] for row in export(folder, "totals").added] == [1]
    assert (len(blocks), files) == (2, [])
    wrote(folder, BACK)
    export(folder, "totals")
    assert len(files) == 4  # totals of folded epochs are taken back: their event times lie in the data
    check(tmp_path / "published")
    assert folded(tmp_path / "published") == live(folder, "totals")
    (tmp_path / ".errata/writer/identities/totals.chain").write_text("{}")
    assert export(folder, "totals").added == []


def test_two_exports_at_once_make_one_dataset(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS, CHANGED, BACK)
    readings = [folder.load().snapshot() for _ in range(6)]
    places = [tmp_path / "a/one", tmp_path / "b/two"] * 3
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda reading, place: export_dataset(reading, "orders", place), readings, places))
    assert len({(one.dataset, one.head) for one in done}) == 1
    assert sorted(len(one.added) for one in done) == [0, 0, 0, 0, 3, 3]
    assert content(places[0]) == content(places[1])
    check(places[0])


def test_erased_records_are_taken_back(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS, CHANGED)
    warning = f"Node 'orders' was exported as {export(folder).dataset}: its directories and copies still hold the records."
    with standing_in(tmp_path):
        words = ("erase", "pipeline.yaml", "--node", "orders", "--where", "id == 3", "--reason", "request 17", "--keep-out")
        assert warning in command(*words, "--dry-run")[2]
        code, _, said = command(*words)
        assert (code, warning in said) == (0, True)
    done = export(folder)
    assert [row["kind"] for row in done.added] == ["difference"]
    assert "epoch 3 has lost erased records: its changes are one block" in str(done.note)
    check(tmp_path / "published")
    assert folded(tmp_path / "published") == live(folder, "orders")
    assert f"{tmp_path / 'published'} still holds what was erased" in str(done.note)
    assert "still holds what was erased" in str(export(folder).note)
    assert "still holds" not in str(export(folder, directory="fresh").note)
    assert export(folder, directory="fresh").note is None
    check(tmp_path / "fresh")
    assert folded(tmp_path / "fresh") == live(folder, "orders")


def test_another_history_is_one_difference(tmp_path: Path) -> None:
    """The state was put back from a copy, or began again."""
    folder = wrote(Folder(tmp_path), ROWS)
    shutil.copytree(tmp_path / ".errata", tmp_path / "copy")
    export(wrote(folder, CHANGED))
    identity = shutil.copytree(tmp_path / ".errata/writer/identities", tmp_path / "identities")
    shutil.rmtree(tmp_path / ".errata")
    shutil.copytree(tmp_path / "copy", tmp_path / ".errata")
    shutil.copytree(identity, tmp_path / ".errata/writer/identities")
    lay_out(folder, BACK)
    folder.load().run(RunOptions(force=True, max_retract_share=1.0))
    done = export(folder)
    assert "the state has another history than the dataset" in str(done.note)
    check(tmp_path / "published")
    assert folded(tmp_path / "published") == live(folder, "orders")
    assert export(folder).note is None


@pytest.mark.deep
def test_a_full_refresh_goes_on_with_the_dataset(tmp_path: Path) -> None:
    folder = wrote(Folder(tmp_path), ROWS, CHANGED)
    export(folder)
    lay_out(folder, BACK)
    folder.run(full_refresh=True)
    done = export(folder)
    assert [row["kind"] for row in done.added] == ["difference"]
    check(tmp_path / "published")
    assert folded(tmp_path / "published") == live(folder, "orders")


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    wrote(Folder(tmp_path), ROWS, CHANGED)
    with standing_in(tmp_path):
        code, _, stderr = command("export", "odf", "pipeline.yaml", "orders", "published", "--name", "shop/orders")
        assert code == 0
        assert "Wrote 2 blocks of data with 6 op rows, up to epoch 2." in stderr
        assert (tmp_path / "published/info/alias").read_text() == "shop/orders"
        code, out, _ = command("export", "odf", "pipeline.yaml", "orders", "again", "--format", "json")
        assert [(row["epoch"], row["first_offset"], row["last_offset"], row["kind"]) for row in json.loads(out)] == [(1, 0, 1, "epoch"), (2, 2, 5, "epoch")]
        code, _, stderr = command("export", "odf", "pipeline.yaml", "orders", "other", "--name", "no name")
        assert (code, "'no name' is no name of a dataset" in stderr) == (64, True)
    assert (tmp_path / ".errata/writer/identities/orders.json").stat().st_mode & 0o77 == 0
    assert (tmp_path / ".errata/writer/identities").stat().st_mode & 0o77 == 0
