"""The queries of Nexmark: a first run over nine files of events, a tenth file, a correction of one event in a thousand."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.nexmark import events
from benchmarks.suite import Suite

TEXT: Final = (
    "Persons, auctions and bids by the published description of [Nexmark](https://datalab.cs.pdx.edu/niagara/NEXMark/), generated here (`benchmarks/nexmark`): ten files of each by time.",
    "A first run over nine files, then the tenth comes, then a thousandth of the prices of bids, categories of auctions and states of persons is corrected in place. Bids have no key.",
    "Query 5 has windows of 10 seconds that begin every 2 seconds. Query 7 has windows of 10 seconds.",
)
SUITE: Final = Suite(
    name="nexmark",
    title="Nexmark",
    text=TEXT,
    folder=Path(events.__file__).parent,
    queries=["q3", "q4", "q5", "q7", "q9", "q15", "q17", "q18", "q20"],
    tables=events.TABLES,
    files="{}-*.csv",
    versions=events.VERSIONS,
    write=events.write_versions,
    sizes=(10_000_000,),
    warming=10_000,
    unit="events",
    words={
        "duckdb": {"micros": "epoch_us(date_time)", "moment": "make_timestamp(start)"},
        "pyspark": {"micros": "unix_micros(date_time)", "moment": "timestamp_micros(start)"},
        "polars": {"micros": "cast(date_time as bigint)", "moment": "cast(start as timestamp)"},
    },
)
BENCHMARK: Final = SUITE.benchmark()
