"""Formats of dates and times: the specifiers of Rust's chrono, in Python and as columns.

A format is split into pieces once. Each piece writes itself (`format_date`), and describes the text that it reads (`to_date`
with a format). Names are English. When a text is read:

* Numbers may have fewer digits than their width, and names may have any case.
* A blank in the format matches any white space. White space may also precede a number that is padded with blanks (`%e`).
* `%z` matches an offset, which is ignored.
* The whole text must match.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ALIASES = {
    "D": "%m/%d/%y", "x": "%m/%d/%y", "F": "%Y-%m-%d", "v": "%e-%b-%Y", "R": "%H:%M", "T": "%H:%M:%S", "X": "%H:%M:%S",
    "r": "%I:%M:%S %p", "c": "%a %b %e %H:%M:%S %Y", "n": "\n", "t": "\t", "%": "%%",
}  # fmt: skip
_FRACTIONS = ("%.3f", "%.6f", "%.9f", "%.f", "%3f", "%6f", "%9f")


class BadFormat(Exception):
    """A format with an unknown specifier, which the message names."""


@dataclass(frozen=True, slots=True)
class Number:
    """A specifier that writes a number: width, padding, how to get it in Python and as a column."""

    width: int
    pad: str
    python: Callable[[Any], int]
    column: Callable[[Any, Any], Any]
    time: bool = False

    def padding(self, flag: str) -> str:
        """Return the character that fills the number up to its width under a flag; empty where none does."""
        return {"": self.pad, "-": "", "_": " ", "0": "0"}[flag]


def _weekday(f: Any, c: Any) -> Any:
    """Monday is 0. Sail's own `weekday` gives -1 for Sunday."""
    return (f.dayofweek(c) + 5) % 7


def _week(f: Any, c: Any) -> Any:
    """The ISO week of the date. Sail's own fails on timestamps before 1678."""
    return f.weekofyear(c.cast("date"))


def _iso_year_column(f: Any, c: Any) -> Any:
    month, week = f.month(c), _week(f, c)
    return f.year(c) + f.when((month == 1) & (week > 51), f.lit(-1)).when((month == 12) & (week == 1), f.lit(1)).otherwise(f.lit(0))


def _hour12(hour: int) -> int:
    return (hour + 11) % 12 + 1


NUMBERS: dict[str, Number] = {
    "Y": Number(4, "0", lambda d: d.year, lambda f, c: f.year(c)),
    "C": Number(2, "0", lambda d: d.year // 100, lambda f, c: f.floor(f.year(c) / 100)),
    "y": Number(2, "0", lambda d: d.year % 100, lambda f, c: f.year(c) % 100),
    "q": Number(1, "0", lambda d: (d.month + 2) // 3, lambda f, c: f.quarter(c)),
    "m": Number(2, "0", lambda d: d.month, lambda f, c: f.month(c)),
    "d": Number(2, "0", lambda d: d.day, lambda f, c: f.dayofmonth(c)),
    "e": Number(2, " ", lambda d: d.day, lambda f, c: f.dayofmonth(c)),
    "j": Number(3, "0", lambda d: d.timetuple().tm_yday, lambda f, c: f.dayofyear(c)),
    "u": Number(1, "0", date.isoweekday, lambda f, c: _weekday(f, c) + 1),
    "w": Number(1, "0", lambda d: d.isoweekday() % 7, lambda f, c: f.dayofweek(c) - 1),
    "G": Number(4, "0", lambda d: d.isocalendar().year, _iso_year_column),
    "g": Number(2, "0", lambda d: d.isocalendar().year % 100, lambda f, c: _iso_year_column(f, c) % 100),
    "V": Number(2, "0", lambda d: d.isocalendar().week, _week),
    "U": Number(2, "0", lambda d: (d.timetuple().tm_yday + 6 - d.isoweekday() % 7) // 7, lambda f, c: f.floor((f.dayofyear(c) + 7 - f.dayofweek(c)) / 7)),
    "W": Number(2, "0", lambda d: (d.timetuple().tm_yday + 6 - d.weekday()) // 7, lambda f, c: f.floor((f.dayofyear(c) + 6 - _weekday(f, c)) / 7)),
    "H": Number(2, "0", lambda d: d.hour, lambda f, c: f.hour(c), True),
    "k": Number(2, " ", lambda d: d.hour, lambda f, c: f.hour(c), True),
    "I": Number(2, "0", lambda d: _hour12(d.hour), lambda f, c: (f.hour(c) + 11) % 12 + 1, True),
    "l": Number(2, " ", lambda d: _hour12(d.hour), lambda f, c: (f.hour(c) + 11) % 12 + 1, True),
    "M": Number(2, "0", lambda d: d.minute, lambda f, c: f.minute(c), True),
    "S": Number(2, "0", lambda d: d.second, lambda f, c: f.second(c), True),
    "s": Number(1, "0", lambda d: int((d - datetime(1970, 1, 1)).total_seconds() // 1), lambda f, c: f.floor(f.unix_micros(c) / 1_000_000), True),
}


@dataclass(frozen=True, slots=True)
class Name:
    """A specifier that writes a name from a list."""

    names: tuple[str, ...]
    python: Callable[[Any], int]
    column: Callable[[Any, Any], Any]
    time: bool = False


_MONTH = (lambda d: d.month - 1, lambda f, c: f.month(c) - 1)
_DAY = (date.weekday, _weekday)
_NOON = (lambda d: d.hour // 12, lambda f, c: f.floor(f.hour(c) / 12).cast("int"))
_SHORT_MONTHS, _SHORT_DAYS = tuple(m[:3] for m in MONTHS), tuple(d[:3] for d in DAYS)
NAMES: dict[str, Name] = {
    "B": Name(MONTHS, *_MONTH), "b": Name(_SHORT_MONTHS, *_MONTH), "h": Name(_SHORT_MONTHS, *_MONTH),
    "A": Name(DAYS, *_DAY), "a": Name(_SHORT_DAYS, *_DAY),
    "p": Name(("AM", "PM"), *_NOON, time=True), "P": Name(("am", "pm"), *_NOON, time=True),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spec:
    """A specifier in a format: its letter (`f` with its form for fractions), and the padding flag."""

    letter: str
    flag: str = ""

    @property
    def needs_time(self) -> bool:
        """Whether a Date has nothing to show here."""
        known = NUMBERS.get(self.letter) or NAMES.get(self.letter)
        return known.time if known else True


Piece = str | Spec
_ISO_DATE: tuple[Piece, ...] = (Spec("Y"), "-", Spec("m"), "-", Spec("d"))


@lru_cache(maxsize=512)
def pieces(format_: str) -> tuple[Piece, ...]:
    """Return a format as literal texts and specifiers. Raises BadFormat."""
    found: list[Piece] = []
    rest = format_
    while rest:
        before, percent, rest = rest.partition("%")
        found.extend([before] if before else [])
        if percent:
            piece, rest = _specifier(rest)
            found.extend(piece)
    return tuple(found)


def _specifier(rest: str) -> tuple[tuple[Piece, ...], str]:
    for form in _FRACTIONS:
        if rest.startswith(form[1:]):
            return (Spec(form[1:]),), rest[len(form) - 1 :]
    flag = rest[:1] if rest[:1] in ("-", "_", "0") else ""
    letter, rest = rest[len(flag) : len(flag) + 1], rest[len(flag) + 1 :]
    if letter in _ALIASES and not flag:
        return (("%",) if letter == "%" else pieces(_ALIASES[letter])), rest
    if letter not in NUMBERS and letter not in NAMES and letter != "f":
        raise BadFormat(f"unknown specifier '%{flag}{letter}'")
    return (Spec(letter, flag),), rest


def check(format_: str) -> str | None:
    """Return what is wrong with a format, None where it is valid."""
    try:
        pieces(format_)
    except BadFormat as error:
        return str(error)
    return None


def shows_time(format_: str) -> bool:
    """Whether a format has a specifier that a Date has no value for."""
    return any(isinstance(piece, Spec) and piece.needs_time for piece in pieces(format_))


def is_iso_date(format_: str) -> bool:
    """Return whether a format writes dates as `YYYY-MM-DD`."""
    return check(format_) is None and pieces(format_) == _ISO_DATE


# Writing ----------------------------------------------------------------------------------------------------------------
def write(value: date, format_: str) -> str | None:
    """Return a date or time as text; null for the time of a Date. Raises BadFormat."""
    if not isinstance(value, datetime) and shows_time(format_):
        return None
    return "".join(piece if isinstance(piece, str) else _write(piece, value) for piece in pieces(format_))


def _write(spec: Spec, value: Any) -> str:
    if spec.letter in NUMBERS:
        number = NUMBERS[spec.letter]
        return _padded(str(number.python(value)), number, spec.flag)
    if spec.letter in NAMES:
        return NAMES[spec.letter].names[NAMES[spec.letter].python(value)]
    return _fraction(spec.letter, value.microsecond)


def _padded(digits: str, number: Number, flag: str) -> str:
    pad = number.padding(flag)
    return digits.rjust(number.width, pad) if pad else digits


def _fraction(letter: str, micros: int) -> str:
    digits = f"{micros:06d}000"
    if letter == "f":
        return digits
    if letter == ".f":
        width = 0 if micros == 0 else 3 if micros % 1000 == 0 else 6
        return f".{digits[:width]}" if width else ""
    return f"{'.' if letter.startswith('.') else ''}{digits[: int(letter[-2])]}"


_MOST_PIECES = 200


def write_column(f: Any, value: Any, is_date: bool, format_: str) -> Any:
    """Return the text as a column; None where there is none, or it would be too large."""
    if check(format_) is not None or len(pieces(format_)) > _MOST_PIECES or any(_is_fraction(piece) for piece in pieces(format_)):
        return None
    if is_date and shows_time(format_):
        return f.lit(None).cast("string")
    if is_iso_date(format_):
        return value.cast("date").cast("string")
    columns = [f.lit(piece) if isinstance(piece, str) else _spec_column(f, value, piece) for piece in pieces(format_)]
    return f.when(value.isNotNull(), f.concat(f.lit(""), *columns))


def _is_fraction(piece: Piece) -> bool:
    return isinstance(piece, Spec) and piece.letter.endswith("f")


def _spec_column(f: Any, value: Any, spec: Spec) -> Any:
    if spec.letter in NAMES:
        return _name_column(f, NAMES[spec.letter], value)
    number = NUMBERS[spec.letter]
    digits = number.column(f, value).cast("bigint").cast("string")
    pad = number.padding(spec.flag)
    if not pad or number.width == 1:
        return digits
    return f.lpad(digits, f.lit(number.width), f.lit(pad))


def _name_column(f: Any, name: Name, value: Any) -> Any:
    width = max(map(len, name.names))
    table = "".join(one.ljust(width) for one in name.names)
    return f.rtrim(f.substring(f.lit(table), name.column(f, value) * width + 1, f.lit(width)))

