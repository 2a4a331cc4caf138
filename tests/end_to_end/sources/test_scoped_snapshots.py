"""Scoped snapshots against a plain Python model: deliveries in any order, written anew, removed, with records that move between scopes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: scopes }
nodes:
  - type: source
    name: fields
    config:
      name: fields
      type: csv
      glob: fields/*.csv
      files: { on_no_match: skip }
      merge: { strategy: snapshot, primary_key: [id], scope: [month] }
      schema: [{ name: id, type: int }, { name: month, type: int }, { name: v, type: int }]
  - type: source
    name: paths
    config:
      name: paths
      type: csv
      glob: paths/**/*.csv
      files: { on_no_match: skip }
      merge: { strategy: snapshot, primary_key: [id], scope: { path: "{month}.csv" } }
      schema: [{ name: id, type: int }, { name: v, type: int }, { name: month, type: int }]
  - { type: output, name: of_fields, input: fields, config: { name: of_fields, type: csv, path: out/fields.csv } }
  - { type: output, name: of_paths, input: paths, config: { name: of_paths, type: csv, path: out/paths.csv } }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }
"""
MONTHS = (1, 2, 3)
Record = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A change before a run: files written (name, records), and files removed. Names of `paths` are `<folder>/<month>`."""

    fields: dict[str, list[Record]]
    paths: dict[str, list[Record]]
    gone: tuple[str, ...] = ()


def _unique(records: list[Record]) -> list[Record]:
    return list({record["id"]: record for record in records}.values())


months = st.sampled_from([*MONTHS, *MONTHS, None])
in_fields = st.lists(st.fixed_dictionaries({"id": st.integers(0, 5), "month": months, "v": st.integers(0, 2)}), max_size=5).map(_unique)
in_paths = st.lists(st.fixed_dictionaries({"id": st.integers(0, 5), "v": st.integers(0, 2)}), max_size=4).map(_unique)
names = st.builds("{}/{}".format, st.sampled_from("xyz"), st.sampled_from(MONTHS))
steps = st.builds(
    Step,
    st.dictionaries(st.sampled_from("abcd"), in_fields, max_size=2),
    st.dictionaries(names, in_paths, max_size=2),
    st.lists(st.sampled_from([*"abcd", "x/1", "y/2"]), max_size=1).map(tuple),
)


@dataclass
class Scopes:
    """The records of a source with scopes."""

    counted: dict[int, tuple[str, int]] = field(default_factory=dict)
    records: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    turn: int = 0

    def deliver(self, files: dict[str, list[Record]], scopes: dict[str, set[int]]) -> None:
        """Deliver files, each for some scopes."""
        self.turn += 1
        for name, records in files.items():
            self.records[name, self.turn] = records
            for scope in scopes[name]:
                self.counted[scope] = max(self.counted.get(scope, ("", 0)), (name, self.turn))

    def live(self) -> list[Record]:
        """The live records by key."""
        found: dict[int, Record] = {}
        for scope, delivery in sorted(self.counted.items(), key=lambda one: one[1]):
            found |= {record["id"]: record for record in self.records[delivery] if record["month"] == scope}
        return [found[key] for key in sorted(found)]


def content(folder: Folder, step: Step, known: dict[str, list[Record]]) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """Write the files of a step. Returns the ones that differ from what the source read."""
    files = {f"fields/{name}": records for name, records in step.fields.items()} | {f"paths/{name}": records for name, records in step.paths.items()}
    changed = {name: records for name, records in files.items() if known.get(name) != records}
    for name, records in files.items():
        folder.write_csv(f"{name}.csv", ("id", "month", "v") if name.startswith("fields") else ("id", "v"), records)
    known |= files
    of = {side: {name.removeprefix(side): records for name, records in changed.items() if name.startswith(side)} for side in ("fields/", "paths/")}
    return of["fields/"], of["paths/"]


def shown(records: list[Record], columns: tuple[str, ...]) -> list[dict[str, str]]:
    return [{name: str(record[name]) for name in columns} for record in records]


@examples(60, 3)
@given(st.lists(steps, min_size=2, max_size=5))
def test_the_latest_delivery_of_each_scope_counts(history: list[Step]):
    with tempfile.TemporaryDirectory() as place:
        folder, fields, paths = Folder(Path(place)), Scopes(), Scopes()
        known: dict[str, list[Record]] = {}
        folder.write("pipeline.yaml", PIPELINE)
        for step in history:
            in_folder, by_path = content(folder, step, known)
            for name in step.gone:
                folder.remove(f"{'paths' if '/' in name else 'fields'}/{name}.csv")
            present = {name: records for name, records in in_folder.items() if name not in step.gone}
            fields.deliver(present, {name: {record["month"] for record in records if record["month"] is not None} for name, records in present.items()})
            there = {name: [{**record, "month": int(name[2:])} for record in records] for name, records in by_path.items() if name not in step.gone}
            paths.deliver(there, {name: {int(name[2:])} for name in there})
            for name in step.gone:
                key = f"{'paths' if '/' in name else 'fields'}/{name}"
                if name in in_folder or name in by_path:
                    known.pop(key)
            folder.run()
            assert folder.rows("out/fields.csv") == shown(fields.live(), ("id", "month", "v"))
            assert folder.rows("out/paths.csv") == shown(paths.live(), ("id", "v", "month"))
        code, out, _ = command("verify", str(folder.path / "pipeline.yaml"), "--quiet")
        assert code == 0, out


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE)
    made.write("fields/a.csv", "id,month,v\n1,1,10\n2,2,20\n")
    made.write("paths/x/1.csv", "id,v\n1,10\n")
    return made


def test_a_path_that_does_not_fit_ends_the_run(folder: Folder):
    folder.write("paths/x/first.csv", "id,v\n1,10\n")
    code, _, error = command("run", str(folder.path / "pipeline.yaml"))
    assert code == 4
    assert "'first' in the path is no int" in error


def test_a_key_twice_in_one_delivery_ends_the_run(folder: Folder):
    folder.write("fields/a.csv", "id,month,v\n1,1,10\n1,2,20\n")
    code, _, error = command("run", str(folder.path / "pipeline.yaml"))
    assert code == 4
    assert "the primary key id=1 stands for 2 records (fields/a.csv row 1, fields/a.csv row 2)" in error


def test_an_empty_delivery_is_warned_of(folder: Folder):
    folder.run()
    folder.write("fields/b.csv", "id,month,v\n")
    code, _, error = command("run", str(folder.path / "pipeline.yaml"))
    assert code == 0
    assert "W461: source 'fields': fields/b.csv has no records, and so covers no scope" in error
    assert folder.rows("out/fields.csv") == [{"id": "1", "month": "1", "v": "10"}, {"id": "2", "month": "2", "v": "20"}]


def test_an_edited_source_keeps_scopes_whose_files_are_gone(folder: Folder):
    folder.write("fields/b.csv", "id,month,v\n2,3,21\n")
    folder.run()
    folder.remove("fields/a.csv")
    folder.write("pipeline.yaml", PIPELINE.replace("glob: fields/*.csv", "glob: fields/*.csv\n      correlation_key: v"))
    folder.run()
    assert folder.rows("out/fields.csv") == [{"id": "1", "month": "1", "v": "10"}, {"id": "2", "month": "3", "v": "21"}]
    folder.write("fields/b.csv", "id,month,v\n9,3,0\n")
    folder.run()
    assert [row["id"] for row in folder.rows("out/fields.csv")] == ["1", "2", "9"]
