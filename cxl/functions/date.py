"""Date and time methods. A result outside the years 1 to 9999 is null."""

from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta
from typing import Any

from cxl.functions.datetime import strftime
from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Site, date_literal
from cxl.types.types import DATE, DATE_TIME, INT, STRING, Kind, Type
from cxl.values.failure import CxlFailure

_DAY = 86_400_000_000
"""Microseconds of a day."""
_EPOCH = datetime(1970, 1, 1)
_MOST_DAYS, _MOST_MONTHS = 3_700_000, 120_000
_EITHER = (DATE, DATE_TIME)


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> None:
    settings = {"receiver": _EITHER, "category": "Date", "section": "Date & Time Methods", **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, **settings))


# Components -------------------------------------------------------------------------------------------------------------
def _component(name: str, function: str, doc: str, expected: str) -> None:
    _entry(name, doc, (f"#2024-03-15#.{name}()", expected), lambda value: getattr(value, name),
           lambda c: getattr(c.f, function)(c.receiver).cast("bigint"), returns=INT)  # fmt: skip


def _time_component(name: str, doc: str, expected: str) -> None:
    def column(site: Site) -> Any:
        value = getattr(site.f, name)(site.receiver) if site.kind is Kind.DATE_TIME else site.f.lit(None)
        return value.cast("bigint")

    _entry(name, f"{doc}; null for a Date.", (f'"2024-03-15T14:30:45".to_datetime().{name}()', expected),
           lambda value: getattr(value, name) if isinstance(value, datetime) else None, column, returns=INT.or_null)  # fmt: skip


_component("year", "year", "The year.", "2024")
_component("month", "month", "The month, 1 to 12.", "3")
_component("day", "dayofmonth", "The day of the month, 1 to 31.", "15")
_time_component("hour", "The hour, 0 to 23", "14")
_time_component("minute", "The minute, 0 to 59", "30")
_time_component("second", "The second, 0 to 59", "45")


# Arithmetic -------------------------------------------------------------------------------------------------------------
def _add_days(value: date, days: int) -> date | None:
    try:
        return value + timedelta(days=days)
    except OverflowError:
        return None


def _add_months(value: date, months: int) -> date | None:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        return None
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day if (year, month) != (MAXYEAR, 11) else 31
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def _bounded(site: Site, most: int, times: int = 1) -> tuple[Any, Any]:
    """The Int argument as a Spark int, and whether it can be added at all (None: it always can)."""
    constant = site.constants[0]
    if constant is not NOT_CONSTANT:
        known = max(-most, min(most, constant * times))
        return site.f.lit(known).cast("int"), None
    inside = site.args[0].between(site.f.lit(-most // times), site.f.lit(most // times))
    return site.int_arg(0, -most // times, most // times) * site.f.lit(times), inside


def _known_date(site: Site, value: Any, inside: Any) -> Any:
    known = value.between(date_literal(site.f, date.min), date_literal(site.f, date.max))
    return site.f.when(known if inside is None else known & inside, value)


def _shifted_date(site: Site, shift: str, most: int, times: int) -> Any:
    amount, inside = _bounded(site, most, times)
    return _known_date(site, getattr(site.f, shift)(site.receiver.cast("date"), amount), inside)


def _shift_column(shift: str, most: int, times: int = 1) -> Any:
    """The shifted date. A DateTime keeps its time of day."""

    def build(site: Site) -> Any:
        shifted = _shifted_date(site, shift, most, times)
        if site.kind is Kind.DATE:
            return shifted
        time = site.f.unix_micros(site.receiver) - _date_micros(site.f, site.receiver.cast("date"))
        return site.f.timestamp_micros(_date_micros(site.f, shifted) + time)

    return build


def _date_micros(f: Any, value: Any) -> Any:
    return f.unix_date(value).cast("bigint") * f.lit(_DAY)


def _same(receiver: Type, _: tuple[Type, ...]) -> Type:
    return receiver if receiver.kind in (Kind.DATE, Kind.DATE_TIME) else Type(Kind.ANY)


_N = (Param("n", INT),)
_entry("add_days", "The date `n` days later, or earlier when negative.", ("#2024-01-15#.add_days(10)", "2024-01-25"),
       _add_days, _shift_column("date_add", _MOST_DAYS), params=_N, returns=_same)  # fmt: skip
_entry("add_months", "The date `n` months later; in a shorter month its last day.", ("#2024-01-31#.add_months(1)", "2024-02-29"),
       _add_months, _shift_column("add_months", _MOST_MONTHS), params=_N, returns=_same)  # fmt: skip
_entry("add_years", "The date `n` years later; February 29 becomes 28 where there is none.", ("#2024-02-29#.add_years(1)", "2025-02-28"),
       lambda value, n: _add_months(value, 12 * n), _shift_column("add_months", _MOST_MONTHS, 12), params=_N, returns=_same)  # fmt: skip


# Differences ------------------------------------------------------------------------------------------------------------
def micros(value: date) -> int:
    """Return the microseconds since 1970."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _truncated(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


def _diff_months(value: date, other: date) -> int:
    months = (value.year - other.year) * 12 + value.month - other.month
    rest, other_rest = _rest_of_month(value), _rest_of_month(other)
    return months - (months > 0 and rest < other_rest) + (months < 0 and rest > other_rest)


def _rest_of_month(value: date) -> int:
    return value.day * _DAY + micros(value) % _DAY


def _micros_column(f: Any, value: Any, type_: Type) -> Any:
    return f.unix_micros(value) if type_.kind is Kind.DATE_TIME else _date_micros(f, value)


def _diff_days_column(site: Site) -> Any:
    if site.kind is Kind.DATE and site.arg_types[0].kind is Kind.DATE:
        return site.f.date_diff(site.receiver, site.args[0]).cast("bigint")
    difference = _micros_column(site.f, site.receiver, site.receiver_type) - _micros_column(site.f, site.args[0], site.arg_types[0])
    return site.f.call_function("div", difference, site.f.lit(_DAY))


def _rest_column(f: Any, value: Any, type_: Type) -> Any:
    day = f.dayofmonth(value).cast("bigint") * f.lit(_DAY)
    return day if type_.kind is Kind.DATE else day + f.unix_micros(value) - _date_micros(f, value.cast("date"))


def _diff_months_column(site: Site) -> Any:
    f, value, other = site.f, site.receiver, site.args[0]
    months = ((f.year(value) - f.year(other)) * f.lit(12) + f.month(value) - f.month(other)).cast("bigint")
    rest, other_rest = _rest_column(f, value, site.receiver_type), _rest_column(f, other, site.arg_types[0])
    early = f.when((months > 0) & (rest < other_rest), months - f.lit(1))
    return early.when((months < 0) & (rest > other_rest), months + f.lit(1)).otherwise(months)


_OTHER = (Param("other", _EITHER),)
_entry("diff_days", "Whole days from the argument to the receiver.", ("#2024-03-15#.diff_days(#2024-03-01#)", "14"),
       lambda value, other: _truncated(micros(value) - micros(other), _DAY), _diff_days_column, params=_OTHER, returns=INT)  # fmt: skip
_entry("diff_months", "Whole months from the argument to the receiver.", ("#2024-03-15#.diff_months(#2024-01-16#)", "1"),
       _diff_months, _diff_months_column, params=_OTHER, returns=INT)  # fmt: skip
_entry("diff_years", "Whole years from the argument to the receiver.", ("#2024-03-15#.diff_years(#2000-03-15#)", "24"),
       lambda value, other: _truncated(_diff_months(value, other), 12),
       lambda c: c.f.call_function("div", _diff_months_column(c), c.f.lit(12).cast("bigint")), params=_OTHER, returns=INT)  # fmt: skip


# Text -------------------------------------------------------------------------------------------------------------------
def _format_date(value: date, format_: str) -> str | None:
    try:
        return strftime.write(value, format_)
    except strftime.BadFormat as error:
        raise CxlFailure(f"format_date: {error}") from None


def _format_column(site: Site) -> Any:
    format_ = site.constants[0]
    return None if format_ is NOT_CONSTANT else strftime.write_column(site.f, site.receiver, site.kind is Kind.DATE, format_)


_entry("format_date", "The date as text, by chrono's specifiers (`%Y %m %d %H %M %S %B %b %A %j %V` ...), with English names.",
       ('#2024-03-15#.format_date("%B %d, %Y")', "March 15, 2024"), _format_date, _format_column, params=(Param("format", STRING),),
       returns=STRING.or_null)  # fmt: skip
