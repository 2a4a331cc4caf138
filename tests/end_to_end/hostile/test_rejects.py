"""Thousands of hostile records in one run: each is a row of the dead letter queue with its own text, or a row of the output."""

from __future__ import annotations

import csv
import io
import json
import random

from tests.unit.formats.test_mutations import mutated

COUNT = 5000
PIPELINE = """\
pipeline: { name: rejects }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: s
    config: { name: s, type: csv, path: in.csv, schema: [{ name: n, type: int }, { name: a, type: int }, { name: b, type: string }] }
  - type: source
    name: j
    config: { name: j, type: json, path: in.ndjson, options: { format: ndjson }, on_unmapped: { mode: drop }, schema: [{ name: a, type: int }, { name: b, type: string, optional: true }] }
  - type: output
    name: o
    input: s
    config: { name: o, type: csv, path: o.csv }
  - type: output
    name: p
    input: j
    config: { name: p, type: csv, path: p.csv }
"""
PIECES = ["=1+1", "@x", "\x1b[31m", "\x9b", "\0", '"', "'", ",", ";", "\n", "\r\n", "\t", "\u202e", "\ufeff", "\U0001f600", "é", "{}", "[", "1e400", "inf", "-", " ", "\\", "x" * 300]
LINES = [b'{"a": 1, "b": "x"}', b'{"a": "\\u0000\\ud83d\\ude00", "b": null}', b'{"a": 1, "a": 2}', b'[{"a": 1}]', b'{"b": {"c": [1, 2]}, "a": 7}', b'{"a": 1e400}', b'{"a": -0, "b": "\x1b]0;x\x07"}']


def rows(read: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 24)
    return list(csv.DictReader(io.StringIO(read, newline="")))


def test_thousands_of_hostile_records(bed):
    rnd = random.Random(0)
    cells = ["x" + "".join(rnd.choices(PIECES, k=rnd.randint(0, 5))) for _ in range(COUNT)]  # a letter ahead: none is an int
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows([["n", "a", "b"], *([at, cell, cell[1:]] for at, cell in enumerate(cells))])
    lines = [line for line in (mutated(rnd.choice(LINES), rnd).replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(COUNT)) if line.strip()]
    ended = bed.run({"pipeline.yaml": PIPELINE, "in.csv": written.getvalue(), "in.ndjson": b"\n".join(lines)}, limit_mb=1024, seconds=20)
    assert ended.code == 2, ended.err[:2000]
    dead = rows((ended.folder / "dlq.csv").read_bytes().decode())
    by_number = {int(row["n"]): row for row in dead if row["_cxl_dlq_source_file"] == "in.csv"}
    assert [by_number[at]["a"] for at in range(COUNT)] == cells
    assert [by_number[at]["b"] for at in range(COUNT)] == [cell[1:] for cell in cells]
    of_json = [row for row in dead if row["_cxl_dlq_source_file"] == "in.ndjson"]
    assert len(of_json) + len(rows((ended.folder / "p.csv").read_bytes().decode())) == len(lines)
    assert all(1 <= int(row["_cxl_dlq_source_row"]) <= len(lines) for row in of_json)
    broken = {at for at, line in enumerate(lines, 1) if not is_object(line)}
    assert broken <= {int(row["_cxl_dlq_source_row"]) for row in of_json}
    assert "\x1b" not in ended.out + ended.err


def is_object(line: bytes) -> bool:
    """Whether a line is an object of JSON, by another parser."""
    try:
        return isinstance(json.loads(line.decode(), parse_constant=lambda _: 1 / 0), dict)
    except (ValueError, RecursionError, ZeroDivisionError):
        return False
