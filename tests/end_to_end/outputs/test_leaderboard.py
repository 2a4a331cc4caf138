"""examples/leaderboard: the tables of the ODF example in every form, from the log, the Python surface and the files of changes."""

from __future__ import annotations

import csv
import json
import shutil
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import errata
from errata.core.options import LogFilter
from storage.engines import EngineChoice, engine
from tests.support.pipelines import Folder, command, limited

EXAMPLE = Path(__file__).parents[3] / "examples" / "leaderboard"

A1, B2 = ("1", "t1", "Alice", "100"), ("2", "t1", "Bob", "80")
C2, C1, A2 = ("2", "t2", "Charlie", "90"), ("1", "t3", "Charlie", "110"), ("2", "t1", "Alice", "100")

TWO = [("+A", A1), ("+A", B2), ("-C", B2), ("+C", C2), ("-C", A1), ("+C", C1), ("-C", C2), ("+C", A2)]
RETRACT = [("+A", A1), ("+A", B2), ("-R", B2), ("+A", C2), ("-R", A1), ("-R", C2), ("+A", C1), ("+A", A2)]
UPSERT = [("+A", A1), ("+A", B2), ("+A", C2), ("+A", C1), ("+A", A2)]
FLINK = [("+I", A1), ("+I", B2), ("-U", B2), ("+U", C2), ("-U", A1), ("+U", C1), ("-U", C2), ("+U", A2)]
SINGLE = [("+A", None, A1), ("+A", None, B2), ("+C", B2, C2), ("+C", A1, C1), ("+C", C2, A2)]
DEBEZIUM = [({"+A": "c", "+C": "u"}[op], before, after) for op, before, after in SINGLE]
PLAIN = {"two": TWO, "retract": RETRACT, "upsert": UPSERT, "flink": FLINK}
PAIRED = {"single": SINGLE, "debezium": DEBEZIUM}


def values(data: dict[str, Any] | None) -> tuple[str, ...] | None:
    return None if data is None else tuple(map(str, data.values()))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return played_in(tmp_path_factory.mktemp("played"))


def played_in(place: Path, engine: str = "sail") -> Folder:
    folder = Folder(place / "leaderboard", engine)
    shutil.copytree(EXAMPLE, folder.path)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml") + PARQUET)
    folder.run()
    for match in ("2", "3"):
        folder.write("match_scores.csv", folder.text("match_scores.csv") + folder.text(f"later/{match}.csv"))
        folder.run()
    return folder


PARQUET = """
  - type: output
    name: odf
    input: leaders
    config: { name: odf, type: csv, path: odf.csv, changelog: { path: "odf-{epoch}.parquet", form: two, format: parquet } }
  - type: output
    name: flat
    input: leaders
    config: { name: flat, type: csv, path: flat.csv, changelog: { path: "flat-{epoch}.csv", form: single, format: csv } }
"""


@pytest.mark.parametrize("form", PLAIN)
def test_the_log_shows_the_documents_table(played: Folder, form: str) -> None:
    rows = played.load().log("leaders", LogFilter(form=form))
    assert [(row["op"], values(row["data"])) for row in rows] == PLAIN[form]


@pytest.mark.parametrize("form", PAIRED)
def test_the_log_shows_both_images_of_a_change(played: Folder, form: str) -> None:
    rows = played.load().log("leaders", LogFilter(form=form))
    assert [(row["op"], values(row["before"]), values(row["after"])) for row in rows] == PAIRED[form]


@pytest.mark.parametrize("form", [*PLAIN, *PAIRED])
def test_the_python_surface_gives_the_same(played: Folder, form: str) -> None:
    rows = engine(EngineChoice("sail")).to_arrow(errata.changelog_stream(played.load().changelog("leaders"), form)).to_pylist()
    if form in PLAIN:
        assert [(row["op"], values(row["data"])) for row in rows] == PLAIN[form]
    else:
        assert [(row["op"], values(row["before"]), values(row["after"])) for row in rows] == PAIRED[form]


def test_debezium_says_when(played: Folder) -> None:
    moments = {run["epoch"]: int(run["finished"].timestamp() * 1000) for run in played.load().runs()}
    rows = list(played.load().log("leaders", LogFilter(form="debezium")))
    assert [row["ts_ms"] for row in rows] == [moments[row["source"]["epoch"]] for row in rows]


def test_frames_say_whose_changes_they_are(played: Folder) -> None:
    """Debezium's envelope has `ts_ms` and `source` (pipeline, node, epoch, offset)."""
    project = played.load()
    rows = engine(EngineChoice("sail")).to_arrow(errata.changelog_stream(project.changelog("leaders", (2, 3)), "debezium")).to_pylist()
    shown = list(project.log("leaders", LogFilter(since=2, form="debezium")))
    assert [{name: row[name] for name in ("op", "ts_ms", "source")} for row in rows] == [{name: row[name] for name in ("op", "ts_ms", "source")} for row in shown]
    assert {row["source"]["epoch"] for row in shown} == {2, 3}


def test_offsets_go_on_where_earlier_epochs_are_left_out(played: Folder) -> None:
    assert [row["offset"] for row in played.load().log("leaders", LogFilter(since=3))] == [4, 5, 6, 7]
    assert [row["offset"] for row in played.load().log("leaders", LogFilter(limit=3))] == [5, 6, 7]


def test_each_epoch_has_its_file_of_changes(played: Folder) -> None:
    found = [json.loads(line) for epoch in (1, 2, 3) for line in played.text(f"changes-{epoch}.jsonl").splitlines()]
    assert [(row["op"], values(row["before"]), values(row["after"])) for row in found] == SINGLE


def test_the_flat_file_has_old_values_in_columns(played: Folder) -> None:
    (row,) = played.rows("flat-2.csv")
    assert [row[name] for name in ("op", "place", "player_name", "old_player_name", "old_score")] == ["+C", "2", "Charlie", "Bob", "80"]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_files_of_many_changes_are_those_of_few(played: Folder, tmp_path: Path, engine: str) -> None:
    with limited(driver_rows=0):
        again = played_in(tmp_path, engine)
    for epoch in (1, 2, 3):
        few, many = (pq.read_table(folder.path / f"odf-{epoch}.parquet").drop_columns(["system_time", "event_time"]) for folder in (played, again))
        assert few.equals(many)
        assert played.text(f"changes-{epoch}.jsonl") == again.text(f"changes-{epoch}.jsonl")
        assert played.text(f"flat-{epoch}.csv") == again.text(f"flat-{epoch}.csv")


def test_parquet_has_the_columns_of_open_data_fabric(played: Folder) -> None:
    tables = [pq.read_table(played.path / f"odf-{epoch}.parquet") for epoch in (1, 2, 3)]
    assert tables[0].column_names == ["offset", "op", "system_time", "event_time", "place", "match_time", "player_name", "score"]
    rows = [row for table in tables for row in table.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(8))
    codes = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
    assert [(row["op"], tuple(str(row[name]) for name in ("place", "match_time", "player_name", "score"))) for row in rows] == [(codes[op], data) for op, data in TWO]


def test_the_log_has_the_columns_of_open_data_fabric_too(played: Folder) -> None:
    shown = [dict(row) for row in played.load().log("leaders", LogFilter(form="odf"))]
    assert list(shown[0]) == ["offset", "op", "system_time", "event_time", "place", "match_time", "player_name", "score"]
    filed = [row for epoch in (1, 2, 3) for row in pq.read_table(played.path / f"odf-{epoch}.parquet").to_pylist()]
    assert [{**row, "system_time": iso(row["system_time"]), "event_time": iso(row["event_time"])} for row in filed] == shown


def iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


HEADS = {
    "text": str.split, "csv": lambda out: out.splitlines()[0].split(","), "json": lambda out: list(json.loads(out)[0]),
    "jsonl": lambda out: list(json.loads(out.splitlines()[0])),
}  # fmt: skip


@pytest.mark.parametrize("format", HEADS)
def test_every_format_of_the_command_has_them(played: Folder, format: str) -> None:
    code, out, _ = command("log", str(played.path / "pipeline.yaml"), "leaders", "--form", "odf", "--epoch", "1", "--format", format)
    assert code == 0
    assert HEADS[format](out)[:4] == ["offset", "op", "system_time", "event_time"]


def test_the_log_as_csv_has_columns_for_the_values(played: Folder) -> None:
    _, out, _ = command("log", str(played.path / "pipeline.yaml"), "leaders", "--form", "single", "--epoch", "2", "--format", "csv")
    (row,) = csv.DictReader(StringIO(out))
    assert [row[name] for name in ("op", "place", "player_name", "old_player_name", "old_score")] == ["+C", "2", "Charlie", "Bob", "80"]
