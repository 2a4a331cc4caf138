"""Lines of erased records, and of others, that cannot be read: each is judged as its own file is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import shop
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
OUT = "{ type: output, name: report, input: orders, config: { name: report, type: csv, path: out/report.csv } }"
PIPELINE = shop("{ name: qty, type: int }", OUT)
JSON = PIPELINE.replace("type: csv\n      path: in/orders.csv", "type: json\n      path: in/orders.csv\n      options: { format: ndjson }\n      on_unmapped: { mode: drop }")
DAYS = shop("{ name: day, type: date }", OUT)


def left(folder: Folder, more: dict[str, str]) -> tuple[list[str], str]:
    """The texts of rejects once files have further lines, and what the run says."""
    for name, lines in more.items():
        folder.write(name, folder.text(name) + lines)
    said = command("run", str(folder.path / "pipeline.yaml"), "--engine", "sail")[2]
    return [str(row) for row in folder.load().dlq_list()], said


def erased(path: Path, pipeline: str, files: dict[str, str], key: dict[str, str]) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", pipeline)
    for name, text in files.items():
        folder.write(name, text)
    folder.run()
    folder.load().erase(Erasure("request 17", "the office", key, keep_out=True), SAIL)
    return folder


CSV = {"in/orders.csv": "id,customer,qty\n5,annabella,12\n7,benjamin,71\n"}
OBJECTS = {"in/orders.csv": '{"id":5,"customer":"annabella","qty":1}\n{"id":7,"customer":"benjamin","qty":2}\n'}


@pytest.mark.parametrize(
    ("pipeline", "files", "key", "lines"),
    [
        (PIPELINE.replace("path: in/orders.csv", 'path: in/orders.csv\n      options: { delimiter: "~" }'), {"in/orders.csv": CSV["in/orders.csv"].replace(",", "~")}, {"id": "5"}, ("5~annabella~12~more\n", "8~carol~9~9~x,5\n")),
        (PIPELINE, CSV, {"id": "5"}, ("5,annabella,12,more\n", "8,carol,9,note;5\n")),
        (JSON, OBJECTS, {"id": "5"}, ('{"id":5,"customer":"annabella","qty":\n', '{"id":12,"customer":"dora","product":{"id":5},"qty":\n')),
        (JSON, OBJECTS, {"id": "5"}, ('{"customer":"annabella","id":5,"qty":\n', '{"id":13,"customer":"eve","note":"was id 5","qty":\n')),
        (PIPELINE, CSV, {"id": "5", "customer": "annabella"}, ("5e0,annabella,12\n", "5e0,caroline,12\n")),
        pytest.param(
            PIPELINE.replace("path: in/orders.csv", "path: in/orders.csv\n      options: { quote_char: \"'\" }"), {"in/orders.csv": "id,customer,qty\n5,'anna, b',12\n"}, {"customer": "anna, b"},
            ("5,'anna, b',12,more\n", "5,anna,12,more\n"), marks=pytest.mark.deep,
        ),
    ],
)  # fmt: skip
def test_a_line_is_cut_as_its_source_reads_it(tmp_path: Path, pipeline: str, files: dict[str, str], key: dict[str, str], lines: tuple[str, str]) -> None:
    folder = erased(tmp_path, pipeline, files, key)
    assert left(folder, {"in/orders.csv": lines[0]})[0] == []
    assert len(left(folder, {"in/orders.csv": lines[1]})[0]) == 1


def test_a_line_is_judged_by_the_header_of_its_own_file(tmp_path: Path) -> None:
    files = {"in/a.csv": "id,qty,customer\n5,9,annabella\n7,8,benjamin\n", "in/b.csv": "qty,id,customer\n3,8,carol\n"}
    folder = erased(tmp_path, PIPELINE.replace("path: in/orders.csv", "glob: in/*.csv"), files, {"id": "5"})
    assert left(folder, {"in/a.csv": "5,12,dora,more\n", "in/b.csv": "12,5,dora,more\n"})[0] == []
    assert len(left(folder, {"in/a.csv": "12,90,dora,x\n12,91,dora,5\n"})[0]) == 2


def test_a_cell_that_nobody_can_read_is_warned_of(tmp_path: Path) -> None:
    folder = erased(tmp_path, DAYS, {"in/orders.csv": "id,customer,day\n1,annabella,2026-03-01\n2,benjamin,2026-03-02\n"}, {"day": "2026-03-01"})
    rejects, said = left(folder, {"in/orders.csv": "3,annabella,01.03.2026\n"})
    assert len(rejects) == 1
    assert "whether it is an erased one only its values would tell" in said
