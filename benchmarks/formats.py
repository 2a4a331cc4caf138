"""`python -m benchmarks.formats`: how many records a second one core reads of each text format, the second look for undeclared columns counted apart."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import orjson

from benchmarks.benchmark import SCRATCH
from storage import formats
from storage.files.local import buffer_of
from storage.formats import Column, ReadPlan

COLUMNS = (Column("id", "int"), Column("customer"), Column("amount", "float"), Column("day", "date"), Column("note"))
LAYOUT = {"fields": [{"name": name, "width": width} for name, width in zip(("id", "customer", "amount", "day", "note"), (10, 10, 11, 10, 15), strict=True)]}
ELEMENTS = ("e01", "e02", "e03")


@dataclass(frozen=True, slots=True)
class Case:
    """A format: how a file of `rows` records is made, and how it is read."""

    form: str
    lines: Callable[[int], Iterator[str]]
    options: Mapping[str, Any] = field(default_factory=dict)
    plan: ReadPlan = field(default_factory=lambda: ReadPlan(COLUMNS))


def _values(row: int) -> tuple[int, str, str, str, str]:
    return row, f"c{row % 1000}", f"{row % 97}.25", f"2024-01-{row % 28 + 1:02d}", f"text {row}"


def _csv(rows: int) -> Iterator[str]:
    yield "id,customer,amount,day,note\n"
    yield from (",".join(map(str, _values(row))) + "\n" for row in range(rows))


def _objects(rows: int) -> Iterator[str]:
    names = [column.name for column in COLUMNS]
    yield from (orjson.dumps(dict(zip(names, _values(row), strict=True))).decode() for row in range(rows))


def _array(rows: int) -> Iterator[str]:
    yield '{"records":[{}'
    yield from (f",\n{text}" for text in _objects(rows - 1))
    yield "]}"


def _xml(rows: int) -> Iterator[str]:
    yield "<orders>\n"
    for row in range(rows):
        cells = zip((column.name for column in COLUMNS), _values(row), strict=True)
        yield "<order>" + "".join(f"<{name}>{value}</{name}>" for name, value in cells) + "</order>\n"
    yield "</orders>\n"


def _fixed(rows: int) -> Iterator[str]:
    for row in range(rows):
        cells = zip(_values(row), LAYOUT["fields"], strict=True)
        yield "".join(str(value).ljust(int(str(one["width"]))) for value, one in cells) + "\n"


def _edifact(rows: int) -> Iterator[str]:
    yield "UNB+UNOC:3+S+R+240101:1200+1'\n"
    for row in range(rows // 4):
        yield f"UNH+{row}+T'\nBGM+220+PO-{row}+9'\nQTY+21:12'\nNAD+BY+L?'ATELIER'\nUNT+5+{row}'\n"
    yield f"UNZ+{rows // 4}+1'\n"


def _x12(rows: int) -> Iterator[str]:
    yield "ISA*00*          *00*          *ZZ*S              *ZZ*R              *240101*1200*U*00401*000000001*0*P*:~\nGS*PO*S*R*20240101*1200*7*X*004010~\n"
    for row in range(rows // 4):
        yield f"ST*850*{row:05d}~\nBEG*00*SA*PO{row}~\nPO1*1*2*EA*9.95~\nN1*BY*ACME~\nSE*5*{row:05d}~\n"
    yield f"GE*{rows // 4}*7~\nIEA*1*000000001~\n"


def _segments(reference: str) -> ReadPlan:
    return ReadPlan(tuple(Column(name) for name in ("seg_id", f"{reference}_ref", f"{reference}_type", *ELEMENTS)))


CASES: Mapping[str, Case] = {
    "csv": Case("csv", _csv),
    "ndjson": Case("json", lambda rows: (f"{text}\n" for text in _objects(rows))),
    "json": Case("json", _array, {"record_path": "records"}),
    "xml": Case("xml", _xml, {"record_path": "/orders/order"}),
    "fixed_width": Case("fixed_width", _fixed, plan=ReadPlan(COLUMNS, layout=LAYOUT)),
    "edifact": Case("edifact", _edifact, plan=_segments("msg")),
    "x12": Case("x12", _x12, plan=_segments("set")),
}


def measure(case: Case, path: Path) -> tuple[int, float, float]:
    """Records, seconds to look for undeclared columns, seconds to read."""
    reader, data = formats.reader(case.form, case.options, case.plan), buffer_of(path, path.name)
    few = "".join(case.lines(8)).encode()
    reader.undeclared(few, path.name), list(reader.read(few, path.name))  # what reads is imported
    began = process_time()
    reader.undeclared(data, path.name)
    looked = process_time()
    parts = reader.split(data, path.name)
    texts = ((data if len(parts) == 1 else data[part.start : part.end], part) for part in parts)
    rows = sum(batch.num_rows for text, part in texts for batch in reader.read(text, path.name, part))
    return rows, looked - began, process_time() - looked


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("formats", nargs="*", default=list(CASES), metavar="FORMAT")
    given = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    for name in given.formats:
        path = SCRATCH / f"{name}-{given.rows}.dat"
        if not path.exists():
            path.write_text("".join(CASES[name].lines(given.rows)), encoding="utf-8")
        rows, looked, read = measure(CASES[name], path)
        print(f"{name:12} {rows:>9,} records  looked at in {looked:5.2f} s  read in {read:5.2f} s: {rows / read:>10,.0f} records/s a core", flush=True)


if __name__ == "__main__":
    main()
