"""Readers that stream: their memory does not grow with the file."""

import re
from pathlib import Path

import pytest

from benchmarks.formats import CASES
from storage import formats
from storage.files.local import buffer_of

LEAST, TOLERANCE = 6 << 20, 48 << 20


def own_bytes():
    """The memory of this process without mapped files."""
    return int(re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10


def most_while_reading(case, path):
    reader, data = formats.reader(case.form, case.options, case.plan), buffer_of(path, path.name)
    before, most = own_bytes(), 0
    reader.undeclared(data, path.name)
    for _ in reader.read(data, path.name):
        most = max(most, own_bytes())
    return most - before


@pytest.mark.deep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
@pytest.mark.parametrize("name", ["xml", "json", "ndjson", "edifact", "x12"])
def test_memory_does_not_grow_with_the_file(name, tmp_path):
    case, rows = CASES[name], 2_000
    path = tmp_path / "file"
    path.write_text("".join(case.lines(rows)))
    rows = rows * LEAST // path.stat().st_size
    sizes = []
    for factor in (1, 8):
        path.write_text("".join(case.lines(rows * factor)))
        sizes.append(most_while_reading(case, path))
    assert sizes[1] < sizes[0] + TOLERANCE
