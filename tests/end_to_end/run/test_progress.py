"""The progress of a run on a terminal: the node at work, the thing that is awaited, lines that fit."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from errata.core.events import Event
from errata.rendering.progress import AtWork, short_line
from errata.rendering.terminal import width
from tests.support.pipelines import Folder, command

COLUMNS = 80
PIPELINE = """\
pipeline: { name: shown }
nodes:
  - { type: source, name: orders, config: { name: orders, type: csv, path: o.csv, schema: [{ name: id, type: int }] } }
  - { type: transform, name: a_transform_with_a_name_that_is_longer_than_others, input: orders, config: { cxl: "emit id = id + 1" } }
  - { type: output, name: out, input: a_transform_with_a_name_that_is_longer_than_others, config: { name: out, type: csv, path: out.csv } }
"""


def on_a_terminal(*words: str, program: Sequence[str] = ("-m", "errata")) -> tuple[int, str]:
    """Exit code and what a terminal of 80 columns gets of a command in a new process."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "CI")}
    with subprocess.Popen([sys.executable, *program, *words], stdin=end, stdout=end, stderr=end, env=kept | {"TERM": "xterm"}) as process:
        os.close(end)
        output = b""
        while part := _read(terminal):
            output += part
    os.close(terminal)
    return process.returncode, output.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def test_no_line_of_a_run_wraps_on_80_columns(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("o.csv", "id\n1\n2\n")
    code, output = on_a_terminal("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")
    assert code == 0
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", output)]
    assert max(map(width, lines)) <= COLUMNS
    ended = [line.split()[0] for line in lines if re.search(r" in +[0-9.]+ s", line) and line.startswith("  ")]
    assert ended == ["orders", "a_transform_with_…", "out"]
    assert any("orders: " in line for line in lines)  # it is named while it is at work


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_line_fits_whatever_it_tells(columns: int) -> None:
    ops = dict.fromkeys(("+A", "-R", "-C", "+C"), 123_456_789)
    event = Event("node", "注文" * 30, "aggregate", "delta", 123_456_789, 4 * 123_456_789, ops, 123_456_789, 12_345.6)
    assert width(short_line(event, columns)) <= columns
    work = AtWork(engine="Apache Spark")
    work.heard(Event("begin", "注文" * 30, "aggregate", "delta", 123_456_789))
    assert width(work.line(columns)) <= columns


def test_lines_are_aligned_whatever_the_names_of_nodes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    long = "a_name_that_is_longer_than_most_names_are"
    folder.write("pipeline.yaml", f"""
pipeline: {{ name: p }}
nodes:
  - {{ type: source, name: orders, config: {{ name: orders, type: csv, path: o.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: transform, name: {long}, input: orders, config: {{ cxl: "filter id > 0" }} }}
  - {{ type: output, name: report, input: {long}, config: {{ name: report, type: csv, path: report.csv }} }}
""")
    folder.write("o.csv", "id\n1\n")
    lines = [line for line in command("run", str(tmp_path / "pipeline.yaml"))[2].splitlines() if " in " in line and " out " in line]
    assert len(lines) == 3
    assert {line.index(" in ") for line in lines} == {lines[0].index(" in ")}
    assert [line.split()[0] for line in lines] == ["orders", long, "report"]


def test_the_line_tells_what_is_awaited_and_how_many_rows_came() -> None:
    now, starting = [0.0], [True]
    work = AtWork(clock=lambda: now[0])
    heard = [
        (Event("begin", action="loading the engine"), "loading the engine"),
        (Event("engine", "spark", starting=lambda: starting[0]), "waiting for Apache Spark to start"),
        (Event("begin", "orders", "source", "reading 2 files, 1.5 MB"), "orders: waiting for Apache Spark to start"),
        (None, "orders: reading 2 files, 1.5 MB, first query of Apache Spark"),
        (Event("node", "orders", "source", "delta", 0, 1500, {"+A": 1500}), "orders: reading 2 files, 1.5 MB"),
        (Event("begin", "totals", "aggregate", "delta", 1500), "totals: aggregate, 1,500 rows in"),
        (Event("begin", "report", "output", "writing"), "report: writing"),
        (Event("begin", action="committing epoch 3"), "committing epoch 3"),
    ]  # fmt: skip
    for event, line in heard:
        starting[0] &= event is not None
        if event is not None:
            work.heard(event)
        assert work.line(COLUMNS)[2:].rsplit(maxsplit=2)[0].rstrip() == line
    now[0] = 45.2
    assert work.line(COLUMNS).endswith(" 45 s")


def test_a_node_is_told_before_it_begins_and_nothing_is_asked_for_that(tmp_path: Path) -> None:
    """A listener hears of each node in order; what comes in is known from the nodes before."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("o.csv", "id\n1\n2\n")
    heard: list[Event] = []
    folder.options["listener"] = heard.append
    folder.run()
    nodes = [event for event in heard if event.node and event.kind in ("begin", "node") and event.action != "writing"]
    assert [(one.kind, other.kind) for one, other in pairwise(nodes)][::2] == [("begin", "node")] * 3
    assert [(event.node, event.rows_in) for event in nodes if event.kind == "begin"] == [("orders", 0), (nodes[2].node, 2), ("out", 2)]


STEERING = "\x1b]0;PWNED\x07 \x7f \u202e \x9b1A \rover"
"""A title of the window, DEL, text from right to left, a cursor that goes up, a return to the line's begin."""


def answer_on_a_terminal(*words: str) -> str:
    """The answer on a terminal, without the colours and cursor movements of the lines beside it."""
    code, output = on_a_terminal(*words)
    assert code == 0, output
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output).replace("\r\n", "\n")


def test_data_steers_no_terminal(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    text = PIPELINE.replace("name: id, type: int", "name: id, type: string").replace("id + 1", "id")
    folder.write("pipeline.yaml", text)
    folder.write("o.csv", f'id\n"{STEERING}"\n')
    folder.run()
    file = str(tmp_path / "pipeline.yaml")
    asked = [["show", file, "out", "--format", form] for form in ("csv", "jsonl")]
    for words in [*asked, ["run", file, "--dry-run", "-n", "1", "--engine", "sail", "-q"]]:
        output = answer_on_a_terminal(*words)
        assert "PWNED" in output
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", output), (words, output)
        assert "jsonl" not in words or json.loads(output) == {"id": STEERING}
    assert command(*asked[0])[1] == f'id\n"{STEERING}"\n'  # where there is no terminal


def test_a_record_of_cxl_steers_no_terminal() -> None:
    output = on_a_terminal("eval", "-e", "emit id = id", "--record", json.dumps({"id": STEERING}), program=("-c", "from cxl.cli import main; main()"))[1]
    assert json.loads(output) == {"id": STEERING}
    assert not re.search("[\x7f-\x9f\u202e]", output)
