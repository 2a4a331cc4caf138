"""A node that needs more memory than there is, or more room to spill to, ends the run with its code; nothing is committed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
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
LIMIT = "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE"
POOL = {"SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair", LIMIT: str(4 << 20)}
"""A setting that a pipeline cannot make: so little memory that the test is quick."""


WINDOW = """\
  - {type: transform, name: node, input: l, config: {analytic_window: {partition_by: [k], sort_by: [{field: a}]}, cxl: "emit so_far = $window.sum(a)"}}
"""


def run(folder: Path, node: str, settings: Mapping[str, str] = POOL) -> subprocess.CompletedProcess[str]:
    """A run in a process of its own, whose engine starts with that memory."""
    (folder / "pipeline.yaml").write_text(PIPELINE + node + AFTER)
    for name, column in (("l", "a"), ("r", "b")):
        (folder / f"{name}.csv").write_text(f"k,{column}\n" + "".join(f"key-of-the-record-{row:x},{row}\n" for row in range(ROWS)))
    command = [sys.executable, "-c", "import sys; from errata.cli import main; sys.exit(main(['run', 'pipeline.yaml', '--engine', 'sail']))"]
    return subprocess.run(command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, timeout=120, check=False)


def test_too_little_memory_is_e310(tmp_path: Path) -> None:
    done = run(tmp_path, JOIN)
    assert done.returncode == 4, done.stderr
    assert "node 'node': E310: the engine needs more memory than it was given" in done.stderr
    assert "raise memory.limit" in done.stderr
    assert "Nothing was changed." in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.deep
@pytest.mark.disk
@pytest.mark.parametrize("node", [GROUPS, WINDOW], ids=["groups", "window"])
def test_a_first_run_that_needs_more_than_the_limit_spills(tmp_path: Path, node: str) -> None:
    room = {**POOL, LIMIT: str(32 << 20), "SAIL_EXECUTION__DEFAULT_PARALLELISM": "2"}
    for name in ("capped", "limited", "free"):
        (tmp_path / name).mkdir()
    (tmp_path / "capped/spilled").mkdir()
    (tmp_path / "capped/errata.toml").write_text('[storage.spill]\ndir = "spilled"\ndisk_cap_bytes = 1000\n')
    capped, limited, free = run(tmp_path / "capped", node, room), run(tmp_path / "limited", node, room), run(tmp_path / "free", node, {})
    assert "E320" in capped.stderr  # it needs more than the limit
    assert (limited.returncode, free.returncode) == (0, 0), limited.stderr
    assert (tmp_path / "limited/out.csv").read_bytes() == (tmp_path / "free/out.csv").read_bytes()


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
