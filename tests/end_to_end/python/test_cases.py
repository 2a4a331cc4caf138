"""`errata test` and the plugin for pytest: what passes, what differs and how it is shown, exit codes, case files with problems."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.cases.case_run import CaseRun
from errata.cases.plugin import PipelineCase
from errata.cases.table_files import TableFile, table_of
from errata.cases.tables import Table, differences, read_table
from errata.core.failures import Exit, Usage
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, standing_in

ROOT = Path(__file__).parents[3]
PIPELINE = """\
pipeline: { name: shop, vars: { pipeline: { least: { type: int, default: 0 } } } }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: orders
    expect: [{ range: { column: amount, max: 100 }, name: large }]
    config: { name: orders, type: csv, path: data/orders.csv, schema: [{ name: id, type: int }, { name: region, type: string }, { name: amount, type: float }] }
  - { type: transform, name: kept, input: orders, config: { cxl: "filter amount >= $pipeline.least" } }
  - { type: aggregate, name: revenue, input: kept, config: { group_by: [region], cxl: "emit total = sum(amount)" } }
  - { type: output, name: report, input: revenue, config: { name: report, type: csv, path: out/report.csv } }
"""
GOOD = """\
cases:
  - name: a correction
    steps:
      - given: { orders: "id | region | amount\\n1 | north | 40\\n2 | south | 25" }
        expect: { revenue: "region | total\\nsouth | 25\\nnorth | 40.0" }
      - given: { orders: "id | region | amount\\n1 | north | 50\\n2 | south | 25" }
        changes: { revenue: "op | region | total\\n-C | north | 40\\n+C | north | 50", kept: "op | id | amount\\n-R | 1 | 40\\n+A | 1 | 50" }
  - name: files and texts
    files: { data/orders.csv: given.csv }
    expect: { report: "region | total\\nwest | 7" }
  - name: dead letters and expectations
    texts: { data/orders.csv: "id,region,amount\\none,north,1\\n2,north,200\\n" }
    dlq: "category | id\\ntype_coercion_failure | one"
    failing: { orders.large: 1 }
  - name: variables
    variables: { pipeline.least: 30 }
    given: { orders: [{ id: 1, region: north, amount: 40 }, { id: 2, region: south, amount: 25 }] }
    expect: { revenue: [{ region: north, total: 40 }] }
  - name: a run that fails
    exit_code: 4
    message: data/orders.csv
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("shop.yaml", PIPELINE)
    made.write("given.csv", "id,region,amount\n1,west,7\n")
    return made


def test_a_case_reaches_nobody_outside(folder: Folder) -> None:
    folder.write("shop.test.yaml", "cases: [{ name: one, files: { data/orders.csv: given.csv } }]")
    folder.write("shop.yaml", PIPELINE + f"notify: [{{ command: [touch, {folder.path / 'told'}] }}]\n")
    assert command("test", str(folder.path))[0] == 0
    assert not (folder.path / "told").exists()


WORLD = """\
pipeline: { name: world }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: sql, connection: real, table: sales.orders, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: amount, type: decimal, scale: 2 }] }
  - type: source
    name: rates
    config: { name: rates, type: csv, path: s3://bucket/rates.csv, schema: [{ name: id, type: int }] }
  - { type: output, name: table, input: orders, config: { name: table, type: sql, connection: real, table: shop.report, primary_key: [id] } }
  - { type: output, name: events, input: orders, config: { name: events, type: sql, connection: real, table: events, mode: op_rows } }
  - { type: output, name: object, input: rates, config: { name: object, type: csv, path: s3://bucket/out.csv } }
  - { type: output, name: lake, input: rates, config: { name: lake, type: delta, path: s3://bucket/lake } }
"""
CONNECTIONS = """\
[connections.real]
url = "env:NOT_SET_ANYWHERE"
[connections.store]
url = "s3://bucket"
secret_access_key = "env:NOT_SET_EITHER"
access_key_id = "env:NOT_SET_EITHER"
"""


def test_databases_and_objects_have_stand_ins(folder: Folder) -> None:
    folder.write("errata.toml", CONNECTIONS)
    folder.write("world.yaml", WORLD)
    run = CaseRun(folder.path / "world.yaml", folder.path / "case", folder.path)
    run.folder.mkdir()
    case = PipelineCase(run)
    case.step({"orders": "id | amount\n1 | 2.50\n2 | 3.00", "rates": "id\n7"}, expect={"table": "id | amount\n1 | 2.5\n2 | 3", "object": "id\n7"})
    result = case.step({"orders": "id | amount\n1 | 2.75\n2 | 3.00"}, changes={"table": "op | amount\n-C | 2.5\n+C | 2.75"})
    assert result is not None
    with closing(sqlite3.connect(case.folder / "databases" / "real.sqlite")) as database:
        assert database.execute('SELECT id, amount FROM "shop.report" ORDER BY id').fetchall() == [(1, "2.75"), (2, "3.00")]
        assert database.execute("SELECT count(*) FROM events").fetchone() == (4,)
    assert (case.folder / "objects/bucket/out.csv").read_text() == "id\n7\n"
    assert (case.folder / "objects/bucket/lake/_delta_log").is_dir()


ROWS = [{"id": 1, "amount": "2.50"}, {"id": 2, "amount": None}]
FILES = {
    "rows.csv": "\ufeffid,amount\r\n1,2.50\r\n\r\n2,\r\n", "rows.json": json.dumps(ROWS), "rows.jsonl": "\n\n".join(map(json.dumps, ROWS)), "rows.ndjson": '{"amount":2.50,"id":1}\n{"id":2}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", [*FILES, "rows.parquet"])
def test_a_source_of_a_database_takes_the_rows_of_a_file(name: str, folder: Folder) -> None:
    folder.write("errata.toml", CONNECTIONS)
    folder.write("world.yaml", WORLD)
    if name in FILES:
        folder.write(f"given/{name}", FILES[name])
    else:
        (folder.path / "given").mkdir()
        pq.write_table(pa.table({"id": [1, 2], "amount": pa.array([Decimal("2.50"), None], pa.decimal128(10, 2))}), folder.path / "given" / name)
    folder.write("expected.csv", "amount,id\n,2\n2.5,1\n")
    folder.write("world.test.yaml", f"cases: [{{ name: one, given: {{ orders: {{ file: given/{name} }}, rates: {{ file: rates.csv }} }}, expect: {{ table: {{ file: expected.csv }} }} }}]")
    folder.write("rates.csv", "id\n")
    code, stdout, wrong = command("test", str(folder.path))
    assert (code, stdout.splitlines()[-1]) == (0, "1 case, 0 failed"), stdout + wrong


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.csv", "rows.parquet"])
@given(st.lists(st.text(min_size=1, max_size=5) | st.just("a\u2028b\x85c\x1cd"), min_size=1, max_size=4))
@examples(40)
def test_texts_of_a_file_come_whole(name: str, texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, rows = Path(folder, name), [{"id": text} for text in texts]
        if name == "rows.parquet":
            pq.write_table(pa.Table.from_pylist(rows), file)
        elif name == "rows.csv":
            file.write_bytes("\r\n".join(["id", *('"' + text.replace('"', '""') + '"' for text in texts)]).encode())
        else:
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            file.write_bytes((f"[{','.join(lines)}]" if name == "rows.json" else "\n".join(lines)).encode())
        assert table_of(TableFile(file=name), Path(folder)) == Table(["id"], [[text] for text in texts])


def test_a_parquet_file_has_each_column_once(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]), tmp_path / "rows.parquet")
    with pytest.raises(Usage, match="the column 'id' twice"):
        table_of(TableFile(file="rows.parquet"), tmp_path)


def test_a_null_of_a_single_csv_column_is_in_quotes_and_a_blank_line_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('id\n1\n\n""\n2\n\n')
    assert table_of(TableFile(file="rows.csv"), tmp_path) == Table(["id"], [["1"], [None], ["2"]])


def test_a_file_may_be_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id\n1\n")
    (tmp_path / "cases").mkdir()
    for place in ("../rows.csv", str(tmp_path / "rows.csv")):
        assert table_of(TableFile(file=place), tmp_path / "cases") == Table(["id"], [["1"]])


@pytest.mark.parametrize(("name", "text", "message"), [
    ("none.csv", None, "cannot be read"), ("rows.txt", "id\n", "known format"), ("rows.csv", "", "no line with the names"), ("rows.csv", "id,amount\n1\n", "record 1 has 1 cells"),
    ("rows.json", "{", "holds no rows"), ("rows.json", '{"id": 1}', "holds no rows"), ("rows.parquet", "PAR1", "holds no rows"), ("rows.csv", 'id\n"a', "holds no rows"),
    ("rows.csv", "id,id\n1,2\n", "the column 'id' twice"), ("rows.json", '[{"id": 1, "id": 2}]', "the column 'id' twice"), ("rows.jsonl", '{"id": 1}\n\n{"id": }\n', "line 3: Expecting value"),
    ("rows.json", "[" * 200_000, "nested too deeply"), ("rows.ndjson", '{"id": ' * 200_000, "nested too deeply"),
])  # fmt: skip
def test_a_file_without_rows_says_why(name: str, text: str | None, message: str, folder: Folder) -> None:
    folder.write("errata.toml", CONNECTIONS)
    folder.write("world.yaml", WORLD)
    if text is not None:
        folder.write(name, text)
    folder.write("world.test.yaml", f"cases: [{{ name: one, given: {{ orders: {{ file: {name} }}, rates: id }} }}]")
    code, _, wrong = command("test", str(folder.path))
    assert (code, message in wrong, name in wrong) == (Exit.USAGE, True, True), wrong


def test_a_pipeline_in_place_of_its_cases(folder: Folder) -> None:
    code, _, wrong = command("test", str(folder.path / "shop.yaml"))
    assert (code, "shop.yaml is a pipeline" in wrong, "errata test shop.test.yaml" in wrong, "1 error" in wrong) == (1, True, True, True)


@pytest.mark.parametrize(("rows", "source", "what"), [({"rates": "id\n7"}, "orders", "a database"), ({"orders": "id | amount"}, "rates", "an object store")])
def test_what_is_real_has_to_be_given(rows: dict[str, Any], source: str, what: str, folder: Folder) -> None:
    folder.write("errata.toml", CONNECTIONS)
    folder.write("world.yaml", WORLD)
    folder.write("world.test.yaml", json.dumps({"cases": [{"name": "one", "given": rows}]}))
    code, out, err = command("test", str(folder.path))
    assert (code, out) == (Exit.USAGE, "")
    assert f"source '{source}' reads {what}, and a case reads nothing that is real" in err


def test_cases_that_pass(folder: Folder) -> None:
    folder.write("shop.test.yaml", GOOD)
    code, out, err = command("test", str(folder.path))
    assert (code, out.splitlines()[-1], err) == (0, "5 cases, 0 failed", "")
    assert sorted(path.name for path in folder.path.iterdir()) == ["given.csv", "shop.test.yaml", "shop.yaml"]


def test_how_a_difference_is_shown(folder: Folder) -> None:
    folder.write("own.test.yaml", """\
pipeline: shop.yaml
cases:
  - name: wrong
    given: { orders: "id | region | amount\\n1 | north | 40\\n2 | | 25" }
    expect: { revenue: "region | total\\nnorth | 41\\n      | 25", report: "regoin\\nx" }
    failing: { orders.large: 2 }
  - name: exit code
    given: { orders: "id | region | amount\\n1 | north | x" }
  - name: fine
    given: { orders: "id | region | amount" }
    expect: { revenue: "region | total" }
""")  # fmt: skip
    with standing_in(folder.path):
        code, out, _ = command("test", "-k", "wrong")
    assert code == 5
    assert out == """\
FAILED  own.test.yaml: wrong
  step 1: rows of revenue: 1 missing row, 1 unexpected row
      region | total
    - north  | 41
    + north  | 40
  step 1: rows of report have no column 'regoin'; did you mean 'region'?
  step 1: expectation 'orders.large': 0 failing rows, not 2
1 case, 1 failed
"""
    code, out, _ = command("test", str(folder.path), "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["case"], row["verdict"], row["step"]) for row in rows] == [("wrong", "failed", 1), ("exit code", "failed", 1), ("fine", "ok", None)]
    assert rows[1]["detail"] == "exit code 2, not 0"
    assert code == 5


@pytest.mark.parametrize(
    ("step", "message", "hint"),
    [
        ('expect: { reprot: "a\\n1" }', "the pipeline has no node 'reprot'", "did you mean 'report'?"),
        ('changes: { nothing: "a\\n1" }', "the pipeline has no node 'nothing'", "its nodes: orders, "),
        ("failing: { orders.lagre: 0 }", "the pipeline has no expectation 'orders.lagre'", "did you mean 'orders.large'?"),
        ('given: { oders: "id\\n1" }', "the pipeline has no source 'oders'", "did you mean 'orders'?"),
    ],
)
def test_a_misspelt_name_is_wrong_usage(step: str, message: str, hint: str, folder: Folder) -> None:
    folder.write("shop.test.yaml", f"cases:\n  - name: one\n    {step}\n")
    code, _, err = command("test", str(folder.path))
    assert code == Exit.USAGE
    assert f"shop.test.yaml, case 'one', step 1: {message}" in err
    assert hint in err


def test_problems_of_case_files_have_places(folder: Folder) -> None:
    folder.write("shop.test.yaml", 'cases:\n  - name: x\n    expekt: {}\n  - name: y\n    given: { orders: "a | b\\n1" }\n  - name: z\n    steps: [{}]\n    exit_code: 0\n')
    code, _, err = command("test", str(folder.path))
    assert code == 1
    assert "unknown key 'expekt'" in err
    assert "shop.test.yaml:3:5" in err
    assert "a row has 1 cells, its header 2: 1" in err
    assert "a case with steps has 'exit_code' in a step" in err


@pytest.mark.parametrize(("files", "words"), [("../out.csv: given.csv", "not below"), ("/etc/x: given.csv", "not below"), ("data/orders.csv: missing.csv", "cannot be read"), ('"": given.csv', "not below")])
def test_files_stay_below_the_folder(files: str, words: str, folder: Folder) -> None:
    folder.write("shop.test.yaml", f"cases:\n  - name: x\n    files: {{ {files} }}\n")
    code, _, err = command("test", str(folder.path))
    assert code == 64
    assert words in err


def test_nothing_to_run(folder: Folder) -> None:
    assert command("test", str(folder.path))[0] == 64
    assert command("test", str(folder.path / "none"))[0] == 64
    folder.write("shop.test.yaml", GOOD)
    assert command("test", str(folder.path), "-k", "nothing like it")[0] == 64


def test_a_pipeline_with_problems_is_a_failed_case(folder: Folder) -> None:
    folder.write("shop.yaml", PIPELINE.replace("input: kept", "input: kepp"))
    folder.write("shop.test.yaml", "cases:\n  - name: x\n  - name: y\n    exit_code: 1\n    message: E004\n")
    code, out, _ = command("test", str(folder.path))
    assert code == 5
    assert "exit code 1, not 0: E004: there is no node 'kepp'" in out
    assert "ok      " in out


def case(folder: Folder, **settings: Any) -> PipelineCase:
    place = folder.path / "case"
    place.mkdir()
    return PipelineCase(CaseRun(folder.path / "shop.yaml", place, folder.path, settings))


def test_the_fixture_runs_steps_and_shows_differences(folder: Folder) -> None:
    one = case(folder, variables={"pipeline.least": 30})
    result = one.step({"orders": "id | region | amount\n1 | north | 40\n2 | south | 20"}, expect={"revenue": "region | total\nnorth | 40"})
    assert result is not None
    assert (one.folder / "out" / "report.csv").read_text() == "region,total\nnorth,40\n"
    one.step({"orders": [{"id": 1, "region": "north", "amount": 41}]}, changes={"report": "op | total\n-C | 40\n+C | 41"})
    with pytest.raises(pytest.fail.Exception, match=r"- north  \| 1"):
        one.step(expect={"revenue": "region | total\nnorth | 1"})


def test_the_plugin_in_a_run_of_pytest(folder: Folder) -> None:
    folder.write("test_shop.py", """\
def test_right(pipeline_case):
    case = pipeline_case("shop.yaml")
    case.step({"orders": "id | region | amount\\n1 | north | 40"}, expect={"revenue": "region | total\\nnorth | 40"})


def test_wrong(pipeline_case):
    pipeline_case("shop.yaml").step({"orders": "id | region | amount\\n1 | north | 40"}, expect={"revenue": "total\\n41"})
""")  # fmt: skip
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:errata", "-p", "errata.cases.plugin", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder.path)]
    done = subprocess.run(words, cwd=folder.path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "rows of revenue: 1 missing row, 1 unexpected row" in done.stdout


cells = st.sampled_from([None, "", "a", "a b", "x|y", "1", "é"])


@examples(200, 25)
@given(rows=st.lists(st.tuples(cells, cells), max_size=5))
def test_tables_read_what_is_written(rows: list[tuple[str | None, str | None]]) -> None:
    def text(value: str | None) -> str:
        return "" if value is None else '""' if value == "" else value.replace("|", "\\|")

    written = "\n".join(["| n | v |", "|---|---|", *(f"| {text(one)} | {text(two)} |" for one, two in rows)])
    table = read_table(written)
    assert table == Table(["n", "v"], [list(row) for row in rows])
    found = [{"n": one, "v": two} for one, two in rows]
    assert list(differences("rows", table, found[::-1], ["n", "v"])) == []
    assert len(list(differences("rows", table, [*found, {"n": "more", "v": None}], ["n", "v"]))) == 1


@pytest.mark.parametrize("written", ["", "a | a\n1 | 2", "a | \n1 | 2", "a | b\n1 | 2 | 3"])
def test_what_is_no_table(written: str) -> None:
    with pytest.raises(ValueError, match=r"columns|cells"):
        read_table(written)
