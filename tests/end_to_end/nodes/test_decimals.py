"""Decimals from the cell to the output: histories of random corrections end as a full run, and every figure is that of Python's decimal module."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.pipelines import Folder, Record, command, limited

WIDE = Context(prec=200)
PIPELINE = """\
pipeline: {name: prices, vars: {rate: {type: "decimal(6,3)", default: "1.210"}}}
error_handling: {strategy: continue, dlq: {path: rejected.csv, include_reason: true}}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: {strategy: snapshot, primary_key: [id]}
      schema: [{name: id, type: decimal, scale: 1}, {name: region, type: string}, {name: price, type: decimal, scale: 2}, {name: qty, type: int}]
  - {type: transform, name: priced, input: orders, config: {cxl: "emit net = price * qty\\nemit gross = (price * $vars.rate).round_to(2)"}}
  - {type: aggregate, name: totals, input: priced, config: {group_by: [region], cxl: "emit total = sum(net)\\nemit mean = avg(price)\\nemit per = weighted_avg(price, qty)\\nemit top = max(price)\\nemit all = collect(price)"}}
  - {type: aggregate, name: prices, input: orders, config: {group_by: [price], cxl: "emit n = count(*)"}}
  - type: transform
    name: running
    input: orders
    config: {analytic_window: {group_by: [region], sort_by: [id]}, cxl: "emit so_far = $window.sum(price)\\nemit before = $window.lag(1).price"}
  - {type: output, name: t, input: totals, config: {name: t, type: csv, path: totals.csv, schema: [{name: mean, type: decimal, scale: 3}]}}
  - {type: output, name: p, input: prices, config: {name: p, type: csv, path: prices.csv, sort_order: [price]}}
  - {type: output, name: r, input: running, config: {name: r, type: json, path: running.json, sort_order: [id]}}
"""
HEADER = ("id", "region", "price", "qty")


def exactly(number: int, scale: int = 2) -> Decimal:
    return Decimal(number).scaleb(-scale, WIDE)


def spelled(chance: random.Random, value: Decimal) -> str:
    """One of the spellings of a value."""
    text = f"{value:f}"
    return chance.choice([text, f"{text}00", f"{value.normalize(WIDE)}", f"{value:E}", f"{'' if value < 0 else '+'}{text}"])


def records(chance: random.Random, before: Sequence[Record]) -> list[Record]:
    """Some records of before, others with new prices, and new ones."""
    numbers = [0, 1, -1, 10, 250, 1999, -5, 1234567890123456789, -1234567890123456789, 10**26, -(10**26)]
    made = {record["id"]: record for record in before if chance.random() < 0.8}
    for _ in range(8):
        place = f"{chance.randint(1, 30)}.{chance.choice('05')}"
        price = None if chance.random() < 0.1 else spelled(chance, exactly(chance.choice([*numbers, chance.randint(-10**6, 10**6)])))
        made[place] = {"id": place, "region": chance.choice(["EU", "US", "Å"]), "price": price, "qty": chance.choice([None, 0, 1, 2, 7, -3])}
    return list(made.values())


def quotient(above: Decimal, below: Decimal | int, scale: int) -> Decimal:
    """A quotient rounded once, half to even."""
    exact = Context(prec=300).divide(above, Decimal(below))
    return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_EVEN, WIDE)


def shown(value: Decimal | None) -> str:
    return "" if value is None else f"{value or abs(value):f}"


def expected_totals(rows: Sequence[Record]) -> list[list[str]]:
    found = []
    for region in sorted({row["region"] for row in rows}):
        own = [(None if row["price"] is None else Decimal(row["price"]), row["qty"]) for row in rows if row["region"] == region]
        prices = [price for price, _ in own if price is not None]
        nets = [price * qty for price, qty in own if price is not None and qty is not None]
        share = sum(qty for price, qty in own if price is not None and qty is not None)
        total = sum(nets, Decimal(0)).quantize(Decimal("0.01"), context=WIDE) if nets else None
        mean = quotient(quotient(sum(prices, Decimal(0)), len(prices), 12), 1, 3) if prices else None
        per = quotient(sum(nets, Decimal(0)), share, 12) if share else None
        top = max(prices).quantize(Decimal("0.01"), context=WIDE) if prices else None
        found.append([region, shown(total), shown(mean), shown(per), shown(top)])
    return found


def run(folder: Folder, rows: Sequence[Record], **options: object) -> None:
    folder.write_csv("orders.csv", HEADER, rows)
    assert folder.run(**options).exit_code == 0


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep)])
@pytest.mark.parametrize("driver_rows", [5_000, 2])
def test_random_corrections_end_as_a_full_run(tmp_path: Path, seed: int, driver_rows: int) -> None:
    chance, rows = random.Random(seed), list[Record]()
    folder, fresh = Folder(tmp_path / "steps"), Folder(tmp_path / "fresh")
    with limited(driver_rows=driver_rows, small_rows=driver_rows):
        for one in (folder, fresh):
            one.write("pipeline.yaml", PIPELINE)
        for _ in range(3):
            rows = records(chance, rows)
            run(folder, rows)
            found = [[row["region"], row["total"], row["mean"], row["per"], row["top"]] for row in folder.rows("totals.csv")]
            assert sorted(found) == sorted(expected_totals(rows))
        run(fresh, rows)
    for name in ("totals.csv", "prices.csv", "running.json"):
        assert folder.text(name) == fresh.text(name)
    assert folder.violations() == []
    prices = [row["price"] for row in folder.rows("prices.csv")]
    known = sorted({Decimal(row["price"]) for row in rows if row["price"] is not None})
    assert [Decimal(price) for price in prices if price] == known
    assert all(price.partition(".")[2].__len__() == 2 for price in prices if price)


def test_the_same_numbers_in_other_spellings_correct_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    run(folder, [{"id": "1", "region": "EU", "price": "2.5", "qty": 1}, {"id": "2.0", "region": "EU", "price": "100", "qty": 2}])
    folder.write_csv("orders.csv", HEADER, [{"id": "1.0", "region": "EU", "price": "250e-2", "qty": 1}, {"id": "2", "region": "EU", "price": "1E2", "qty": 2}])
    assert not folder.run().committed or {row["epoch"] for row in folder.log("orders")} == {1}


def test_a_correction_is_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    run(folder, [{"id": "1", "region": "EU", "price": "2.50", "qty": 2}])
    monkeypatch.chdir(tmp_path)
    words = ("correct", "pipeline.yaml", "orders", "--key", "id=1.00", "--reason", "typo", "--set")
    code, _, stderr = command(*words, "price=2.505")
    assert (code, "column 'price' is decimal(38,2): '2.505' does not fit" in stderr) == (64, True)
    assert command(*words, "price=1e1")[0] == 0
    assert folder.rows("totals.csv")[0]["total"] == "20.00"
    code, out, _ = command("log", "pipeline.yaml", "priced", "--epoch", "2", "--format", "jsonl")
    assert [json.loads(line, parse_float=str)["data"]["gross"] for line in out.splitlines()] == ["3.02", "12.10"]


def test_a_value_beyond_the_declared_digits_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("scale: 3}", "scale: 3, precision: 5}"))
    folder.write_csv("orders.csv", HEADER, [{"id": "1", "region": "EU", "price": "100.00", "qty": 1}])
    monkeypatch.chdir(tmp_path)
    code, _, stderr = command("run", "pipeline.yaml", "--engine", "sail")
    assert (code, "output 't': column 'mean': 100.000" in stderr) == (4, True)
    assert not (tmp_path / "totals.csv").exists()
    assert not (tmp_path / "prices.csv").exists()


def test_fewer_declared_digits_are_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    folder.write_csv("orders.csv", HEADER, [{"id": "1", "region": "EU", "price": "100.00", "qty": 1}])
    for digits, exit_code in (("", 0), (", precision: 5", 4), (", precision: 6", 0)):
        folder.write("pipeline.yaml", PIPELINE.replace("scale: 3}", f"scale: 3{digits}}}"))
        code, _, stderr = command("run", "pipeline.yaml", "--engine", "sail")
        assert (code, "output 't': column 'mean': 100.000" in stderr) == (exit_code, exit_code == 4)
    folder.write("pipeline.yaml", PIPELINE.replace("type: csv, path: totals.csv, schema: [{name: mean, type: decimal, scale: 3}]", "type: parquet, path: totals.parquet, schema: [{name: mean, type: decimal, scale: 3, precision: 9}]"))
    assert command("run", "pipeline.yaml", "--engine", "sail")[0] == 0
    assert str(pq.read_schema(tmp_path / "totals.parquet").field("mean").type) == "decimal128(9, 3)"
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("precision: 9", "precision: 7"))
    assert command("run", "pipeline.yaml", "--engine", "sail")[0] == 0
    assert str(pq.read_schema(tmp_path / "totals.parquet").field("mean").type) == "decimal128(7, 3)"


def test_fewer_digits_of_a_source_are_an_edit(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    run(folder, [{"id": "1", "region": "EU", "price": "100.00", "qty": 1}, {"id": "2", "region": "EU", "price": "9.00", "qty": 1}])
    assert folder.rows("totals.csv")[0]["total"] == "109.00"
    folder.write("pipeline.yaml", PIPELINE.replace("{name: price, type: decimal, scale: 2}", "{name: price, type: decimal, scale: 2, precision: 4}"))
    assert folder.run().exit_code == 2
    assert [folder.rows("totals.csv")[0]["total"], *(row["price"] for row in folder.rows("rejected.csv"))] == ["9.00", "100.00"]


def test_a_change_that_rounding_hides_is_none(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("scale: 3}", "scale: 0}, {name: total, type: decimal, scale: 0}, {name: top, type: decimal, scale: 0}").replace("emit all = collect(price)", "").replace("emit per = weighted_avg(price, qty)\\n", ""))
    run(folder, [{"id": "1", "region": "EU", "price": "10.10", "qty": 1}])
    run(folder, [{"id": "1", "region": "EU", "price": "10.20", "qty": 1}])
    assert folder.rows("totals.csv") == [{"region": "EU", "total": "10", "mean": "10", "top": "10"}]
    assert {row["epoch"] for row in folder.log("t")} == {1}
    assert {row["epoch"] for row in folder.log("totals")} == {1, 2}
