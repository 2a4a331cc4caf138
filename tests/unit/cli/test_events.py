"""Events for other programs: their envelope, what they leave out, a reader that goes away."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.events import Event, RunResult
from errata.core.failures import Busy, Exit, Stopped, StorageFailed, Usage
from errata.rendering.event_schema import event_schema
from errata.rendering.event_stream import MOST_PROGRESS, EventStream, code_in, database_text, without_values
from storage.files.errors import InputError
from storage.sql.errors import DatabaseError
from tests.support.json_schema import faults
from tests.support.pipelines import command

NAMES = frozenset({"orders", "amount", "id", "orders.csv", "north"})


def stream(**settings):
    return EventStream(StringIO(), "01a20efd-f1bd-73f7-a504-a6a80bd4032a", pipeline="p", names=NAMES, **settings)


def events(written):
    """The events, all of the schema, numbered from 1."""
    found = [json.loads(line) for line in written.out.getvalue().splitlines()]
    assert [fault for one in found for fault in faults(one, event_schema())] == []
    assert [one["seq"] for one in found] == list(range(1, len(found) + 1))
    return found


@pytest.mark.parametrize(
    ("code", "error", "outcome", "retry", "message"),
    [
        (Exit.CLEAN, None, "clean", "none", None),
        (Exit.REJECTED, None, "rejected", "none", None),
        (Exit.CONFIGURATION, PipelineErrors([Diagnostic("E210", "no node 'x'", node="orders")]), "failed", "after_change", "the pipeline has 1 error"),
        (Exit.STOPPED, Stopped("node 'orders': record 3: 'secret' is no int", redacted="node 'orders': record 3"), "failed", "after_change", "node 'orders': record 3"),
        (Exit.STORAGE, StorageFailed("source 'orders': the primary key id=7 stands for 2 records"), "failed", "later", "source 'orders': the primary key id=..."),
        (Exit.VIOLATION, None, "failed", "after_change", None),
        (Exit.BUSY, Busy("another run holds the pipeline"), "failed", "later", "another run holds the pipeline"),
        (Exit.DEFECT, KeyError("secret"), "failed", "report", "KeyError"),
        (Exit.INTERRUPTED, KeyboardInterrupt(), "interrupted", "later", "interrupted"),
    ],
)
def test_the_last_event_says_how_the_run_ended(code, error, outcome, retry, message):
    written = stream(stands=lambda: (4, 2))
    written.finish(code, error)
    *_, last = events(written)
    assert (last["exit_code"], last["outcome"], last["retry"], last["message"], last["epoch"], last["rejected"]) == (code, outcome, retry, message, 4, 2)
    assert "secret" not in written.out.getvalue()


def test_the_first_event_comes_before_all_others():
    written = stream(batch_id="b", channel="acme", engine="sail")
    written.heard(Event("warning", action="source 'orders': no file matches"))
    written.heard(Event("log", action="said"))
    written.heard(Event("node", "orders", "source", "delta", ops={"+A": 2}, rejected=1, seconds=0.5))
    written.heard(Event("node", "out", "output", "skip"))
    first, warning, node = events(written)
    assert (first["event"], first["batch_id"], first["channel"], first["engine"], first["dry_run"]) == ("run_started", "b", "acme", "sail", False)
    assert (warning["event"], warning["node"], warning["code"]) == ("warning", "orders", None)
    assert node["ops"] == {"+A": 2, "-R": 0, "-C": 0, "+C": 0}


def test_refused_words_have_no_events():
    written = stream(holds=True)
    written.heard(Event("planned", facts={"nodes": []}))
    written.finish(Exit.USAGE, Usage("no record of 'orders' has id=7"))
    assert written.out.getvalue() == ""
    worked = stream(holds=True)
    worked.heard(Event("planned", facts={"nodes": []}))
    worked.finish(Exit.CLEAN)
    assert [one["event"] for one in events(worked)] == ["run_started", "planned", "run_finished"]


def test_a_dry_run_commits_nothing():
    written = stream(dry_run=True)
    facts = {"epoch": 1, "ops": {}, "rejected": 0, "cursors": {}, "ledger": "h"}
    written.heard(Event("committed", facts=facts))
    written.result = RunResult(0)
    written.finish(Exit.CLEAN)
    assert [one["event"] for one in events(written)] == ["run_started", "run_finished"]
    real = stream()
    real.heard(Event("committed", facts=facts))
    real.finish(Exit.STORAGE, StorageFailed("cannot write"))
    assert events(real)[-1]["committed"] is True


def test_progress_comes_once_a_second():
    now = [0.0]
    written = stream(clock=lambda: now[0])
    for at in range(3 * MOST_PROGRESS):
        now[0] = at / 2
        written.heard(Event("begin", "orders", facts={"node": "orders", "rows_read": 0, "bytes_read": 0, "bytes_total": None}))
    found = events(written)[1:]
    assert len(found) == MOST_PROGRESS
    assert {one["event"] for one in found} == {"progress"}


class Gone(StringIO):
    """A pipe that nobody reads any more."""

    def flush(self):
        raise BrokenPipeError


def test_a_closed_pipe_stops_nothing():
    written = EventStream(Gone(), "r")
    for _ in range(3):
        written.heard(Event("warning", action="a"))
    written.finish(Exit.CLEAN)


# a text | the same without values of the data
TEXTS = """
node 'orders': cannot convert 'secret' to Int            | node 'orders': cannot convert '...' to Int
node 'orders': 'it's' is no int                          | node 'orders': '...' is no int
'a' or 'b' are no 'amount'                               | '...'
a quoted field is never closed: b'1,"x'                  | a quoted field is never closed: b'...'
orders.csv: cannot read "it's" as float                  | orders.csv: cannot read "..." as float
the primary key id=7, amount=3 stands for 2 records      | the primary key id=...
another run's lock of 'orders'                           | another run's lock of 'orders'
the value 'secret                                        | the value '...
x == 1, epoch=3                                          | x == 1, epoch=3
cannot read "it's" as int; 'id': cannot read 's' as int  | cannot read "..." as int; 'id': cannot read '...' as int
E238: orders.csv has no column 'amount'                  | E238: orders.csv has no column 'amount'
"""


@pytest.mark.parametrize("line", TEXTS.strip().splitlines())
def test_texts_have_no_values(line):
    text, _, expected = (part.strip() for part in line.partition("|"))
    assert without_values(text, NAMES) == expected


# trouble | reason | what events say of it
REASONS = """
refused     | no such column: amout                              | no such column: amout
refused     | column "amout" does not exist                      | column "amout" does not exist
refused     | Could not convert string 'x' y' to INT32           | Could not convert string '...' to INT32
refused     | Type INT32 with value 300 is out of range of INT8  | Type INT32 with value ... is out of range of INT8
refused     | Key (id)=(secret) is there                         | Key (id)=(...
unique      | UNIQUE constraint failed: secret                   | a unique index or key has the values already
constraint  | Failing row contains (7, secret)                   | a constraint or a trigger refuses the rows
unreachable | no answer from port 5432                           | no answer from port 5432
"""


@pytest.mark.parametrize("line", REASONS.strip().splitlines())
def test_reasons_of_databases_have_no_values(line):
    trouble, reason, expected = (part.strip() for part in line.split("|"))
    assert database_text(DatabaseError("wh", "wh.db", trouble, reason), "select amout from t") == f"connection 'wh' (wh.db): {expected}"


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (InputError("orders.csv", "E224: two columns are called 'secret'", line=1), "orders.csv: line 1: E224: two columns are called '...'", "E224"),
        (PermissionError(13, "Permission denied", "out/o.csv"), "out/o.csv: Permission denied", None),
    ],
)
def test_errors_of_storage_keep_their_reason(error, message, code):
    written = stream()
    written.finish(Exit.STORAGE, error)
    assert (events(written)[-1]["message"], events(written)[-1]["code"]) == (message, code)


@given(st.text(min_size=1).filter(lambda value: value not in NAMES), st.sampled_from(["'", '"']), st.text("abc '\""))
def test_no_quoted_value_is_left(value, quote, before):
    text = f"source 'orders': {quote}zq{value}qz{quote} is no int"
    assert f"zq{value}qz" not in without_values(text, NAMES)
    assert f"zq{value}" not in without_values(f"the key id=zq{value} stands", NAMES)


@pytest.mark.parametrize(("text", "code"), [("E238: no column", "E238"), ("source 'orders': E608: gone", "E608"), ("W601: a time", "W601"), ("connection 'wh': wh:t: E238: the table lacks", "E238"), ("orders: E1", None), ("", None)])
def test_codes_in_texts(text, code):
    assert code_in(text) == code


def test_the_schema_names_every_event_of_the_reference():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\| (.*) \|$", page.partition("## Events")[2].partition("## Options")[0], re.MULTILINE))
    members = {one["if"]["properties"]["event"]["const"]: list(one["then"]["properties"]) for one in event_schema()["allOf"]}
    assert list(rows) == list(members)
    assert all(f"`{name}`" in rows[event] for event, names in members.items() for name in names if event != "planned")


def test_the_schema_is_printed():
    code, out, _ = command("schema", "--events")
    assert (code, json.loads(out)) == (0, event_schema())
