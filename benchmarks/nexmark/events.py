"""The events of Nexmark as CSV files, by its published description: 1 person, 3 auctions and 46 bids in 50 events, 10,000 events a second.

Half of the bids go to a hot auction, three quarters come from a hot bidder, three quarters of the auctions have a hot seller. Prices are spread evenly by their logarithm.
What differs from the description: times have microseconds, so that no two events have the same; events carry no filling bytes.
The events lie in ten files of each kind, by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.versions import corrected_place, write_once

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

FILES: Final = 10
VERSIONS: Final = ("first run", "a file added", "0.1 % corrected")
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "person": {"id": "BIGINT", "name": "VARCHAR", "email_address": "VARCHAR", "credit_card": "VARCHAR", "city": "VARCHAR", "state": "VARCHAR", "date_time": "TIMESTAMP"},
    "auction": {
        "id": "BIGINT", "item_name": "VARCHAR", "description": "VARCHAR", "initial_bid": "BIGINT", "reserve": "BIGINT", "date_time": "TIMESTAMP", "expires": "TIMESTAMP",
        "seller": "BIGINT", "category": "BIGINT",
    },
    "bid": {"auction": "BIGINT", "bidder": "BIGINT", "price": "BIGINT", "channel": "VARCHAR", "url": "VARCHAR", "date_time": "TIMESTAMP"},
}  # fmt: skip
PERSONS, AUCTIONS, EVENTS = 1, 3, 50
"""Of `EVENTS` events the first are persons, then come auctions, then bids."""
START: Final = 1_436_918_400_000_000
"""2015-07-15, in microseconds since 1970."""
STEP: Final = 100
"""Microseconds from one event to the next."""
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT: Final = 100
"""The newest person, and the newest auction, whose number is divisible by this one is hot."""
HOT_AUCTIONS, HOT_PEOPLE, HOT_CHANNELS = 2, 4, 2
"""One bid of two is of no hot auction; one of four has no hot bidder; and so on."""
IN_FLIGHT, LEAD, ACTIVE = 100, 10, 1000
STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")
FIRST_NAMES: Final = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES: Final = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")


def write_versions(folder: Path, events: float, share: int) -> Path:
    """Write a folder for each version: nine files of each kind; ten; the same with corrections. A folder that is there already is kept.

    Args:
        folder: What holds the versions.
        events: The number of events in all ten files.
        share: One price of a bid, category of an auction and state of a person of this number is corrected.
    """
    return write_once(folder, lambda place: _write_versions(place, int(events), share))


def _write_versions(folder: Path, events: int, share: int) -> None:
    first, second, third = (folder / str(version) for version in range(len(VERSIONS)))
    for version in (first, second, third):
        version.mkdir()
    for number in range(FILES):
        for kind, frame in frames(events * number // FILES, events * (number + 1) // FILES).items():
            name = f"{kind}-{number}.csv"
            _write(frame, second / name)
            _write(_corrected(kind, frame, share), third / name)
            if number < FILES - 1:
                (first / name).hardlink_to(second / name)


def frames(first: int, end: int) -> Mapping[str, pl.DataFrame]:
    """The events from a number to another, by kind."""
    import numpy as np

    numbers = np.arange(first, end)
    random = np.random.default_rng(first)
    place = numbers % EVENTS
    persons, auctions = place < PERSONS, (place >= PERSONS) & (place < PERSONS + AUCTIONS)
    return {
        "person": _persons(numbers[persons], random),
        "auction": _auctions(numbers[auctions], random),
        "bid": _bids(numbers[~persons & ~auctions], random),
    }


def newest_person(numbers: Numbers) -> Numbers:
    """The number of the newest person at each event, from 0."""
    return numbers // EVENTS


def newest_auction(numbers: Numbers) -> Numbers:
    """The number of the newest auction at each event, from 0; -1 ahead of the first one."""
    import numpy as np

    return numbers // EVENTS * AUCTIONS + np.clip(numbers % EVENTS - PERSONS, -1, AUCTIONS - 1)


def _persons(numbers: Numbers, random: np.random.Generator) -> pl.DataFrame:
    import polars as pl

    count = len(numbers)
    first, last, city, state = (_chosen(words, count, random) for words in (FIRST_NAMES, LAST_NAMES, CITIES, STATES))
    columns = {"id": newest_person(numbers) + FIRST_ID, "first": first, "last": last, "card": random.integers(10**15, 10**16, count), "city": city, "state": state}
    return pl.DataFrame({**columns, "date_time": _moments(numbers)}).select(
        "id", pl.format("{} {}", "first", "last").alias("name"), pl.format("{}@{}.com", "first", "last").str.to_lowercase().alias("email_address"),
        pl.col("card").cast(pl.String).str.replace_all(r"(\d{4})(\d{4})(\d{4})(\d{4})", "$1 $2 $3 $4").alias("credit_card"), "city", "state", "date_time",
    )  # fmt: skip


def _auctions(numbers: Numbers, random: np.random.Generator) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    count = len(numbers)
    initial = _prices(count, random)
    length = 1 + random.integers(0, 2 * (IN_FLIGHT * EVENTS // AUCTIONS) * STEP // 1000, count)
    seller = np.where(random.integers(0, HOT_PEOPLE, count) > 0, newest_person(numbers) // HOT * HOT, _some_person(numbers, random))
    return pl.DataFrame({
        "id": newest_auction(numbers) + FIRST_ID, "item_name": _letters(count, 20, random), "description": _letters(count, 100, random), "initial_bid": initial,
        "reserve": initial + _prices(count, random), "date_time": _moments(numbers), "expires": _moments(numbers, 1000 * length), "seller": seller + FIRST_ID,
        "category": random.integers(0, CATEGORIES, count) + FIRST_CATEGORY,
    })  # fmt: skip


def _bids(numbers: Numbers, random: np.random.Generator) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    count = len(numbers)
    newest = newest_auction(numbers)
    oldest = np.maximum(newest - IN_FLIGHT, 0)
    auction = np.where(random.integers(0, HOT_AUCTIONS, count) > 0, newest // HOT * HOT, random.integers(oldest, newest + 1 + LEAD))
    bidder = np.where(random.integers(0, HOT_PEOPLE, count) > 0, newest_person(numbers) // HOT * HOT + 1, _some_person(numbers, random))
    hot = pl.Series(random.integers(0, HOT_CHANNELS, count) > 0)
    columns = {"auction": auction + FIRST_ID, "bidder": bidder + FIRST_ID, "price": _prices(count, random), "path": _letters(count, 5, random)}
    return pl.DataFrame({**columns, "known": _chosen(CHANNELS, count, random), "other": random.integers(0, 10_000, count), "date_time": _moments(numbers)}).select(
        "auction", "bidder", "price", pl.when(hot).then("known").otherwise(pl.format("channel-{}", "other")).alias("channel"),
        pl.format("https://www.nexmark.com/{}/item.htm?query=1", "path").alias("url"), "date_time",
    )  # fmt: skip


def _some_person(numbers: Numbers, random: np.random.Generator) -> Numbers:
    import numpy as np

    people = newest_person(numbers) + 1
    active = np.minimum(people, ACTIVE)
    return people - active + random.integers(0, active + LEAD)


def _prices(count: int, random: np.random.Generator) -> Numbers:
    import numpy as np

    return np.round(10.0 ** (random.random(count) * 6) * 100).astype(np.int64)


def _chosen(words: Sequence[str], count: int, random: np.random.Generator) -> pl.Series:
    import polars as pl

    return pl.Series(words).gather(random.integers(0, len(words), count))


def _letters(count: int, length: int, random: np.random.Generator) -> pl.Series:
    import numpy as np
    import polars as pl

    texts = random.integers(ord("a"), ord("z") + 1, (count, length), np.uint8).view(f"S{length}").ravel()
    return pl.Series(texts.astype(f"U{length}"))


def _moments(numbers: Numbers, after: Numbers | int = 0) -> pl.Series:
    import polars as pl

    return pl.Series(START + STEP * numbers + after).cast(pl.Datetime("us"))


def _corrected(kind: str, frame: pl.DataFrame, share: int) -> pl.DataFrame:
    """Another price of a bid, category of an auction, state of a person, in one of `share` rows."""
    import polars as pl

    state = pl.col("state").replace(dict(zip(STATES, STATES[1:] + STATES[:1], strict=True)))
    category = FIRST_CATEGORY + (pl.col("category") - FIRST_CATEGORY + 1) % CATEGORIES
    other = {"bid": pl.col("price") // 2 + 1, "auction": category, "person": state}[kind]
    name = {"bid": "price", "auction": "category", "person": "state"}[kind]
    chosen = pl.int_range(pl.len()) % share == corrected_place(share)
    return frame.with_columns(pl.when(chosen).then(other).otherwise(name).alias(name))


def _write(frame: pl.DataFrame, path: Path) -> None:
    frame.write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S%.6f")
