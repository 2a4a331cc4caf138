"""One pipeline with a source of each merge strategy, random folders for them, and what plain Python makes of the same folders."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Record = dict[str, Any]
Files = dict[str, list[Record]]
Folders = dict[str, Files]

STRATEGIES = {
    "text": "snapshot",
    "keyed": "{strategy: snapshot, primary_key: [id]}",
    "append": "append",
    "ledger": "{strategy: ledger, primary_key: [id]}",
    "changes": "{strategy: changelog, primary_key: [id], op: op}",
    "upsert": "{strategy: upsert, primary_key: [id], deleted: 'w == \"gone\"'}",
}
COLUMNS = ("id", "v", "w")
NAMES = ("a", "b", "c", "d")
BAD = "many"
"""A value that is no number."""
COMES, GOES = ("+A", "c", "3", "+U"), ("-R", "d", "1")

_SOURCE = """\
  - type: source
    name: NAME
    config:
      name: NAME
      type: csv
      glob: NAME/*.csv
      files: { on_no_match: skip }
      on_unmapped: { mode: drop }
      merge: MERGE
      schema: [OP{ name: id, type: int }, { name: v, type: int }, { name: w, type: string }]
  - type: output
    name: NAME_out
    input: NAME
    config: { name: NAME_out, type: csv, path: out/NAME.csv }
"""


def pipeline() -> str:
    """The text of the pipeline."""
    made = ["pipeline: { name: strategies }\nnodes:\n"]
    for name, merge in STRATEGIES.items():
        op = "{ name: op, type: string }, " if name == "changes" else ""
        made.append(_SOURCE.replace("NAME", name).replace("MERGE", merge).replace("OP", op))
    return "".join(made) + "error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }\n"


def header(source: str) -> tuple[str, ...]:
    return ("op", *COLUMNS) if source == "changes" else COLUMNS


values = st.one_of(st.integers(0, 3), st.sampled_from([None, BAD]))
texts = st.sampled_from(["", "x", "gone"])
records = st.fixed_dictionaries({"op": st.sampled_from([*COMES, *GOES]), "id": st.integers(0, 3), "v": values, "w": texts})


@st.composite
def histories(draw: st.DrawFn) -> list[Folders]:
    """Folders after each of a few steps. Snapshots change at will; deliveries grow and come in any order."""
    folders: Folders = {name: {} for name in STRATEGIES}
    made = []
    for _ in range(draw(st.integers(2, 3))):
        folders = copy.deepcopy(folders)
        folders["text"] = draw(st.dictionaries(st.sampled_from(NAMES), st.lists(records, max_size=6), max_size=2)) if made == [] else draw(edited(folders["text"]))
        folders["keyed"] = draw(keyed_files())
        for name in ("append", "ledger", "changes", "upsert"):
            for file in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
                folders[name].setdefault(file, []).extend(draw(st.lists(records, max_size=3)))
        for file in draw(st.lists(st.sampled_from(NAMES), max_size=1)):
            folders["ledger"][file] = draw(st.lists(records, max_size=3))
        made.append(folders)
    return made


@st.composite
def edited(draw: st.DrawFn, files: Files) -> Files:
    """Files with records put in, taken out and moved, and perhaps under other names."""
    made: Files = {}
    for name, rows in files.items():
        kept = [row for row in rows if draw(st.integers(0, 4))]
        kept.insert(draw(st.integers(0, len(kept))), draw(records))
        made[draw(st.sampled_from([name, name, "z" + name]))] = kept
    return made


@st.composite
def keyed_files(draw: st.DrawFn) -> Files:
    """Records with keys of their own, spread over files. A record that cannot be read has no key."""
    made: Files = {}
    for number in draw(st.lists(st.integers(0, 8), unique=True, max_size=7)):
        made.setdefault(draw(st.sampled_from(NAMES[:2])), []).append({**draw(records), "id": number})
    return made


@dataclass
class Model:
    """Live rows of each source, step by step, and rejects: source, file, row, category."""

    ledger: dict[int, Record] = field(default_factory=dict)
    seen: Files = field(default_factory=dict)

    def step(self, folders: Folders) -> tuple[dict[str, list[Record]], set[tuple[Any, ...]]]:
        """The rows and the rejects after a run over these folders."""
        for _, _, record in good(_news(self.seen, folders["ledger"])):
            self.ledger.setdefault(record["id"], record)
        self.seen = copy.deepcopy(folders["ledger"])
        changes, unknown = fold(folders["changes"])
        rows = {
            "text": [record for _, _, record in good(folders["text"])],
            "keyed": by_key(record for _, _, record in good(folders["keyed"])),
            "append": [record for _, _, record in good(folders["append"])],
            "ledger": by_key(self.ledger.values()),
            "changes": by_key(changes.values()),
            "upsert": by_key(last(folders["upsert"]).values()),
        }
        rejects = {(name, file, row, "type_coercion_failure") for name, files in folders.items() for file, row, _ in bad(files)}
        return rows, rejects | {("changes", file, row, "retraction_of_unknown_key") for file, row in unknown}


def _news(seen: Files, files: Files) -> Files:
    """The records that a ledger has not read: of a file that begins as before the new ones, with their rows in their places."""
    made: Files = {}
    for name, rows in files.items():
        old = seen.get(name, [])
        same = rows[: len(old)] == old
        made[name] = [{**row, "v": BAD} if same and at < len(old) else row for at, row in enumerate(rows)]
    return made


def numbered(files: Files) -> Iterator[tuple[str, int, Record]]:
    for name in sorted(files):
        for row, record in enumerate(files[name], 1):
            yield name, row, record


def good(files: Files) -> Iterator[tuple[str, int, Record]]:
    return (one for one in numbered(files) if one[2]["v"] != BAD)


def bad(files: Files) -> Iterator[tuple[str, int, Record]]:
    return (one for one in numbered(files) if one[2]["v"] == BAD)


def by_key(rows: Any) -> list[Record]:
    return sorted(rows, key=lambda record: record["id"])


def last(files: Files) -> dict[int, Record]:
    """The records of an upsert source."""
    made: dict[int, Record] = {}
    for _, _, record in good(files):
        made.pop(record["id"], None)
        if record["w"] != "gone":
            made[record["id"]] = record
    return made


def fold(files: Files) -> tuple[dict[int, Record], set[tuple[str, int]]]:
    """The records of a changelog source, and the retractions of unknown keys."""
    made: dict[int, Record] = {}
    unknown = set()
    for file, row, record in good(files):
        if record["op"] in COMES:
            made[record["id"]] = record
        elif made.pop(record["id"], None) is None:
            unknown.add((file, row))
    return made, unknown


def shown(rows: list[Record]) -> list[Mapping[str, str]]:
    """Records as the output file has them."""
    return [{name: "" if row[name] is None else str(row[name]) for name in COLUMNS} for row in rows]
