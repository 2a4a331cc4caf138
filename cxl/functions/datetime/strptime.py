"""Dates and times from text, in ISO form or by a format, in Python and as columns. See `cxl.functions.datetime.strftime`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from cxl.functions.datetime.strftime import DAYS, MONTHS, NUMBERS, BadFormat, Spec, pieces
from cxl.functions.regex import literal_pattern
from cxl.functions.spark_call import date_literal

Day = TypeVar("Day", bound=date)
_DIGITS = {"Y": (1, 4), "G": (1, 4), "C": (1, 2), "j": (1, 3), "u": (1, 1), "w": (1, 1), "q": (1, 1), "s": (1, 11)}
_NAMED = {"B": MONTHS, "b": MONTHS, "h": MONTHS, "A": DAYS, "a": DAYS, "p": ("AM", "PM"), "P": ("AM", "PM")}
_SAME = {"e": "d", "k": "H", "l": "I", "B": "b", "h": "b", "A": "a", "P": "p"}
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_ISO_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
_ZONE = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_ZONED = f"{_ISO_TIME.replace('T', '[Tt]')}{_ZONE}"
_ISO_DATE_TIME = re.compile(f"{_ISO_TIME}|{_ZONED}", re.ASCII)
_SECONDS = len("2024-01-31T23:59:59")
_TOKENS = re.compile(r"%:z|%.|[^%]+|%", re.DOTALL)
_OFFSET_PATTERN = "[+-][0-9]{2}:?[0-9]{2}"
_BLANKS = "[\\t\\n\\r ]*"
_RUN_OF_BLANKS = re.compile(f"(?:{re.escape(_BLANKS)})+")


@dataclass(frozen=True, slots=True)
class Reader:
    """A format ready to read: the pattern, and the specifier of each of its groups."""

    pattern: str
    fields: tuple[str, ...]


@lru_cache(maxsize=512)
def reader(format_: str) -> Reader:
    """Return the reader of a format. Raises BadFormat."""
    fields: list[str] = []
    text = ""
    for index, part in enumerate(_between_offsets(format_)):
        text += _OFFSET_PATTERN if index else ""
        for piece in pieces(part):
            if isinstance(piece, str):
                text += "".join(_BLANKS if char.isspace() else literal_pattern(char) for char in piece)
            else:
                fields.append(_SAME.get(piece.letter, piece.letter))
                text += f"{_BLANKS if _is_blank_padded(piece) else ''}({_field_pattern(piece)})"
    return Reader(_RUN_OF_BLANKS.sub(lambda _: _BLANKS, text), tuple(fields))


def _is_blank_padded(spec: Spec) -> bool:
    """Whether it is a number padded with blanks."""
    return spec.letter in NUMBERS and NUMBERS[spec.letter].padding(spec.flag) == " "


def _between_offsets(format_: str) -> list[str]:
    """The parts of a format before, between and after `%z` and `%:z`. An offset is read and ignored, because times have no zone."""
    parts = [""]
    for token in _TOKENS.findall(format_):
        if token in ("%z", "%:z"):
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _field_pattern(spec: Spec) -> str:
    if spec.letter in _NAMED:
        return "|".join(_names_patterns(_NAMED[spec.letter]))
    if spec.letter.endswith("f"):
        digits = f"{{{spec.letter[-2]}}}" if spec.letter[-2:-1].isdigit() else "{1,9}"
        return f"\\.[0-9]{digits}" if spec.letter.startswith(".") else f"[0-9]{digits}"
    low, high = _DIGITS.get(spec.letter, (1, 2))
    return f"[0-9]{{{low},{high}}}" if high > 1 else "[0-9]"


def _names_patterns(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        letters = [f"[{char.upper()}{char.lower()}]" for char in name]
        rest = "".join(letters[3:])
        yield "".join(letters[:3]) + (f"(?:{rest})?" if rest else "")


def _python_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\x\{([0-9A-F]+)\}", lambda found: re.escape(chr(int(found[1], 16))), pattern), re.ASCII)


@lru_cache(maxsize=512)
def _compiled(format_: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    found = reader(format_)
    return _python_pattern(found.pattern), found.fields


# In Python --------------------------------------------------------------------------------------------------------------
def parse_iso_date(value: str) -> date | None:
    """Read `YYYY-MM-DD` and nothing else."""
    if not _ISO_DATE.fullmatch(value):
        return None
    return _checked(lambda: date.fromisoformat(value))


def parse_iso_date_time(value: str) -> datetime | None:
    """Read `YYYY-MM-DDTHH:MM:SS` with an optional fraction; behind it `Z` or an offset `+HH:MM` makes it UTC. Digits beyond microseconds are ignored."""
    if not _ISO_DATE_TIME.fullmatch(value):
        return None
    whole, fraction, zone = value[:_SECONDS], value[_SECONDS:].rstrip("Zz"), value[-6:]
    ahead = timedelta()
    if zone[0] in "+-":
        fraction = fraction[:-6]
        ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) * (-1 if zone[0] == "-" else 1)
    micros = timedelta(microseconds=int(fraction[1:].ljust(6, "0")[:6]))
    return _checked(lambda: datetime.fromisoformat(whole) + micros - ahead)


def parse_date(value: str, format_: str) -> date | None:
    """Read a date by a format. Returns null for an invalid format, a text that does not match, and a date that does not exist."""
    found = _read(value, format_)
    return None if found is None else _checked(lambda: _date_of(found))


def parse_date_time(value: str, format_: str) -> datetime | None:
    """Read a date and time by a format that has both."""
    found = _read(value, format_)
    return None if found is None else _checked(lambda: _date_time_of(found))


def _checked(build: Callable[[], Day]) -> Day | None:
    try:
        return build()
    except (ValueError, KeyError, OverflowError):
        return None


def _read(value: str, format_: str) -> dict[str, Any] | None:
    try:
        pattern, fields = _compiled(format_)
    except BadFormat:
        return None
    match = pattern.fullmatch(value)
    if match is None:
        return None
    found: dict[str, Any] = {}
    for letter, text in zip(fields, match.groups(), strict=True):
        read = _field_value(letter, text)
        if found.setdefault(letter, read) != read:
            return None
    return found


def _field_value(letter: str, text: str) -> int:
    if letter in ("b", "a", "p"):
        names = [name[:3].lower() for name in _NAMED[letter]]
        return names.index(text[:3].lower())
    if letter.endswith("f"):
        return int(text.lstrip(".").ljust(6, "0")[:6])
    return int(text)


def _date_of(found: Mapping[str, Any]) -> date:
    if "s" in found:
        return _epoch(found).date()
    time(found.get("H", 0), found.get("M", 0), found.get("S", 0))
    result = _calendar_date(found)
    known = {"a": result.weekday(), "u": result.isoweekday(), "w": result.isoweekday() % 7, "j": result.timetuple().tm_yday,
             "q": (result.month + 2) // 3, "m": result.month, "b": result.month - 1, "d": result.day}  # fmt: skip
    if any(found[letter] != value for letter, value in known.items() if letter in found):
        raise ValueError("contradiction")
    return result


def _calendar_date(found: Mapping[str, Any]) -> date:
    if "G" in found and "V" in found:
        day = found["u"] if "u" in found else found["a"] + 1
        return date.fromisocalendar(found["G"], found["V"], day)
    year = _year(found)
    if "j" in found and found["j"] > 0:
        return date(year, 1, 1) + timedelta(days=found["j"] - 1)
    return date(year, found["m"] if "m" in found else found["b"] + 1, found["d"])


def _year(found: Mapping[str, Any]) -> int:
    if "Y" in found:
        return int(found["Y"])
    if "C" in found:
        return int(found["C"] * 100 + found["y"])
    return int(found["y"] + (1900 if found["y"] >= 70 else 2000))


def _epoch(found: Mapping[str, Any]) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=found["s"])


def _date_time_of(found: Mapping[str, Any]) -> datetime:
    micros = next((value for letter, value in found.items() if letter.endswith("f")), 0)
    if "s" in found:
        return _epoch(found).replace(microsecond=micros)
    day = _date_of(found)
    return datetime(day.year, day.month, day.day, _hour(found), found["M"], found.get("S", 0), micros)


def _hour(found: Mapping[str, Any]) -> int:
    if "H" in found:
        return int(found["H"])
    if not 1 <= found["I"] <= 12:
        raise ValueError("hour")
    return int(found["I"] % 12 + 12 * found["p"])


# As columns -------------------------------------------------------------------------------------------------------------
_NATIVE_DATE = ({"Y", "m", "d"}, {"Y", "b", "d"})
_TIME = frozenset("HMS")


def date_column(f: Any, text: Any, format_: str | None) -> Any:
    """Return a date by a format (None: ISO) as a column, null where the text does not match. None where there is no such column."""
    if format_ is None:
        value = text.try_cast("date")
        exact = f.length(text) == 10
        return f.when(exact & (value.cast("string") == text) & (value >= date_literal(f, date.min)), value)
    found = _native_fields(f, text, format_)
    return None if found is None else _made(f, found).cast("date")


def date_time_column(f: Any, text: Any, format_: str | None) -> Any:
    """Return a date and time by a format (None: ISO) as a column."""
    if format_ is None:
        return f.when(text.rlike(f"\\A{_ZONED}\\z"), _zoned_column(f, text)).otherwise(_local_column(f, text))
    found = _native_fields(f, text, format_)
    return None if found is None or not {"H", "M"} <= found.keys() else _made(f, found)


def _local_column(f: Any, text: Any) -> Any:
    """A time without an offset."""
    day = text.substr(f.lit(1), f.lit(10))
    fits = text.rlike(f"\\A{_ISO_TIME}\\z") & date_column(f, day, None).isNotNull()
    return f.when(fits & (text.substr(f.lit(12), f.lit(2)) < "24"), f.replace(text, f.lit("T"), f.lit(" ")).try_cast("timestamp"))


def _zoned_column(f: Any, text: Any) -> Any:
    """A time with an offset, in UTC; null where that leaves the years 1 to 9999."""
    local = _local_column(f, f.upper(f.regexp_replace(text, f"{_ZONE}\\z", "")))
    zone = f.right(text, f.lit(6))
    minutes = zone.substr(f.lit(2), f.lit(2)).try_cast("bigint") * 60 + zone.substr(f.lit(5), f.lit(2)).try_cast("bigint")
    ahead = f.when(zone.startswith("-"), -minutes).when(zone.startswith("+"), minutes).otherwise(f.lit(0))
    micros = f.unix_micros(local) - ahead * 60_000_000
    first, last = (_micros(one) for one in (datetime.min, datetime.max))
    return f.when((micros >= first) & (micros <= last), f.timestamp_micros(micros))


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def _native_fields(f: Any, text: Any, format_: str) -> dict[str, Any] | None:
    """The fields of a format as Int columns, null where the text does not match. None where Python must read the format."""
    try:
        found = reader(format_)
    except BadFormat:
        return None
    day = set(found.fields) - _TIME
    if day not in _NATIVE_DATE or len(found.fields) != len(set(found.fields)) or "\\x{2028}" in found.pattern:
        return None
    pattern = f"\\A{found.pattern}\\z"
    return {letter: _native_field(f, text, pattern, index, letter) for index, letter in enumerate(found.fields, 1)}


def _native_field(f: Any, text: Any, pattern: str, index: int, letter: str) -> Any:
    group = f.regexp_extract(text, pattern, index)
    if letter != "b":
        return group.try_cast("int")
    names = "".join(month[:3].lower() for month in MONTHS)
    position = f.instr(f.lit(names), f.lower(f.substring(group, f.lit(1), f.lit(3))))
    return f.when(group != "", ((position + 2) / 3).cast("int"))


def _made(f: Any, found: Mapping[str, Any]) -> Any:
    """The timestamp of the fields; null where there is no such time."""
    zero = f.lit(0)
    month = found["m"] if "m" in found else found["b"]
    hour, minute, second = (found.get(letter, zero) for letter in "HMS")
    value = f.try_make_timestamp(found["Y"], month, found["d"], hour, minute, second)
    inside = found["Y"] >= 1
    return f.when(inside & (second < 60), value) if "S" in found else f.when(inside, value)
