"""Fold, consolidate, repair, diff, negate and pair: against the plain model, on both engines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog import arrow_algebra, spark_algebra
from changelog.ops import Op
from tests.support import changelog_model as model
from tests.support.changelog_histories import (
    NAMES,
    collected,
    collected_state,
    frame,
    histories,
    live_frame,
    on_engines,
    ops_of,
    state_of,
    states,
    table,
    together,
    within,
)
from tests.support.tables import equals
from tests.support.tables import frame as text_frame

batches = st.lists(histories(), min_size=1, max_size=20).map(together)
turns = st.lists(st.tuples(states, states), min_size=1, max_size=20)
compared = st.none() | st.lists(st.sampled_from(range(len(NAMES))), min_size=1, unique=True)

HISTORY = """
epoch | op | key | cause      | player | score:bigint
1     | +A | 1   | ingest     | Alice  | 100
1     | +A | 2   | ingest     | Bob    | 80
2     | -C | 2   | correction | Bob    | 80
2     | +C | 2   | correction | Carol  | 90
3     | -R | 1   | correction | Alice  | 100
4     | +A | 1   | ingest     | Dan    | 95
"""


def printed_state(state):
    return {key: model.printed(image) for key, image in state.items()}


def sides(pairs):
    old, new = zip(*pairs, strict=True)
    return within(list(old)), within(list(new))


def test_fold_of_a_text_table(engine):
    live = spark_algebra.fold(text_frame(engine, HISTORY), at=3)
    equals(engine, live, "epoch | key | player | score:bigint\n2 | 2 | Carol | 90")


@on_engines
@given(rows=batches, at=st.none() | st.integers(0, 6))
def test_fold_is_the_replay(engine, rows, at):
    assert collected_state(engine, spark_algebra.fold(frame(engine, rows), at)) == printed_state(model.fold(rows, at))


@given(rows=batches)
def test_fold_on_the_driver_is_the_replay(rows):
    stands = arrow_algebra.fold(table(rows))
    state = state_of(stands)
    assert state == printed_state(model.fold(rows))
    assert stands.column_names == ["_epoch", "_key", *NAMES]


def test_a_narrowed_fold_takes_back_by_key(engine):
    """A row chosen by its image leaves with its key, whatever image the retraction has: columns may have changed their types since."""
    forgotten = HISTORY.replace("-C | 2   | correction | Bob    | 80", "-C | 2   | correction |        |").replace("-R | 1   | correction | Alice  | 100", "-R | 1   | correction |        |")
    for player, stands in (("Alice", ""), ("Bob", ""), ("Carol", "\n2 | 2 | Carol | 90"), ("Dan", "\n4 | 1 | Dan | 95")):
        live = spark_algebra.fold(text_frame(engine, forgotten), narrow=lambda rows, player=player: rows.where(rows["player"] == player))
        equals(engine, live, f"epoch | key | player | score:bigint{stands}")


@on_engines
@given(rows=batches)
def test_fold_of_appends_needs_no_join(engine, rows):
    appends = [row for row in rows if row.epoch == 1]
    live = spark_algebra.fold(frame(engine, appends), has_negatives=False)
    assert collected_state(engine, live) == printed_state(model.fold(appends))


def test_consolidation_of_a_text_table(engine):
    net = spark_algebra.consolidate(text_frame(engine, HISTORY).where("_epoch > 1"))
    expected = """
    op | key | cause      | player | score:bigint
    -C | 1   | ingest     | Alice  | 100
    +C | 1   | ingest     | Dan    | 95
    -C | 2   | correction | Bob    | 80
    +C | 2   | correction | Carol  | 90
    """
    equals(engine, net, expected)


@on_engines
@given(rows=batches, start=st.integers(0, 4))
def test_consolidation_is_the_net_change(engine, rows, start):
    chain = [row for row in rows if row.epoch > start]
    assert collected(engine, spark_algebra.consolidate(frame(engine, chain))) == sorted(model.net(chain))


@given(rows=batches, start=st.integers(0, 4))
def test_consolidation_on_the_driver_is_the_net_change(rows, start):
    chain = [row for row in rows if row.epoch > start]
    net = arrow_algebra.consolidate(table(chain))
    assert ops_of(net) == sorted(model.net(chain))
    assert net.schema == table(chain).drop_columns(["_epoch"]).schema


@on_engines
@given(rows=batches, start=st.integers(0, 4))
def test_consolidation_on_the_driver_gives_the_causes_that_an_engine_gives(engine, rows, start):
    chain = [row._replace(cause=f"{row.cause}{row.image[0]}") for row in rows if row.epoch > start]
    there = {(row["_op"], row["_key"]): row["_cause"] for row in engine.to_arrow(spark_algebra.consolidate(frame(engine, chain))).to_pylist()}
    assert {(row["_op"], row["_key"]): row["_cause"] for row in arrow_algebra.consolidate(table(chain)).to_pylist()} == there


@on_engines
@given(pairs=turns)
def test_what_changed_comes_to_the_difference(engine, pairs):
    old, new = sides(pairs)
    rows = engine.to_arrow(spark_algebra.changed(live_frame(engine, old), live_frame(engine, new), "recompute"))
    assert ops_of(arrow_algebra.consolidate(rows)) == sorted(model.difference(old, new, None))


@on_engines
@given(rows=batches, start=st.integers(0, 4))
def test_fold_of_the_start_and_the_net_change_is_the_fold(engine, rows, start):
    before = [row for row in rows if row.epoch <= start]
    net = collected(engine, spark_algebra.consolidate(frame(engine, [row for row in rows if row.epoch > start])))
    assert model.applied(model.fold(before), set(net)) == printed_state(model.fold(rows))


@on_engines
@given(rows=batches)
def test_consolidating_again_changes_nothing(engine, rows):
    once = spark_algebra.consolidate(frame(engine, rows))
    assert collected(engine, spark_algebra.consolidate(once)) == collected(engine, once)


@on_engines
@given(rows=batches, columns=compared)
def test_consolidation_by_compared_columns(engine, rows, columns):
    names = columns and [NAMES[at] for at in columns]
    start = model.fold(rows, 1)
    later = [row for row in rows if row.epoch > 1]
    expected = sorted(model.difference(start, model.fold(rows), columns))
    assert collected(engine, spark_algebra.consolidate(frame(engine, later), compare=names)) == expected


@on_engines
@given(rows=batches, epoch=st.integers(1, 5), columns=compared)
def test_repair_is_consolidation_where_signs_come_once(engine, rows, epoch, columns):
    names = columns and [NAMES[at] for at in columns]
    one = [row._replace(op=row.op & 1) if row.op < 2 else row for row in rows if row.epoch == epoch]
    delta = frame(engine, one)
    assert collected(engine, spark_algebra.repair(delta, compare=names)) == collected(engine, spark_algebra.consolidate(delta, compare=names))


@on_engines
@given(rows=batches)
def test_repair_after_a_filter(engine, rows):
    """Filter both images. A pair that passes on one side becomes an append or a retraction."""
    passed = [row for row in rows if row.epoch == 2 and row.image[0] == "x"]
    assert collected(engine, spark_algebra.repair(frame(engine, passed))) == sorted(model.net(passed))


@pytest.mark.parametrize("function", [spark_algebra.consolidate, spark_algebra.repair])
def test_known_appends_pass_as_they_are(sail, function):
    delta = text_frame(sail, "op | key | cause | v\n+A | a | ingest | 1\n+A | a | ingest | 1")
    assert function(delta, {Op.APPEND}).count() == 2


@on_engines
@given(pairs=turns, columns=compared)
def test_diff_is_the_difference(engine, pairs, columns):
    old, new = sides(pairs)
    names = columns and [NAMES[at] for at in columns]
    delta = spark_algebra.diff(live_frame(engine, old), live_frame(engine, new), "recompute", names)
    assert collected(engine, delta) == sorted(model.difference(old, new, columns))


@on_engines
@given(pairs=turns)
def test_a_diff_applied_to_the_old_state_gives_the_new(engine, pairs):
    old, new = sides(pairs)
    delta = collected(engine, spark_algebra.diff(live_frame(engine, old), live_frame(engine, new), "recompute"))
    assert model.applied(old, set(delta)) == printed_state(new)


def test_diff_names_its_cause_and_keeps_columns(engine):
    old = text_frame(engine, "epoch | key | v:bigint | gone\n1 | a | 1 | x\n1 | b | 2 | y")
    new = text_frame(engine, "epoch | key | v:bigint | came:double\n2 | b | 2 | 0.5\n2 | c | 3 |")
    expected = """
    op | key | cause | v:bigint | came:double | gone
    -R | a   | logic | 1        |             | x
    -C | b   | logic | 2        |             | y
    +C | b   | logic | 2        | 0.5         |
    +A | c   | logic | 3        |             |
    """
    equals(engine, spark_algebra.diff(old, new, "logic"), expected)


@on_engines
@given(pairs=turns)
def test_negation_is_the_inverse(engine, pairs):
    old, new = sides(pairs)
    delta = spark_algebra.diff(live_frame(engine, old), live_frame(engine, new), "recompute")
    back = spark_algebra.negate(delta)
    assert collected(engine, back) == sorted(model.difference(new, old))
    assert collected(engine, spark_algebra.negate(back)) == collected(engine, delta)
    assert collected(engine, spark_algebra.consolidate(delta.unionByName(back))) == []


@on_engines
@given(rows=batches)
def test_a_pair_has_what_went_and_what_came(engine, rows):
    pairs = engine.to_arrow(spark_algebra.pair(frame(engine, rows))).to_pylist()
    assert len(pairs) == len({(row.epoch, row.key) for row in rows})
    found = [(pair["_epoch"], pair["_key"], side, tuple(pair[side].values())) for pair in pairs for side in ("__old", "__new") if pair[side] is not None]
    given = [(row.epoch, row.key, "__new" if row.op in (0, 3) else "__old", row.image) for row in rows]
    assert sorted(map(repr, found)) == sorted(map(repr, given))


@on_engines
@given(state=states)
def test_a_live_frame_as_appends_and_as_retractions(engine, state):
    live = live_frame(engine, state)
    appends, retractions = spark_algebra.as_appends(live, "readmit"), spark_algebra.as_retractions(live, "rollback:a:1")
    assert collected(engine, appends) == sorted(model.difference({}, state))
    assert collected(engine, retractions) == sorted(model.difference(state, {}))
    assert {row["_cause"] for row in appends.collect()} <= {"readmit"}


def test_correlation_keys_are_part_of_the_image(engine):
    import pyarrow as pa

    def live(number):
        ck = pa.array([{"g": number, "h": "x"}], pa.struct([("g", pa.float64()), ("h", pa.string())]))
        return engine.from_arrow(pa.table({"_key": [b"k"], "_ck": ck, "v": [1]}))

    assert spark_algebra.diff(live(float("nan")), live(-float("nan")), "c").count() == 0
    assert spark_algebra.diff(live(0.0), live(-0.0), "c").count() == 2


def test_correlation_keys_come_through_consolidation(engine):
    import pyarrow as pa

    kind = pa.struct([("g", pa.float64()), ("h", pa.string())])
    images = [{"g": -0.0, "h": "x"}, {"g": None, "h": None}, None, {"g": float("inf"), "h": ""}]
    columns = {"_op": pa.array([0] * 4, pa.int8()), "_key": [b"0", b"1", b"2", b"3"], "_cause": ["i"] * 4, "_ck": pa.array(images, kind)}
    net = engine.to_arrow(spark_algebra.consolidate(engine.from_arrow(pa.table(columns)))).to_pylist()
    assert [repr(row["_ck"]) for row in sorted(net, key=lambda row: row["_key"])] == list(map(repr, images))


def test_wide_images(engine):
    import pyarrow as pa

    def live(last):
        return engine.from_arrow(pa.table({"_key": [b"k"], **{f"c{at}": [float(at)] for at in range(100)}, "last": [last]}))

    assert spark_algebra.diff(live(1), live(1), "c").count() == 0
    assert spark_algebra.diff(live(1), live(2), "c").count() == 2
