"""Expectations: failing rows by a plain Python model after any edits, severities, rollback, the clock, diagnostics, hostile values."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import errata
from errata.core.failures import Stopped
from errata.core.options import Correction, EngineOptions, Erasure, RunOptions
from errata.execution import epoch
from tests.support.examples import examples
from tests.support.pipelines import Folder, command

SOURCE = """\
pipeline: { name: expected }
error_handling: { strategy: continue, dlq: { path: out/dlq.csv } }
changelog: { persist: %(persist)s }
nodes:
  - type: source
    name: orders
    expect:
      - { not_null: [id, region], severity: reject, name: filled }
      - { range: { column: amount, max: 90 }, severity: reject, name: affordable }
      - { unique: [id], severity: reject, name: ids }
      - { values: { column: region, in: [EU, US] }, name: regions }
      - { check: 100 / amount >= 3, name: worth }
      - { unique: [region, amount], name: prices }
      - { matches: { column: code, pattern: "[A-Z]+" }, name: codes }
      - { row_count: { min: 2, max: 4 }, name: size }
      - { row_count: { fall: 0.5, rise: 1 }, name: steps }
    config:
      name: orders
      type: json
      options: { format: ndjson }
      path: orders.ndjson
      schema: [{ name: n, type: int }, { name: id, type: int }, { name: region, type: string }, { name: amount, type: int }, { name: code, type: string }]
  - type: aggregate
    name: totals
    input: orders
    expect:
      - { range: { column: total, min: 10 }, name: large }
    config: { group_by: [region], cxl: "emit total = sum(amount)" }
  - { type: output, name: result, input: totals, config: { name: result, type: csv, path: out/result.csv } }
  - { type: output, name: odd, input: orders.regions, config: { name: odd, type: csv, path: out/odd.csv } }
"""


@dataclass(frozen=True)
class Order:
    n: int
    id: int | None
    region: str | None
    amount: int | None
    code: str | None

    def line(self) -> str:
        return json.dumps(vars(self)) + "\n"


orders = st.builds(
    Order, n=st.just(0), id=st.sampled_from([None, 1, 2, 3, 4, 5]), region=st.sampled_from([None, "EU", "US", "XX"]),
    amount=st.sampled_from([None, 0, 7, 40, 60, 95]), code=st.sampled_from([None, "A", "AB", "a", "A1"]),
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[list[Order]]:
    """Versions of a file: rows come, go and are corrected."""
    rows = [replace(one, n=at) for at, one in enumerate(draw(st.lists(orders, min_size=1, max_size=6)))]
    steps = [list(rows)]
    for step in range(3):
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(rows)))
            match draw(st.sampled_from(["insert", "remove", "correct"])):
                case "insert":
                    rows.insert(at, replace(draw(orders), n=100 * (step + 1) + len(rows)))
                case "remove" if len(rows) > 1:
                    del rows[at % len(rows)]
                case _:
                    rows[at % len(rows)] = replace(draw(orders), n=rows[at % len(rows)].n)
        steps.append(list(rows))
    return steps


def behind_the_first(rows: list[Order], key: Callable[[Order], tuple[Any, ...]]) -> list[Order]:
    """The rows behind the first with their values; rows with a null are not compared."""
    seen: set[tuple[Any, ...]] = set()
    found = []
    for row in rows:
        values = key(row)
        if None in values:
            continue
        found += [row] if values in seen else []
        seen.add(values)
    return found


def is_worth(row: Order) -> bool:
    return row.amount is not None and row.amount != 0 and 100 / row.amount >= 3


def regions(rows: list[Order]) -> dict[str | None, int]:
    """The totals of the rows by region."""
    found: dict[str | None, int] = {}
    for row in rows:
        found[row.region] = found.get(row.region, 0) + (row.amount or 0)
    return found


@dataclass(frozen=True)
class Expected:
    """The results of the expectations for the rows of a file, and for the rows before where they changed."""

    accepted: list[Order]
    rejected: Counter[tuple[int, str]]
    failing: dict[str, list[Order]]

    @classmethod
    def of(cls, rows: list[Order]) -> Expected:
        alone = [(row, "filled" if None in (row.id, row.region) else "affordable" if (row.amount or 0) > 90 else "") for row in rows]
        passed = [row for row, why in alone if not why]
        doubles = behind_the_first(passed, lambda row: (row.id,))
        accepted = [row for row in passed if row not in doubles]
        rejected = Counter([(row.n, why) for row, why in alone if why] + [(row.n, "ids") for row in doubles])
        failing = {
            "regions": [row for row in accepted if row.region not in ("EU", "US")], "worth": [row for row in accepted if not is_worth(row)],
            "prices": behind_the_first(accepted, lambda row: (row.region, row.amount)),
            "codes": [row for row in accepted if row.code is not None and not (row.code.isalpha() and row.code.isupper())],
        }  # fmt: skip
        return cls(accepted, rejected, failing)


def numbers(rows: Iterator[Any] | Any) -> list[int]:
    return sorted(row["n"] for row in rows)


def check(folder: Folder, want: Expected, steps: tuple[int, int] | None, result: errata.RunResult) -> None:
    """The state holds what the model says. `steps`: the rows before and now of the last change."""
    pipeline, rows = folder.load(), len(want.accepted)
    assert numbers(pipeline.show("orders.accepted")) == sorted(row.n for row in want.accepted)
    for name, failing in want.failing.items():
        assert numbers(pipeline.show(f"orders.{name}")) == sorted(row.n for row in failing), name
        assert result.expectations[f"orders.{name}"] == len(failing)
    assert [row["rows"] for row in pipeline.show("orders.size")] == ([] if 2 <= rows <= 4 else [rows])
    jumps = steps is not None and (steps[0] - steps[1] > steps[0] * 0.5 or steps[1] - steps[0] > steps[0])
    assert [(row["before"], row["rows"]) for row in pipeline.show("orders.steps")] == ([steps] if jumps else [])
    small = {region: total for region, total in regions(want.accepted).items() if total < 10}
    assert {row["region"]: row["total"] or 0 for row in pipeline.show("totals.large") if row["total"] is not None} == {
        region: total for region, total in small.items() if any(row.region == region and row.amount is not None for row in want.accepted)
    }
    dead = list(csv.DictReader(StringIO(folder.text("out/dlq.csv")))) if want.rejected else []
    assert Counter((int(row["n"]), row["_cxl_dlq_trigger"]) for row in dead) == want.rejected
    for name in ("filled", "affordable", "ids"):
        assert result.expectations[f"orders.{name}"] == sum(count for (_, why), count in want.rejected.items() if why == name)
    assert result.exit_code == (2 if want.rejected else 0)
    assert sorted(int(row["n"]) for row in folder.rows("out/odd.csv")) == sorted(row.n for row in want.failing["regions"])


@pytest.mark.parametrize("persist", ["all", "boundaries"])
@examples(24, 2, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=histories())
def test_failing_rows_are_those_of_a_full_run_after_any_edits(steps: list[list[Order]], persist: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Folder(tmp_path_factory.mktemp("expected"))
    folder.write("pipeline.yaml", SOURCE % {"persist": persist})
    before: int | None = None
    jump: tuple[int, int] | None = None
    for rows in steps:
        folder.write("orders.ndjson", "".join(row.line() for row in rows))
        result = folder.run()
        want = Expected.of(rows)
        if before is not None and before != len(want.accepted):
            jump = (before, len(want.accepted))
        before = len(want.accepted)
        check(folder, want, jump, result)
    assert folder.violations() == []
    assert [row for row in folder.load().verify(recompute=True) if row["verdict"] != "ok"] == []


PLAIN = """\
pipeline: {{ name: plain }}
error_handling: {{ strategy: continue }}
nodes:
  - type: source
    name: orders
    expect:
{expect}
    config: {{ name: orders, type: csv, path: orders.csv, schema: [{{ name: id, type: int }}, {{ name: amount, type: int }}, {{ name: day, type: date }}] }}
  - {{ type: output, name: result, input: orders, config: {{ name: result, type: csv, path: result.csv }} }}
"""


def plain(tmp_path: Path, *expect: str, rows: str = "1,10,2026-01-31\n2,-5,2026-02-01\n") -> Folder:
    """A project with some expectations of a source."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PLAIN.format(expect="\n".join(f"      - {one}" for one in expect)))
    folder.write("orders.csv", f"id,amount,day\n{rows}")
    return folder


def words(folder: Folder, *more: str) -> tuple[int, str, str]:
    return command(*more[:1], str(folder.path / "pipeline.yaml"), *more[1:])


def test_a_stop_commits_nothing_and_shows_failing_rows(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, severity: stop, description: Amounts are paid }", rows="1,10,2026-01-31\n")
    assert folder.run().exit_code == 0
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n2,-5,2026-02-01\n3,-6,2026-02-02\n")
    code, _, err = words(folder, "run")
    assert code == 3
    assert "error: expectation 'orders.range_amount': 2 rows fail: Amounts are paid" in err
    assert "failing row: id=2, amount=-5, day=2026-02-01" in err
    assert folder.load().head_epoch() == 1
    assert folder.text("result.csv") == "id,amount,day\n1,10,2026-01-31\n"
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n2,5,2026-02-01\n")
    assert (folder.run().epoch, folder.text("result.csv").count("\n")) == (2, 3)


def test_failing_rows_show_values_as_outputs_write_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write(
        "pipeline.yaml",
        "pipeline: { name: shown }\n"
        "nodes:\n"
        "  - type: source\n"
        "    name: orders\n"
        "    config:\n"
        "      name: orders\n"
        "      type: json\n"
        "      path: orders.jsonl\n"
        "      options: { format: ndjson }\n"
        "      schema: [{ name: id, type: int }, { name: paid, type: bool }, { name: rate, type: float }, { name: at, type: date_time }, { name: more, type: any }]\n"
        "    expect: [{ range: { column: id, min: 1 }, severity: stop }]\n"
        "  - { type: output, name: out, input: orders, config: { name: out, type: csv, path: out.csv } }\n",
    )
    folder.write("orders.jsonl", '{"id": 0, "paid": true, "rate": 2.0, "at": "2026-02-01T10:00:00Z", "more": false}\n{"id": -1, "paid": null, "rate": 1e21, "at": null, "more": "x\\ny"}\n')
    code, _, err = words(folder, "run")
    assert code == 3
    assert "failing row: id=0, paid=true, rate=2, at=2026-02-01T10:00:00, more=false\n" in err
    assert "failing row: id=-1, paid=null, rate=1000000000000000000000, at=null, more=x y\n" in err


def test_a_stop_that_was_a_warning_ends_a_run_without_news(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 } }")
    assert folder.run().expectations == {"orders.range_amount": 1}
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, severity: stop }")
    with pytest.raises(Stopped, match="1 row fails"):
        folder.run()


def test_a_stop_that_was_a_warning_ends_no_amendment_by_which_no_more_rows_fail(tmp_path: Path) -> None:
    """Runs over input still end, until no row fails."""
    rows = "1,10,2026-01-31\n2,-5,2026-02-01\n3,-6,2026-02-02\n4,x,2026-02-02\n"
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 } }", rows=rows)
    assert folder.run().exit_code == 2
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, severity: stop }", rows=rows)
    assert words(folder, "run")[0] == 3
    why = ("--reason", "asked for")
    assert words(folder, "dlq", "waive", "--all", *why)[0] == 0
    for dry in (["--dry-run"], []):
        code, _, err = words(folder, "correct", "orders", "--key", "id=1", "--set", "amount=-1", *why, *dry)
        assert (code, "3 rows fail" in err) == (3, True)
        assert words(folder, "correct", "orders", "--key", "id=2", "--set", "amount=5", *why, *dry)[0] == 0
    code, _, err = words(folder, "run")
    assert (code, "1 row fails" in err) == (3, True)
    folder.write("orders.csv", "id,amount,day\n" + rows.replace("3,-6,2026-02-02\n", ""))
    assert folder.load().erase(Erasure("asked for", "ben", key={"id": "3"})).result.exit_code == 0
    assert [row["amount"] for row in folder.rows("result.csv")] == ["10", "5"]
    assert folder.run(dry_run=True).message == ""
    assert folder.violations() == []


def test_a_warning_is_told_at_the_end_of_each_run(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 } }")
    for _ in range(2):
        code, _, err = words(folder, "run")
        assert code == 0
        assert "warning: expectation 'orders.range_amount': 1 row fails: amount at least 0" in err


def test_history_of_failing_rows(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 } }")
    folder.run()
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n2,-7,2026-02-01\n")
    folder.run()
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n2,7,2026-02-01\n")
    folder.run()
    rows = folder.log("orders.range_amount")
    assert [(row["epoch"], row["op"], row["data"]["amount"]) for row in rows] == [(1, "+A", -5), (2, "-R", -5), (2, "+A", -7), (3, "-R", -7)]


def test_a_changed_expectation_looks_at_its_own_rows_alone(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, name: paid }", "{ not_null: id }")
    folder.run()
    folder = plain(tmp_path, "{ range: { column: amount, min: 20 }, name: paid }", "{ not_null: id }")
    actions = {row["node"]: (row["action"], row["reason"]) for row in folder.load().plan_next()}
    assert actions == {
        "orders": ("skip", "input unchanged"), "orders.paid": ("rebuild", "'range' changed at line 7"),
        "orders.not_null_id": ("skip", "nothing changed upstream"), "result": ("skip", "nothing changed upstream"),
    }  # fmt: skip
    assert folder.run().counts == {"orders.paid": {"+A": 1}}


def test_other_names_and_descriptions_change_no_rows(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, name: paid }")
    folder.run()
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, name: paid, description: Amounts are paid, severity: stop }")
    assert {row["action"] for row in folder.load().plan_next()} == {"skip"}


def test_rejects_roll_back_their_groups_and_come_back(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, severity: reject, name: paid }", rows="1,10,2026-01-31\n1,-5,2026-02-01\n2,3,2026-02-02\n")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("path: orders.csv,", "path: orders.csv, correlation_key: id,"))
    assert folder.run().exit_code == 2
    assert folder.text("result.csv") == "id,amount,day\n2,3,2026-02-02\n"
    dead = [(row["category"], row["trigger"]) for row in folder.load().dlq_list()]
    assert sorted(dead)[1][0] == "expectation_failed"
    assert len(dead) == 2
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n1,5,2026-02-01\n2,3,2026-02-02\n")
    result = folder.run()
    assert (result.exit_code, result.expectations) == (0, {"orders.paid": 0})
    assert folder.rows("result.csv")[0]["amount"] == "10"
    assert folder.violations() == []


def test_fail_fast_ends_at_the_first_row_that_is_rejected(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 }, severity: reject }")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("continue", "fail_fast"))
    code, _, err = words(folder, "run")
    assert code == 3
    assert "orders.csv: record 2: expectation 'range_amount' failed: amount at least 0 (expectation_failed)" in err


class At(dt.datetime):
    """A clock that is set."""

    moment = dt.datetime(2026, 2, 1, 12, tzinfo=dt.UTC)

    @classmethod
    def now(cls, tz: Any = None) -> dt.datetime:
        return cls.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[At]:
    """The clock of runs."""
    monkeypatch.setattr(At, "moment", At.moment)  # and set back behind the test
    monkeypatch.setattr(epoch, "datetime", At)
    return At


def test_freshness_of_a_time_within_a_record(tmp_path: Path, clock: type[At]) -> None:
    folder = plain(tmp_path, "{ freshness: { column: at.day, within: 1d } }")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("name: day,", "name: at.day,"))
    folder.write("orders.csv", "id,amount,at.day\n1,10,2026-01-01\n")
    assert folder.run().expectations == {"orders.freshness_at_day": 1}


def test_freshness_turns_with_the_clock_alone(tmp_path: Path, clock: type[At]) -> None:
    folder = plain(tmp_path, "{ freshness: { column: day, within: 1d } }")
    assert folder.run().expectations == {"orders.freshness_day": 0}
    clock.moment = dt.datetime(2026, 2, 2, 1, tzinfo=dt.UTC)
    result = folder.run()
    assert (result.epoch, result.expectations, result.counts) == (2, {"orders.freshness_day": 1}, {"orders.freshness_day": {"+A": 1}})
    assert list(folder.load().show("orders.freshness_day")) == [{"newest": dt.date(2026, 2, 1), "stale_from": "2026-02-02T00:00:00"}]
    assert folder.run().committed is False
    folder.write("orders.csv", "id,amount,day\n1,10,2026-01-31\n2,5,2026-02-02\n")
    assert folder.run().expectations == {"orders.freshness_day": 0}
    folder.write("orders.csv", "id,amount,day\n")
    assert folder.run().expectations == {"orders.freshness_day": 1}
    assert folder.violations() == []


def test_rows_that_grow_old_end_runs_and_no_amendment(tmp_path: Path, clock: type[At]) -> None:
    folder = plain(tmp_path, "{ freshness: { column: day, within: 1d }, severity: stop }")
    folder.run()
    clock.moment = dt.datetime(2026, 2, 2, 1, tzinfo=dt.UTC)
    with pytest.raises(Stopped, match=r"orders\.freshness_day"):
        folder.run()
    correction = Correction("orders", {"id": "1"}, {"amount": "11"}, "typo")
    assert folder.load().correct(correction)[1].expectations == {"orders.freshness_day": 1}
    with pytest.raises(Stopped, match=r"orders\.freshness_day"):
        folder.run()
    assert folder.violations() == []


def test_an_empty_source_has_a_row_count(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ row_count: { min: 1 }, severity: stop }", rows="")
    with pytest.raises(Stopped, match="fails: rows at least 1"):
        folder.run()


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
def test_odd_columns_and_values(engine: str, tmp_path: Path) -> None:
    """Names that are no identifiers, texts with quotes, long lists, decimals, times."""
    folder = Folder(tmp_path, engine)
    listed = ", ".join(f"v{at}" for at in range(200))
    folder.write("pipeline.yaml", f"""\
pipeline: {{ name: odd }}
nodes:
  - type: source
    name: rows
    expect:
      - {{ values: {{ column: "a `b` c", in: ["x'y\\"z", 'é', {listed}] }}, name: listed }}
      - {{ unique: ["a `b` c"], name: single }}
      - {{ range: {{ column: price, min: 0.1, max: 99.99 }}, name: price }}
      - {{ range: {{ column: at, min: "2026-01-01T00:00:00", max: "2026-12-31T23:59:59.999999" }}, name: year }}
      - {{ values: {{ column: flag, in: [true] }}, name: flags }}
      - {{ range: {{ column: share, min: -0.5, max: 1e-7 }}, name: share }}
    config:
      name: rows
      type: json
      options: {{ format: ndjson }}
      path: rows.ndjson
      schema:
        - {{ name: "a `b` c", type: string }}
        - {{ name: price, type: "decimal(10,2)" }}
        - {{ name: at, type: date_time }}
        - {{ name: flag, type: bool }}
        - {{ name: share, type: float }}
  - {{ type: output, name: result, input: rows, config: {{ name: result, type: json, options: {{ format: ndjson }}, path: out.ndjson }} }}
""")  # fmt: skip
    folder.write("rows.ndjson", """\
{"a `b` c": "x'y\\"z", "price": 0.10, "at": "2026-01-01T00:00:00", "flag": true, "share": -0.5}
{"a `b` c": "é", "price": 100.00, "at": "2027-01-01T00:00:00", "flag": false, "share": 0.0000002}
{"a `b` c": "nope", "price": null, "at": null, "flag": null, "share": null}
{"a `b` c": "v199", "price": 99.99, "at": "2026-12-31T23:59:59.999999", "flag": true, "share": 0}
{"a `b` c": "v199", "price": 0.09, "at": "2025-12-31T23:59:59", "flag": true, "share": -0.51}
""")  # fmt: skip
    found = folder.run().expectations
    assert {name.partition(".")[2]: count for name, count in found.items()} == {"listed": 1, "single": 1, "price": 2, "year": 2, "flags": 1, "share": 2}


@pytest.mark.parametrize(
    ("expected", "failing"),
    [
        ("range: { column: at, min: 2026-03-16 }", ["1"]), ('range: { column: at, min: "2026-03-16 00:00:00" }', ["1"]), ("range: { column: at, max: 2026-03-15T09:00:00+01:00 }", ["2"]),
        ('values: { column: at, in: ["2026-03-15 08:00:00", "2026-03-16T09:00:01+01:00"] }', []), ("range: { column: at, max: 2026-03-15T08:00:01Z }", ["2"]),
        ('range: { column: day, max: "20260315" }', ["2"]),
    ],
)  # fmt: skip
def test_times_are_compared_with_days_and_in_utc(expected: str, failing: list[str], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    schema = "[{ name: id, type: int }, { name: at, type: date_time }, { name: day, type: date }]"
    source = f"{{ type: source, name: rows, expect: [{{ {expected}, severity: reject }}], config: {{ name: rows, type: csv, path: rows.csv, schema: {schema} }} }}"
    folder.write("pipeline.yaml", f"pipeline: {{ name: times }}\nerror_handling: {{ strategy: continue, dlq: {{ path: rejected.csv }} }}\nnodes:\n  - {source}\n  - {{ type: output, name: o, input: rows, config: {{ name: o, type: csv, path: o.csv }} }}\n")
    folder.write("rows.csv", "id,at,day\n1,2026-03-15T09:00:00+01:00,2026-03-15\n2,2026-03-16T08:00:01Z,2026-03-16\n3,,\n")
    assert folder.run().exit_code == (2 if failing else 0)
    assert [row["id"] for row in folder.rows("o.csv")] == [id_ for id_ in "123" if id_ not in failing]


COMPOSED = """\
pipeline: { name: composed }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: csv, path: orders.csv, schema: [{ name: id, type: int }, { name: amount, type: int }] }
  - type: composition
    name: clean
    use: clean.comp.yaml
    input: orders
    expect:
      - { range: { column: double, max: 100 }, severity: reject, name: small }
      - { unique: id, name: ids }
  - type: route
    name: split
    input: clean
    expect:
      - { not_null: amount, severity: reject, name: filled }
    config: { conditions: { big: amount > 10 }, default: rest }
  - type: merge
    name: all
    inputs: [split.big, split.rest]
    expect:
      - { row_count: { min: 3 }, name: several }
  - { type: output, name: result, input: all, expect: [{ range: { column: id, min: 2 }, severity: reject }], config: { name: result, type: csv, path: result.csv } }
  - { type: output, name: twice, input: clean.ids, config: { name: twice, type: csv, path: twice.csv } }
"""
BODY = """\
_compose:
  name: clean
  inputs: { rows: { schema: [{ name: amount, type: int }] } }
  outputs: { out: doubled }
nodes:
  - type: transform
    name: doubled
    input: rows
    expect:
      - { range: { column: double, min: 0 }, severity: reject, name: positive }
    config: { cxl: "emit double = amount * 2" }
"""


def test_compositions_routes_merges_and_outputs(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", COMPOSED)
    folder.write("clean.comp.yaml", BODY)
    folder.write("orders.csv", "id,amount\n1,5\n2,70\n3,\n4,20\n4,30\n5,-1\n")
    result = folder.run()
    assert {name: count for name, count in result.expectations.items() if count} == {
        "clean/doubled.positive": 1, "clean.small": 1, "clean.ids": 1, "split.filled": 1, "result.range_id": 1,
    }  # fmt: skip
    assert sorted(row["id"] for row in folder.rows("result.csv")) == ["4", "4"]
    assert folder.text("twice.csv") == "id,amount,double\n4,30,60\n"
    assert folder.violations() == []


def test_names_that_are_taken_and_kinds_that_are_not_one(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ not_null: id, name: accepted }", "{ not_null: id, unique: id }", "{ severity: warn }", "{ range: { column: id } }", "nonsense")
    code, _, err = words(folder, "check")
    assert code == 1
    assert "'accepted' is the name of the rows that pass" in err
    assert "an expectation has one of not_null, unique, values, range, matches, row_count, freshness, check, not not_null and unique" in err
    assert "a range has 'min', 'max' or both" in err


@pytest.mark.parametrize("written", ["{ range: { column: amount, min: [1] } }", "{ range: { column: amount, max: .inf } }", "{ freshness: { column: day, within: soon } }", "{ matches: { column: amount, pattern: x } }", "{ values: { column: id, in: [] } }", "{ row_count: { min: 3, max: 2 } }", "{ row_count: { fall: 2 } }", "{ check: amount + }", "{ unique: nothing }", "{ values: { column: day, in: [yesterday] } }", "{ not_null: id, severity: maybe }"])
def test_what_cannot_be_is_refused_with_its_line(written: str, tmp_path: Path) -> None:
    folder = plain(tmp_path, written)
    code, _, err = words(folder, "check")
    assert code == 1
    assert ":7:" in err


def test_no_file_names_the_type_of_made_nodes(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ not_null: id }")
    folder.write("pipeline.yaml", folder.text("pipeline.yaml") + "  - { type: expect, name: own, input: orders, config: {} }\n")
    assert "unknown node type 'expect'" in words(folder, "check")[2]


def test_full_runs_and_ephemeral_runs_count_the_same(tmp_path: Path) -> None:
    folder = plain(tmp_path, "{ range: { column: amount, min: 0 } }", "{ row_count: { min: 3 } }")
    want = {"orders.range_amount": 1, "orders.row_count": 1}
    for more in ({}, {"full_refresh": True}, {"ephemeral": True}):
        assert folder.load().run(RunOptions(engine=EngineOptions("sail"), force=True, **more)).expectations == want
