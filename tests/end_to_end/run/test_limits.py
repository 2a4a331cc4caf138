"""A node that needs more memory than there is, or more room to spill to, ends the run with its code; nothing is committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import exhausted

PIPELINE = """
pipeline: {name: large}
nodes:
  - {type: source, name: l, config: {name: l, type: csv, path: l.csv, schema: [{name: k, type: string}, {name: a, type: int}]}}
  - {type: source, name: r, config: {name: r, type: csv, path: r.csv, schema: [{name: k, type: string}, {name: b, type: int}]}}
"""
AFTER = "  - {type: output, name: out, input: node, config: {name: out, type: csv, path: out.csv}}\n"
JOIN = """\
  - {type: combine, name: node, input: {l: l, r: r}, config: {where: "l.k == r.k", match: all, on_miss: skip, propagate_ck: driver, cxl: "emit k = l.k\\nemit b = r.b"}}
"""
GROUPS = """\
  - {type: aggregate, name: node, input: l, config: {group_by: [k], cxl: "emit all = collect(a)"}}
"""
ROWS = 150_000
POOL = {"SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair", "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(4 << 20)}
"""What a pipeline cannot ask for: so little memory that the test is quick."""


def run(folder: Path, node: str) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own, whose engine starts with that memory."""
    (folder / "pipeline.yaml").write_text(PIPELINE + node + AFTER)
    for name, column in (("l", "a"), ("r", "b")):
        (folder / f"{name}.csv").write_text(f"k,{column}\n" + "".join(f"key-of-the-record-{row:x},{row}\n" for row in range(ROWS)))
    command = [sys.executable, "-c", "import sys; from errata.cli import main; sys.exit(main(['run', 'pipeline.yaml', '--engine', 'sail']))"]
    return subprocess.run(command, cwd=folder, env={**os.environ, **POOL}, capture_output=True, text=True, timeout=120, check=False)


def test_too_little_memory_is_e310(tmp_path: Path) -> None:
    done = run(tmp_path, JOIN)
    assert done.returncode == 4, done.stderr
    assert "node 'node': E310: the engine needs more memory than it was given" in done.stderr
    assert "raise memory.limit" in done.stderr
    assert "Nothing was changed." in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.disk
def test_a_spill_cap_that_is_reached_is_e320(tmp_path: Path) -> None:
    (tmp_path / "spilled").mkdir()
    (tmp_path / "errata.toml").write_text('[storage.spill]\ndir = "spilled"\ndisk_cap_bytes = 1000\n')
    done = run(tmp_path, GROUPS)
    assert done.returncode == 4, done.stderr
    assert "E320: more would be spilled than storage.spill.disk_cap_bytes allows" in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Job aborted: java.lang.OutOfMemoryError: Java heap space", "memory"),
        ("[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory", "memory"),
        ("java.io.IOException: No space left on device", "spill volume"),
        ("Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)", None),
        ("[DIVIDE_BY_ZERO] Division by zero", None),
    ],
)
def test_what_engines_say_of_a_limit(text: str, limit: str | None) -> None:
    assert exhausted(text) == limit
