"""The tables of TPC-H as CSV files, in four versions: at first, with orders inserted, with orders deleted, with prices corrected."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.versions import corrected_place, write_once

GENERATOR: Final = "tpchgen-cli"
FIRST: Final = "first run"
VERSIONS: Final = (FIRST, "orders inserted", "orders deleted", "prices corrected")
INSERTED, DELETED = 0.5, 0.25
"""Which one of the `share` orders comes or goes, as a place among them."""

Change = Callable[[bytes, str], bytes]
"""The new bytes of a table, from its bytes and its name."""

COLUMNS: Final[Mapping[str, str]] = {
    "region": "r_regionkey r_name r_comment",
    "nation": "n_nationkey n_name n_regionkey n_comment",
    "supplier": "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment",
    "customer": "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment",
    "part": "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment",
    "partsupp": "ps_partkey ps_suppkey ps_availqty ps_supplycost ps_comment",
    "orders": "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk o_shippriority o_comment",
    "lineitem": (
        "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax l_returnflag l_linestatus "
        "l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment"
    ),
}
"""The columns of each table, in their order."""
SMALL_NUMBERS: Final = ("l_linenumber", "o_shippriority", "p_size", "ps_availqty")
AMOUNTS: Final = ("l_quantity", "l_discount", "l_tax", "l_extendedprice", "o_totalprice", "p_retailprice", "ps_supplycost", "c_acctbal", "s_acctbal")
LINES_OF_ORDERS: Final = ("orders", "lineitem")
PRICES: Final[Mapping[str, str]] = {"lineitem": "l_extendedprice", "orders": "o_totalprice", "partsupp": "ps_supplycost"}


def duckdb_type(column: str) -> str:
    """The type of a column in DuckDB."""
    if column in AMOUNTS:
        return "DECIMAL(15,2)"
    if column.endswith("date"):
        return "DATE"
    return "BIGINT" if column.endswith("key") or column in SMALL_NUMBERS else "VARCHAR"


TABLES: Final[Mapping[str, Mapping[str, str]]] = {table: {column: duckdb_type(column) for column in columns.split()} for table, columns in COLUMNS.items()}
"""The columns of each table with their types in DuckDB."""


def generator() -> str | None:
    """The path of `tpchgen-cli` beside this Python or on the path of commands, None where it is not installed."""
    return shutil.which(GENERATOR, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def write_versions(folder: Path, scale: float, share: int) -> Path:
    """Write a folder `0` to `3` for each version, of all tables; a folder that is there already is kept. Returns `folder`.

    Args:
        folder: What holds the versions.
        scale: The scale factor of TPC-H: 1 has six million lines of orders.
        share: One order of this number comes or goes, and one price of this number changes.
    """
    return write_once(folder, lambda place: _write_versions(place, scale, share))


def _write_versions(partial: Path, scale: float, share: int) -> None:
    found = generator()
    if found is None:
        raise SystemExit(f"{GENERATOR} is not installed; install the extra `bench`")
    whole = partial / "whole"
    subprocess.run([found, "csv", "-s", str(scale), "--output-dir", str(whole)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    inserted, deleted = (_orders(whole, share, place) for place in (INSERTED, DELETED))
    changes: tuple[tuple[Path, Sequence[str], Change], ...] = (
        (whole, LINES_OF_ORDERS, lambda data, _: _without(data, inserted)),
        (whole, LINES_OF_ORDERS, lambda data, _: _at_the_end(data, inserted)),
        (partial / "1", LINES_OF_ORDERS, lambda data, _: _without(data, deleted)),
        (partial / "2", tuple(PRICES), lambda data, table: _with_other_prices(data, table, share)),
    )
    for number, (before, changed, change) in enumerate(changes):
        (partial / str(number)).mkdir()
        for table in COLUMNS:
            source, target = before / f"{table}.csv", partial / str(number) / f"{table}.csv"
            if table in changed:
                target.write_bytes(change(source.read_bytes(), table))
            else:
                target.hardlink_to(source)
    shutil.rmtree(whole)


def _orders(whole: Path, share: int, place: float) -> frozenset[bytes]:
    """The keys of one order of `share`."""
    keys = [line.partition(b",")[0] for line in _lines((whole / "orders.csv").read_bytes())[1:]]
    return frozenset(keys[int(place * share) :: share])


def _without(data: bytes, orders: frozenset[bytes]) -> bytes:
    return b"".join(line for line in _lines(data) if line.partition(b",")[0] not in orders)


def _at_the_end(data: bytes, orders: frozenset[bytes]) -> bytes:
    return _without(data, orders) + b"".join(line for line in _lines(data) if line.partition(b",")[0] in orders)


def _with_other_prices(data: bytes, table: str, share: int) -> bytes:
    """Half of the price, and a cent, in one of `share` lines. No cell before the price has a comma in it."""
    at = COLUMNS[table].split().index(PRICES[table])
    head, *lines = _lines(data)

    def corrected(lines: Iterable[bytes]) -> Iterator[bytes]:
        for number, line in enumerate(lines):
            if number % share == corrected_place(share):
                cells = line.split(b",", at + 1)
                cents = int(cells[at].replace(b".", b"")) // 2 + 1
                cells[at] = b"%d.%02d" % divmod(cents, 100)
                yield b",".join(cells)
            else:
                yield line

    return b"".join((head, *corrected(lines)))


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)
