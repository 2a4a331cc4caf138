"""Stream forms: the leader board of Open Data Fabric in each form, offsets, and equal events of both implementations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.forms.events import debezium, events
from changelog.forms.frames import changelog_stream, flat_stream
from changelog.forms.names import FORMS, PAIRED
from tests.support.changelog_histories import NAMES, frame, histories, on_engines, table, together
from tests.support.changelog_model import printed
from tests.support.tables import frame as text_frame

pytestmark = pytest.mark.rarely_on_spark

BOARD = """
epoch | op | key | cause     | time | player  | score:bigint
1     | +A | 1   | recompute | t1   | Alice   | 100
1     | +A | 2   | recompute | t1   | Bob     | 80
2     | -C | 2   | recompute | t1   | Bob     | 80
2     | +C | 2   | recompute | t2   | Charlie | 90
3     | -C | 1   | recompute | t1   | Alice   | 100
3     | +C | 1   | recompute | t3   | Charlie | 110
3     | -C | 2   | recompute | t2   | Charlie | 90
3     | +C | 2   | recompute | t1   | Alice   | 100
4     | -R | 1   | recompute | t3   | Charlie | 110
"""

ALICE, BOB, CHARLIE = ("t1", "Alice", 100), ("t1", "Bob", 80), ("t2", "Charlie", 90)
CHARLIE_FIRST = ("t3", "Charlie", 110)

ROWS = {
    "two": [
        ("+A", 0, ALICE), ("+A", 0, BOB),
        ("-C", 2, BOB), ("+C", 3, CHARLIE),
        ("-C", 2, ALICE), ("+C", 3, CHARLIE_FIRST), ("-C", 2, CHARLIE), ("+C", 3, ALICE),
        ("-R", 1, CHARLIE_FIRST),
    ],
    "retract": [
        ("+A", 0, ALICE), ("+A", 0, BOB),
        ("-R", 1, BOB), ("+A", 0, CHARLIE),
        ("-R", 1, ALICE), ("-R", 1, CHARLIE), ("+A", 0, CHARLIE_FIRST), ("+A", 0, ALICE),
        ("-R", 1, CHARLIE_FIRST),
    ],
    "upsert": [
        ("+A", 0, ALICE), ("+A", 0, BOB),
        ("+A", 0, CHARLIE),
        ("+A", 0, CHARLIE_FIRST), ("+A", 0, ALICE),
        ("-R", 1, CHARLIE_FIRST),
    ],
    "flink": [
        ("+I", 0, ALICE), ("+I", 0, BOB),
        ("-U", 2, BOB), ("+U", 3, CHARLIE),
        ("-U", 2, ALICE), ("+U", 3, CHARLIE_FIRST), ("-U", 2, CHARLIE), ("+U", 3, ALICE),
        ("-D", 1, CHARLIE_FIRST),
    ],
}  # fmt: skip
CHANGES = [
    (0, None, ALICE), (0, None, BOB),
    (3, BOB, CHARLIE),
    (3, ALICE, CHARLIE_FIRST), (3, CHARLIE, ALICE),
    (1, CHARLIE_FIRST, None),
]  # fmt: skip
NAMED = {"single": {0: "+A", 1: "-R", 3: "+C"}, "debezium": {0: "c", 1: "d", 3: "u"}}


def stream(engine, rows, form):
    return engine.to_arrow(changelog_stream(rows, form)).to_pylist()


def values(image):
    return image and tuple(image.values())


@pytest.mark.parametrize("form", ROWS)
def test_rows_of_the_leader_board(engine, form):
    made = stream(engine, text_frame(engine, BOARD), form)
    assert [(event["op"], event["op_code"], values(event["data"])) for event in made] == ROWS[form]


@pytest.mark.parametrize("form", NAMED)
def test_changes_of_the_leader_board(engine, form):
    made = stream(engine, text_frame(engine, BOARD), form)
    expected = [(NAMED[form][code], code, before, after) for code, before, after in CHANGES]
    assert [(event["op"], event["op_code"], values(event["before"]), values(event["after"])) for event in made] == expected


@pytest.mark.parametrize("form", FORMS)
def test_the_envelope(engine, form):
    made = stream(engine, text_frame(engine, BOARD), form)
    assert [event["offset"] for event in made] == list(range(len(made)))
    assert [event["epoch"] for event in made] == sorted(event["epoch"] for event in made)
    assert {event["key"] for event in made} == {"31", "32"}
    assert {event["cause"] for event in made} == {"recompute"}
    payload = ["before", "after"] if form in PAIRED else ["data"]
    assert list(made[0]) == ["epoch", "offset", "op", "op_code", "key", "cause", *payload]


@on_engines
@given(rows=st.lists(histories(), min_size=1, max_size=10).map(together), form=st.sampled_from(FORMS))
def test_dictionaries_and_data_frames_give_the_same_events(engine, rows, form):
    def plain(event):
        images = {name: event.get(name) and printed(tuple(event[name].values())) for name in ("data", "before", "after")}
        return event | images

    assert list(map(plain, stream(engine, frame(engine, rows), form))) == list(map(plain, events(table(rows).to_pylist(), form)))


@given(rows=histories())
def test_upserts_and_retractions_lead_to_the_live_state(rows):
    state = {}
    for event in events(table(rows).to_pylist(), "upsert"):
        if event["op"] == "-R":
            del state[event["key"]]
        else:
            state[event["key"]] = event["data"]
    added = [event for event in events(table(rows).to_pylist(), "retract") if event["op"] == "+A"]
    last = {event["key"]: event["data"] for event in added}
    assert all(printed(tuple(last[key].values())) == printed(tuple(image.values())) for key, image in state.items())


@given(rows=st.lists(histories(), min_size=1, max_size=10).map(together), form=st.sampled_from(FORMS))
def test_flat_events_are_the_same_in_the_same_order(engine, rows, form):
    def flattened(event):
        sides = [event["data"]] if "data" in event else [event["after"] or dict.fromkeys(event["before"]), event["before"] or dict.fromkeys(event["after"])]
        return (event["op"] if form in ("debezium", "flink") else event["op_code"], *(printed(tuple(side.values())) for side in sides))

    def typed(row):
        op, *values = row.values()
        return (op, *(printed(values[at : at + len(NAMES)]) for at in range(0, len(values), len(NAMES))))

    made = engine.to_arrow(flat_stream(frame(engine, rows), form)).to_pylist()
    assert list(map(typed, made)) == list(map(flattened, events(table(rows).to_pylist(), form)))


def test_flat_events(engine):
    rows = text_frame(engine, "epoch | op | key | cause | op_code | a.b\n1 | +A | k | i | 9 | x".replace("op_code", "key2"))
    assert flat_stream(rows, "two").columns == ["_op", "key2", "a.b"]
    made = engine.to_arrow(flat_stream(text_frame(engine, BOARD), "single")).to_pylist()
    assert made[-1] == {"_op": 1, "time": None, "player": None, "score": None, "old_time": "t3", "old_player": "Charlie", "old_score": 110}


def test_debezium_envelope():
    rows = [{"_epoch": 2, "_op": 0, "_key": b"\x01", "_cause": "ingest", "v": 5}]
    (event,) = events(rows, "debezium")
    source = {"pipeline": "p", "node": "n", "epoch": 2, "offset": 0}
    assert debezium(event, "p", "n", {2: 1700}) == {"before": None, "after": {"v": 5}, "op": "c", "ts_ms": 1700, "source": source}
    assert debezium(event, "p", "n")["ts_ms"] is None


def test_hidden_columns_are_no_data(sail):
    rows = frame(sail, []).withColumnRenamed(NAMES[0], "_port")
    assert [field.name for field in changelog_stream(rows, hidden=["_port"]).schema["data"].dataType.fields] == [*NAMES[1:]]
    assert next(iter(events([{"_epoch": 1, "_op": 0, "_key": b"", "_cause": "", "_file": "f", "_x": 1, "v": 2}], hidden=["_x"])))[
        "data"
    ] == {"v": 2}


@pytest.mark.parametrize("make", [lambda: list(events([], "three")), lambda: changelog_stream(None, "three")])
def test_an_unknown_form(make):
    with pytest.raises(ValueError, match="no form 'three'; there are two, retract, upsert, single, debezium, flink"):
        make()
