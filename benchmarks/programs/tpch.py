"""The queries of TPC-H: a first run, orders inserted, orders deleted, prices corrected."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from benchmarks.suite import Suite
from benchmarks.tpch import tables

TEXT: Final = (
    "All 22 queries as pipelines (`benchmarks/tpch`), over keyed snapshots of CSV files by `tpchgen-cli`; money is Decimal. A first run, then a thousandth of the orders comes (RF1),",
    "another thousandth goes (RF2), and a thousandth of the prices in `lineitem`, `orders` and `partsupp` changes. Queries 2, 11 and 16 read no orders, so nothing changes for them in two steps.",
)


def fraction(scale: float) -> Mapping[str, str]:
    """The share of the whole stock from which on query 11 lists a part."""
    return {"fraction": f"{Decimal('0.0001') / Decimal(str(scale)):f}"}


SUITE: Final = Suite(
    name="tpch",
    title="TPC-H",
    text=TEXT,
    folder=Path(tables.__file__).parent,
    queries=[f"q{number:02}" for number in range(1, 23)],
    tables=tables.TABLES,
    files="{}.csv",
    versions=tables.VERSIONS,
    write=tables.write_versions,
    sizes=(1,),
    warming=0.01,  # with fewer suppliers keys of `partsupp` come twice
    unit="scale",
    variables=fraction,
    ordered=True,
)
BENCHMARK: Final = SUITE.benchmark()
