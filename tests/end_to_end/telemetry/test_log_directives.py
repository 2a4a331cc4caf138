"""Log directives and traces of transforms: which lines are logged at which level."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command

SOURCE = """\
pipeline: { name: talking }
error_handling: { strategy: continue }
changelog: { persist: PERSIST }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, glob: rows/*.csv, schema: [{ name: id, type: int }] }
"""
PIPELINE = SOURCE + """\
  - type: transform
    name: shares
    input: rows
    config:
      cxl: "emit share = 12 / (id - 2)"
      log:
        - { level: warn, when: after_transform, message: done }
        - { level: info, when: per_record, every: 2, message: every second }
        - { level: warn, when: per_record, condition: "share > 5", fields: [id, share], message: much }
        - { level: error, when: on_error, message: failed }
        - { level: warn, when: on_error, fields: [id, share], message: lost }
        - { level: debug, when: before_transform, message: begins }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv } }
"""


def lines(folder: Folder, level: str) -> list[str]:
    _, _, err = command("run", str(folder.path / "pipeline.yaml"), "--log-level", level)
    return [line for line in err.splitlines() if "'shares'" in line]


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_lines_of_what_a_run_brings(tmp_path: Path, persist: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("PERSIST", persist))
    folder.write("rows/a.csv", "id\n1\n2\n3\n4\n")
    assert lines(folder, "debug") == [
        "debug: node 'shares': begins",
        "info: node 'shares': every second",
        "warn: node 'shares': much (id=3, share=12)",
        "warn: node 'shares': much (id=4, share=6)",
        "error: node 'shares': failed: division by zero",
        "warn: node 'shares': lost (id=2, share=null): division by zero",
        "warn: node 'shares': done",
    ]
    assert lines(folder, "debug") == []
    folder.write("rows/b.csv", "id\n" + "3\n" * 25)
    assert lines(folder, "warn") == [*["warn: node 'shares': much (id=3, share=12)"] * 20, "warn: node 'shares': much (and 5 more)", "warn: node 'shares': done"]


def test_a_record_that_ends_the_run_is_logged_before(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("PERSIST", "all").replace("error_handling: { strategy: continue }\n", ""))
    folder.write("rows/a.csv", "id\n1\n2\n3\n")
    code, _, err = command("run", str(folder.path / "pipeline.yaml"))
    assert code == 3
    own = [line for line in err.splitlines() if "'shares'" in line]
    assert own == [
        "info: node 'shares': every second",
        "warn: node 'shares': much (id=3, share=12)",
        "error: node 'shares': failed: division by zero",
        "warn: node 'shares': lost (id=2, share=null): division by zero",
        "error: node 'shares': rows/a.csv: record 2: division by zero (type_coercion_failure)",
    ]


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_a_run_in_which_nothing_fails_has_no_lines_of_failures(tmp_path: Path, persist: str) -> None:
    """A node that keeps no rows has a table only when a record failed there."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("PERSIST", persist))
    folder.write("rows/a.csv", "id\n3\n")
    assert lines(folder, "warn") == ["warn: node 'shares': much (id=3, share=12)", "warn: node 'shares': done"]
    assert folder.text("out.csv") == "id,share\n3,12\n"


VALUES = """\
pipeline: { name: talking }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: json
      path: rows.json
      schema:
        - { name: id, type: int }
        - { name: at, type: date_time }
        - { name: price, type: "decimal(10,2)" }
        - { name: more, type: any }
        - { name: address.city, type: string }
        - { name: new, type: bool, optional: true }
  - type: transform
    name: shares
    input: rows
    config:
      cxl: "emit share = 12 / id"
      log:
        - { level: info, when: per_record, message: seen, fields: [at, price, more, address.city, new] }
        - { level: warn, when: on_error, message: lost, fields: [at, price, more, address.city, new] }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv, exclude: [more] } }
error_handling: { strategy: continue }
"""


def test_values_of_every_type(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", VALUES)
    text = '[{"id": 1, "at": "2024-02-29T10:00:00.5", "price": "1.5", "more": {"k": [1, null]}, "address": {"city": "Ulm"}, "new": true}, {"id": 0, "address": {"city": ""}}]'
    folder.write("rows.json", text)
    assert lines(folder, "info") == [
        'info: node \'shares\': seen (at=2024-02-29T10:00:00.5, price=1.50, more={"k":[1,null]}, address.city=Ulm, new=true)',
        "warn: node 'shares': lost (at=null, price=null, more=null, address.city=, new=null): division by zero",
    ]


TRACES = SOURCE + """\
  - type: route
    name: sides
    input: rows
    config: { conditions: { small: "id < 100" }, default: rest }
  - type: transform
    name: shares
    input: sides.small
    config:
      cxl: |
        trace warn if id > 2 then "id " + id.to_string()
        filter id != 1
        emit share = 12 / (id - 2)
        emit each part in [share, id.debug("seen")] {
          trace info part
          emit id = part
        }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_traces_of_the_records_that_a_run_brings(tmp_path: Path, persist: str) -> None:
    """Each line is of a record that comes to its place: 1 is filtered out ahead of the division, at which 2 fails; 100 is on another branch."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TRACES.replace("PERSIST", persist))
    folder.write("rows/a.csv", "id\n1\n2\n3\n100\n4\n")
    warned = ["warn: node 'shares': id 3", "warn: node 'shares': id 4"]
    parts = ["info: node 'shares': 12", "info: node 'shares': 3", "info: node 'shares': 6", "info: node 'shares': 4"]
    assert lines(folder, "info") == [*warned, *parts]
    assert lines(folder, "info") == []
    folder.write("rows/b.csv", "id\n" + "8\n" * 25)
    assert lines(folder, "warn") == [*["warn: node 'shares': id 8"] * 20, "warn: node 'shares': (and 5 more)"]
    folder.write("rows/c.csv", "id\n5\n")
    assert lines(folder, "trace") == ["warn: node 'shares': id 5", "trace: node 'shares': seen: 5", "info: node 'shares': 4", "info: node 'shares': 5"]
