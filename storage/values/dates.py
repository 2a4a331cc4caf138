"""Dates and times in text, a column at a time.

Accepted spellings of a date: `Y-m-d`, `m/d/Y`, `Y/m/d`, `m-d-Y`. Of a date_time: `Y-m-dTH:M:S` or `Y-m-d H:M:S`, both with an optional fraction of a
second, and `m/d/Y H:M[:S]`. Years have four digits, the other parts one or two. Behind the first two, `Z` or an offset `+HH:MM` makes the time one in UTC;
then the `T` may be small, and so may the `Z`. The pipeline's own strftime patterns are tried first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import MAXYEAR, UTC, date, datetime, timedelta
from typing import Any

from changelog.lazy_imports import pa, pc, pl
from storage.values.types import timestamp_type

_DATE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})",
        r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{4})",
        r"(?P<y>[0-9]{4})/(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})",
        r"(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})-(?P<y>[0-9]{4})",
    )
)
_CLOCK = r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})"
_DAY = r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
_SECOND = r":(?P<S>[0-9]{1,2})(\.(?P<f>[0-9]{1,9}))?"
_ZONE = r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_DAY}[T ]{_CLOCK}{_SECOND}",
        rf"{_DAY}[Tt ]{_CLOCK}{_SECOND}(?P<zone>{_ZONE})",
        rf"(?P<m>[0-9]{{1,2}})/(?P<d>[0-9]{{1,2}})/(?P<y>[0-9]{{4}}) {_CLOCK}(:(?P<S>[0-9]{{1,2}}))?",
    )
)
_ALL_ZONED = rf"\A[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?(Z|{_ZONE[_ZONE.index('[+-]'):]}\z"
"""Times with an offset that Arrow reads as `time_of` does."""
_SECONDS = len("2024-01-31T23:59:59")
_CLOCK_DIRECTIVE = re.compile(r"%[-_0]?[HIkIlMSpPTRXrsc+]")


def date_of(text: str) -> date | None:
    """The date in an accepted spelling; None for other text."""
    for pattern in _DATE:
        found = pattern.fullmatch(text)
        if found:
            return _real_date(int(found["y"]), int(found["m"]), int(found["d"]))
    return None


def time_of(text: str) -> datetime | None:
    """The date-time, without a zone, in an accepted spelling; None for other text."""
    for pattern in _TIME:
        found = pattern.fullmatch(text)
        if found:
            parts = [int(found[name] or 0) for name in "ymdHMS"]
            given = found.groupdict()
            fraction = given.get("f") or ""
            return _real_time(parts, int(fraction[:6].ljust(6, "0")), _offset(given.get("zone") or ""))
    return None


def constant_time(text: str) -> datetime:
    """The time of a constant in a pipeline file or on the command line: as in a cell, or in another ISO form. A day is its midnight. Raises ValueError."""
    found = time_of(text) or datetime.fromisoformat(text)
    try:
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from None


def _offset(zone: str) -> timedelta:
    """How far a zone is ahead of UTC. None is UTC."""
    if zone.lower() in ("", "z"):
        return timedelta()
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    return -ahead if zone[0] == "-" else ahead


def _real_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _real_time(parts: Sequence[int], microseconds: int, ahead: timedelta) -> datetime | None:
    try:
        return datetime(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], microseconds) - ahead
    except (ValueError, OverflowError):
        return None


def parse_dates(text: pa.Array, formats: Sequence[str] = ()) -> pa.Array:
    """The dates (date32) of a text column; null where no spelling fits."""
    if not formats:
        try:
            return _no_year_zero(pc.cast(text, pa.date32()), text, date_of)
        except pa.ArrowInvalid:
            return _by_distinct(text, date_of, pa.date32())
    own = _by_formats(text, formats).cast(pa.date32(), safe=False)
    return _filled(own, text, date_of)


def parse_times(text: pa.Array, formats: Sequence[str] = ()) -> pa.Array:
    """The date-times (timestamp of microseconds, UTC) of a text column; null where no spelling fits."""
    if formats:
        return _filled(_by_formats(text, formats), text, time_of).cast(timestamp_type())
    lengths = pc.min_max(pc.binary_length(text)).as_py()
    if lengths["min"] is not None and lengths["min"] >= _SECONDS and lengths["max"] <= _SECONDS + 7:
        try:
            return _no_year_zero(pc.cast(text, pa.timestamp("us")), text, time_of).cast(timestamp_type())
        except pa.ArrowInvalid:
            pass
    elif lengths["min"] is not None and pc.all(pc.match_substring_regex(text, _ALL_ZONED)).as_py():
        return _zoned(text)
    return _by_distinct(text, time_of, pa.timestamp("us")).cast(timestamp_type())


def _zoned(text: pa.Array) -> pa.Array:
    """The times of a column in which all have an offset."""
    try:
        times = pc.cast(text, timestamp_type())
        bounds = pc.min_max(pc.year(times)).as_py()
        if bounds["min"] >= 1 and bounds["max"] <= MAXYEAR:
            return times
    except pa.ArrowInvalid:
        pass
    return _by_distinct(text, time_of, pa.timestamp("us")).cast(timestamp_type())


def _no_year_zero(values: pa.Array, text: pa.Array, one: Callable[[str], Any]) -> pa.Array:
    """The values without the year 0000, which Arrow reads and no engine has."""
    least = pc.min(values)
    first = pa.scalar(datetime(1, 1, 1), pa.timestamp("us")).cast(values.type, safe=False)
    if least.is_valid and pc.less(least, first).as_py():
        return _by_distinct(text, one, values.type)
    return values


def _by_distinct(text: pa.Array, one: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    coded = pc.dictionary_encode(text)
    known = pa.array([one(cell) for cell in coded.dictionary.to_pylist()], kind)
    return known.take(coded.indices)


def _filled(own: pa.Array, text: pa.Array, one: Callable[[str], Any]) -> pa.Array:
    missing = pc.and_(pc.is_null(own), pc.is_valid(text))
    if not pc.any(missing).as_py():
        return own
    rest = _by_distinct(pc.filter(text, missing), one, own.type)
    return pc.replace_with_mask(own, missing, rest)


def _by_formats(text: pa.Array, formats: Sequence[str]) -> pa.Array:
    series = pl.from_arrow(text)
    assert isinstance(series, pl.Series)
    result = pl.Series([None] * len(series), dtype=pl.Datetime("us"))
    for pattern in formats:
        result = result.zip_with(result.is_not_null(), _with_pattern(series, pattern))
    return result.to_arrow().cast(pa.timestamp("us"))


def _with_pattern(series: pl.Series, pattern: str) -> pl.Series:
    if not _CLOCK_DIRECTIVE.search(pattern):
        return series.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))
    times = series.str.to_datetime(pattern, time_unit="us", strict=False)
    if times.dtype == pl.Datetime("us"):
        return times
    return times.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
