"""`errata restate`: lines against a plain model over random histories; causes through every kind of node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.failures import Usage
from errata.core.options import Restatement
from tests.support.examples import examples
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Rows = dict[int, tuple[str, int]]
"""Month and amount by number."""

SOURCE = """\
pipeline: {name: books}
nodes:
  - type: source
    name: bookings
    config:
      name: bookings
      type: csv
      path: bookings.csv
      merge: {strategy: snapshot, primary_key: [no]}
      schema: [{name: no, type: int}, {name: month, type: string}, {name: amt, type: int}]
"""
SINK = "  - {type: output, name: out, input: bookings, config: {name: out, type: csv, path: out.csv, mapping: {number: no}}}\n"
steps = st.lists(st.dictionaries(st.integers(1, 4), st.tuples(st.sampled_from(["jan", "feb"]), st.integers(1, 3)), max_size=4), min_size=2, max_size=5)


def project(place: Path, nodes: str = SINK, head: str = SOURCE) -> Folder:
    folder = Folder(place)
    folder.write("pipeline.yaml", head + nodes)
    return folder


def deliver(folder: Folder, rows: Rows) -> None:
    folder.write_csv("bookings.csv", ("no", "month", "amt"), [{"no": no, "month": month, "amt": amt} for no, (month, amt) in rows.items()])


def modelled(states: Sequence[Rows], start: int | None, end: int) -> list[dict[str, Any]]:
    """The lines by month of a keyed source: `states` are its rows after each epoch."""
    lines = []
    for month in ("feb", "jan"):
        of = {epoch: {no: amt for no, (at, amt) in rows.items() if at == month} for epoch, rows in enumerate(states, 1)}
        first = next((epoch for epoch in range(start or 1, end + 1) if of[epoch]), None)
        if first is None:
            continue
        for no in sorted({*of[first], *of[end]}):
            was, now = of[first].get(no), of[end].get(no)
            changed = [epoch for epoch in range(first + 1, end + 1) if of[epoch].get(no) != of[epoch - 1].get(no)]
            if was != now:
                status = "added" if was is None else "withdrawn" if now is None else "restated"
                by = None if was is None or now is None else now - was
                line = {"field": "amt", "first": was, "now": now, "difference": by, "first_epoch": first, "last_epoch": changed[-1], "changes": len(changed), "status": status}
                lines.append({"month": month, "key": {"no": no}, **line})
    return lines


@given(steps=steps, data=st.data())
@examples(24, 3)
def test_lines_are_those_of_the_model(tmp_path_factory: pytest.TempPathFactory, steps: list[Rows], data: st.DataObject) -> None:
    folder, states = project(tmp_path_factory.mktemp("books")), list[Rows]()
    for rows in steps:
        deliver(folder, rows)
        states += [rows] if folder.run().epoch == len(states) + 1 else []
    end = data.draw(st.integers(1, len(states)))
    start = data.draw(st.none() | st.integers(1, end))
    found = [dict(line) for line in folder.load().restate("bookings", Restatement(("month",), (), start, end))]
    assert [{name: value for name, value in line.items() if name != "causes"} for line in found] == modelled(states, start, end)
    assert all(line["causes"] for line in found)
    renamed = [dict(line) for line in folder.load().restate("out", Restatement(("month",), ("amt",), start, end))]
    assert [line["key"] for line in renamed] == [{"number": line["key"]["no"]} for line in found]


NODES = """\
  - type: source
    name: rates
    config:
      name: rates
      type: csv
      path: rates.csv
      merge: {strategy: snapshot, primary_key: [month]}
      schema: [{name: month, type: string}, {name: rate, type: int}]
  - type: combine
    name: rated
    input: {b: bookings, r: rates}
    config: {where: b.month == r.month, match: first, propagate_ck: driver, cxl: "emit no = b.no\\nemit month = b.month\\nemit amt = b.amt * r.rate"}
  - {type: transform, name: kept, input: rated, config: {cxl: "emit double = amt * 2"}}
  - {type: aggregate, name: totals, input: kept, config: {group_by: [month], cxl: "emit total = sum(double)"}}
  - {type: output, name: out, input: totals, config: {name: out, type: csv, path: out.csv}}
  - type: transform
    name: ranked
    input: bookings
    config: {analytic_window: {group_by: [month], sort_by: [{field: amt}]}, cxl: "emit before = $window.lag(1).amt"}
  - {type: output, name: window, input: ranked, config: {name: window, type: csv, path: window.csv, mapping: {at: month}}}
  - {type: transform, name: single, input: bookings, config: {cxl: "distinct by month"}}
  - {type: output, name: one, input: single, config: {name: one, type: csv, path: one.csv}}
  - {type: output, name: told, input: bookings, config: {name: told, type: csv, path: told.csv, history: {key: [month], valid_from: amt}}}
"""


def causes(folder: Folder, node: str, by: str = "month") -> list[tuple[str, str, list[str]]]:
    return [(line[by], line["field"], line["causes"]) for line in folder.load().restate(node, Restatement((by,)))]


def rated(place: Path, head: str = SOURCE) -> Folder:
    folder = project(place, NODES, head)
    folder.write("rates.csv", "month,rate\njan,1\nfeb,1\n")
    deliver(folder, {1: ("jan", 1), 2: ("jan", 2), 3: ("feb", 3)})
    folder.run()
    return folder


@pytest.mark.parametrize("head", [SOURCE, "changelog: {persist: boundaries}\n" + SOURCE], ids=["all", "boundaries"])
def test_recomputed_rows_have_the_causes_of_their_sources(tmp_path: Path, head: str) -> None:
    folder = rated(tmp_path, head)
    deliver(folder, {1: ("jan", 1), 2: ("jan", 4), 3: ("feb", 3), 4: ("jan", 3)})
    folder.run()
    assert causes(folder, "totals") == [("jan", "total", ["correction", "ingest"])]
    assert causes(folder, "out") == [("jan", "total", ["correction", "ingest"])]
    folder.write("rates.csv", "month,rate\njan,1\nfeb,2\n")
    folder.run()
    assert causes(folder, "totals")[0] == ("feb", "total", ["correction"])
    assert command("revert", str(tmp_path / "pipeline.yaml"), "--to", "2")[0] == 0
    assert causes(folder, "totals") == [("jan", "total", ["correction", "ingest"])]
    assert command("revert", str(tmp_path / "pipeline.yaml"), "--to", "3")[0] == 0
    assert causes(folder, "totals")[0] == ("feb", "total", ["correction", "revert:2", "revert:3"])


def test_nodes_that_look_at_several_rows_have_the_causes_of_all(tmp_path: Path) -> None:
    folder = rated(tmp_path)
    deliver(folder, {1: ("jan", 1), 2: ("jan", 4), 3: ("feb", 3), 4: ("jan", 2)})
    folder.run()
    lines = {(line["key"]["no"], line["field"]): line["causes"] for line in folder.load().restate("ranked", Restatement(("month",)))}
    assert lines[2, "before"] == ["correction", "ingest"]  # 4 came between 1 and 2
    assert lines[4, "amt"] == ["ingest"]
    deliver(folder, {2: ("jan", 4), 3: ("feb", 3), 4: ("jan", 2)})
    folder.run()
    found = [(line["key"], line["field"], line["status"], line["causes"]) for line in folder.load().restate("single", Restatement(("month",)))]
    gone = [({"no": 1}, field, "withdrawn") for field in ("amt",)]
    came = [({"no": 2}, field, "added") for field in ("amt",)]
    assert [line[:3] for line in found] == gone + came
    assert {cause for line in found for cause in line[3]} == {"correction"}  # the record that went was a correction of its file
    history = list(folder.load().restate("told", Restatement(("month",), ("valid_to",))))
    assert {line["status"] for line in history} <= {"added", "restated", "withdrawn"}
    assert all("recompute" not in line["causes"] for line in history)


KEEPING = """\
  - {type: source, name: rates, config: {name: rates, type: csv, path: rates.csv, schema: [{name: month, type: string}, {name: rate, type: int}]}}
  - {type: transform, name: written, input: bookings, config: {cxl: "emit no = no emit twice = amt * 2"}}
  - {type: transform, name: changed, input: bookings, config: {cxl: "emit no = no + 1"}}
  - type: combine
    name: joined
    input: {b: rates, a: written}
    config: {where: a.month == b.month, drive: a, propagate_ck: driver, cxl: "emit month = a.month emit number = a.no emit amt = a.amt"}
  - type: combine
    name: gathered
    input: {a: bookings, b: rates}
    config: {where: a.month == b.month, match: collect, propagate_ck: driver}
  - type: combine
    name: every
    input: {a: bookings, b: rates}
    config: {where: a.month == b.month, match: all, propagate_ck: driver, cxl: "emit month = a.month emit no = a.no emit amt = a.amt"}
"""


@pytest.mark.parametrize(
    ("node", "key"),
    [("written", {"no": 1}), ("joined", {"number": 1}), ("gathered", {"no": 1}), ("changed", None), ("every", None)],
)
def test_rows_that_keep_a_record_are_named_by_its_primary_key(node: str, key: dict[str, int] | None, tmp_path: Path) -> None:
    """"The primary key of a keyed source and of row-keeping nodes behind it that still have it", also where they emit a plain copy of it, and of the driver of a combine."""
    names = ("written", "changed", "joined", "gathered", "every")
    outputs = "".join(f"  - {{type: output, name: o_{name}, input: {name}, config: {{name: o_{name}, type: json, path: {name}.json}}}}\n" for name in names)
    folder = project(tmp_path, KEEPING + outputs)
    folder.write("rates.csv", "month,rate\njan,1\njan,2\n")
    deliver(folder, {1: ("jan", 1)})
    folder.run()
    deliver(folder, {1: ("jan", 3)})
    folder.run()
    found = [line["key"] for line in folder.load().restate(node, Restatement(("month",), ("amt",)))]
    assert found == [key] if key else found and all(set(one) == {"_key"} for one in found)


def test_a_rollback_is_a_cause(tmp_path: Path) -> None:
    head = SOURCE.replace("path: bookings.csv", "path: bookings.csv\n      correlation_key: month").replace("nodes:", "error_handling: {strategy: continue}\nnodes:")
    folder = project(tmp_path, "  - {type: transform, name: checked, input: bookings, config: {cxl: 'emit share = 6 / amt'}}\n"
                     "  - {type: aggregate, name: totals, input: checked, config: {group_by: [month], cxl: 'emit total = sum(amt)'}}\n"
                     "  - {type: output, name: out, input: totals, config: {name: out, type: csv, path: out.csv}}\n", head)  # fmt: skip
    deliver(folder, {1: ("jan", 1), 2: ("feb", 2)})
    folder.run()
    deliver(folder, {1: ("jan", 1), 2: ("feb", 2), 3: ("feb", 0)})
    folder.run()
    [(month, field, found)] = causes(folder, "totals")
    assert (month, field) == ("feb", "total")
    assert found
    assert all(cause.startswith("rollback:bookings:") for cause in found)


def test_folded_epochs_are_the_first_publication(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for amt in (1, 2, 3):
        deliver(folder, {1: ("jan", amt)})
        folder.run()
    assert command("compact", str(tmp_path / "pipeline.yaml"), "--before", "3")[0] == 0
    [line] = folder.load().restate("bookings", Restatement(("month",)))
    assert (line["first"], line["now"], line["first_epoch"], line["changes"]) == (2, 3, 2, 1)
    with pytest.raises(Usage, match="folded into a base"):
        list(folder.load().restate("bookings", Restatement(("month",), (), 1)))


def test_answers_as_text_json_and_csv(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for amt in (1, 2):
        deliver(folder, {1: ("jan", amt)})
        folder.run()
    pipeline = str(tmp_path / "pipeline.yaml")
    code, stdout, _ = command("restate", pipeline, "bookings", "--by", "month", "--format", "json")
    assert code == 0
    assert json.loads(stdout) == [
        {"month": "jan", "key": {"no": 1}, "field": "amt", "first": 1, "now": 2, "difference": 1, "first_epoch": 1, "last_epoch": 2, "changes": 1, "status": "restated", "causes": ["correction"]}
    ]  # fmt: skip
    text = command("restate", pipeline, "bookings", "--by", "month")[1].splitlines()
    assert text[0].split() == ["month", "key", "field", "first", "now", "difference", "first_epoch", "last_epoch", "changes", "status", "causes"]
    assert text[2].split() == ["jan", '{"no":1}', "amt", "1", "2", "1", "1", "2", "1", "restated", "correction"]
    assert command("restate", pipeline, "bookings", "--by", "month", "--from", "2", "--format", "csv")[1].count("\n") == 1
    for words in (["--by", "week"], ["--by", "month", "--field", "x"], ["--by", "month", "--to", "9"], ["--by", "month", "--from", "2", "--to", "1"], []):
        assert command("restate", pipeline, "bookings", *words)[0] == 64
