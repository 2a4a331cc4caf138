"""The revenue of each region, from rows of a program: a typed script over Errata's Python interface. mypy and pyright check it in their strict modes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

import errata

PIPELINE: Mapping[str, object] = {
    "pipeline": {"name": "revenue"},
    "nodes": [
        {
            "type": "source",
            "name": "orders",
            "expect": [{"range": {"column": "amount", "min": 0}, "name": "paid"}],
            "config": {
                "name": "orders",
                "type": "csv",
                "path": "orders.csv",
                "merge": {"strategy": "snapshot", "primary_key": ["id"]},
                "schema": [{"name": "id", "type": "int"}, {"name": "region", "type": "string"}, {"name": "amount", "type": "float"}],
            },
        },
        {"type": "aggregate", "name": "totals", "input": "orders", "config": {"group_by": ["region"], "cxl": "emit total = sum(amount)"}},
        {"type": "output", "name": "report", "input": "totals", "config": {"name": "report", "type": "csv", "path": "totals.csv"}},
    ],
}


def revenue(folder: Path, orders: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The totals of all orders, and the number of op rows that this delivery brought to them."""
    pipeline: errata.Pipeline = errata.load(PIPELINE, base_dir=folder)
    result: errata.RunResult = pipeline.run(inputs={"orders": orders}, engine="sail")
    rows: errata.NodeRows = result["totals"]
    failing: int = result.expectations["orders.paid"]
    if failing:
        print(f"{failing} orders have no amount that can be")
    return rows.to_polars(), len(result.changes("totals"))


def problems(definition: Mapping[str, object]) -> list[str]:
    """The problems of a pipeline, one line each."""
    try:
        errata.load(definition)
    except errata.PipelineErrors as errors:
        found: list[str] = [f"{one.line}: {one.message}" for one in errors.diagnostics]
        return found
    return []


if __name__ == "__main__":
    here = Path()
    first = pl.DataFrame({"id": [1, 2, 3], "region": ["north", "south", "north"], "amount": [40.0, 25.0, 15.0]})
    print(revenue(here, first))
    print(revenue(here, first.with_columns(amount=pl.Series([40.0, 52.0, 15.0]))))
