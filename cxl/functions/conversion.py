"""Conversions. `to_*` fails where `try_*` gives null."""

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cxl.functions import decimal_columns
from cxl.functions.datetime import strptime
from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Fallible, Partly, Site
from cxl.types.types import ANY, BOOL, DATE, DATE_TIME, FLOAT, INT, MOST_DIGITS, STRING, Kind, Type, decimal_of
from cxl.values import decimals, text
from cxl.values.failure import conversion_failure

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT_COLUMN = r"\A[+-]?[0-9]+\z"
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_FLOAT = re.compile(_DECIMAL, re.ASCII)
_INT_LIMIT = 2.0**63
_WORDS = {"inf": float("inf"), "infinity": float("inf"), "nan": float("nan")}
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


# To Python values; None where a value does not convert ------------------------------------------------------------------
def _int(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if -_INT_LIMIT <= value < _INT_LIMIT else None
    if isinstance(value, Decimal):
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else None
    if isinstance(value, str):
        number = int(value) if len(value) <= 4000 and _INT.fullmatch(value) else None
        return number if number is not None and -(2**63) <= number < 2**63 else None
    return int(value) if isinstance(value, int) else None


def _float(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if _FLOAT.fullmatch(value):
            return float(value)
        sign = -1.0 if value.startswith("-") else 1.0
        word = _WORDS.get(value.lower().removeprefix("-" if sign < 0 else "+"))
        return None if word is None else sign * word
    return float(value) if isinstance(value, int | float | Decimal) else None


def _decimal(value: Any, scale: int | None = None) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return decimals.exactly(value, decimals.scale_of(value) if scale is None else scale)
    if scale is None:
        return None
    if isinstance(value, float):
        return decimals.from_float(value, scale)
    return decimals.from_text(value, scale) if isinstance(value, str) else None


def _bool(value: Any) -> bool | None:
    if isinstance(value, str):
        word = value.lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return bool(value) if isinstance(value, int) else None


def _date(value: Any, format_: str | None = None) -> date | None:
    if isinstance(value, str):
        return strptime.parse_iso_date(value) if format_ is None else strptime.parse_date(value, format_)
    return value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None


def _date_time(value: Any, format_: str | None = None) -> datetime | None:
    if isinstance(value, str):
        return strptime.parse_iso_date_time(value) if format_ is None else strptime.parse_date_time(value, format_)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if isinstance(value, datetime) else None


# To columns that are null where a value does not convert -----------------------------------------------------------------
def _int_column(site: Site) -> Any:
    if site.kind is Kind.STRING:
        return site.f.when(site.receiver.rlike(_INT_COLUMN), site.receiver.try_cast("bigint"))
    if site.kind is Kind.FLOAT:
        inside = (site.receiver >= site.f.lit(-_INT_LIMIT)) & (site.receiver < site.f.lit(_INT_LIMIT))
        return site.f.when(inside, site.receiver.try_cast("bigint"))
    if site.kind is Kind.DECIMAL:
        return decimal_columns.not_null(site.f, site.receiver.try_cast("bigint"))
    return site.receiver.cast("bigint") if site.kind in (Kind.INT, Kind.BOOL) else site.f.lit(None).cast("bigint")


def _float_column(site: Site) -> Any:
    if site.kind is Kind.STRING:
        words = site.f.lower(site.receiver).isin("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan", "+nan", "-nan")
        return site.f.when(site.receiver.rlike(rf"\A{_DECIMAL}\z") | words, site.receiver.try_cast("double"))
    if site.kind is Kind.DECIMAL:
        return site.receiver.cast("string").cast("double")  # an engine's own cast is not always the nearest Float
    return site.receiver.cast("double") if site.kind in (Kind.INT, Kind.FLOAT) else site.f.lit(None).cast("double")


def _scale(scale: int, args: tuple[Any, ...]) -> int:
    return args[0] if args and type(args[0]) is int else scale


def _decimal_column(site: Site) -> Any:
    scale = _scale(site.receiver_type.scale, site.constants)
    if site.kind in (Kind.INT, Kind.DECIMAL):
        return decimal_columns.exactly(decimal_columns.Number.of(site.f, site.receiver, site.receiver_type), scale)
    if site.kind is Kind.STRING:
        return _decimal_of_text(site, scale)
    return None if site.kind is Kind.FLOAT else site.f.lit(None).cast(f"decimal({MOST_DIGITS},{scale})")


def _decimal_of_text(site: Site, scale: int) -> Any:
    """The Decimal of a text of digits with at most one point between them, of no more digits than the scale has room for."""
    whole = MOST_DIGITS - scale
    if not whole:
        return None
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    plain = site.receiver.rlike(rf"\A-?[0-9]{{1,{whole}}}{fraction}\z")
    value = site.f.when(plain, site.receiver.try_cast(f"decimal({MOST_DIGITS},{scale})"))
    return Partly(value, site.f.coalesce(value.isNotNull(), site.f.lit(False)) | site.receiver.isNull())


def _bool_column(site: Site) -> Any:
    if site.kind is Kind.STRING:
        word = site.f.lower(site.receiver)
        return site.f.when(word.isin(*_TRUE), site.f.lit(True)).when(word.isin(*_FALSE), site.f.lit(False))
    if site.kind is Kind.INT:
        return site.receiver != 0
    return site.receiver if site.kind is Kind.BOOL else site.f.lit(None).cast("boolean")


def _date_column(site: Site) -> Any:
    given = site.constant(0)
    if given is NOT_CONSTANT:
        return None
    if site.kind is Kind.STRING:
        return strptime.date_column(site.f, site.receiver, given)
    return site.receiver.cast("date") if site.kind in (Kind.DATE, Kind.DATE_TIME) else site.f.lit(None).cast("date")


def _date_time_column(site: Site) -> Any:
    given = site.constant(0)
    if given is NOT_CONSTANT:
        return None
    if site.kind is Kind.STRING:
        return strptime.date_time_column(site.f, site.receiver, given)
    if site.kind is Kind.DATE:
        return site.f.timestamp_micros(site.f.unix_date(site.receiver).cast("bigint") * site.f.lit(86_400_000_000))
    return site.receiver if site.kind is Kind.DATE_TIME else site.f.lit(None).cast("timestamp")


def _static(build: Callable[[Site], Any]) -> Callable[[Site], Any]:
    """Return a column only where the type of the receiver is known."""
    return lambda site: None if site.receiver_type.is_dynamic else build(site)


def _strict(python: Callable[..., Any], target: str) -> Callable[..., Any]:
    def convert(value: Any, *args: Any) -> Any:
        result = python(value, *args)
        if result is None:
            raise conversion_failure(text.display(value), target)
        return result

    return convert


def _fallible(build: Callable[[Site], Any]) -> Callable[[Site], Any]:
    def column(site: Site) -> Any:
        value = build(site)
        return value if value is None or isinstance(value, Partly) else Fallible(value)

    return column


def _pair(word: str, returns: Type, doc: str, example: tuple[str, str], functions: tuple[Any, Any], *params: Param, **more: Any) -> None:
    """Register the strict and the lenient form of a conversion."""
    python, spark = functions
    shared: dict[str, Any] = {"receiver": ANY, "params": params, "category": "Conversion", "section": "Conversion Methods", **more}
    column = _static(spark)
    lenient = (example[0].replace("to_", "try_", 1), example[1])
    failing = f'"?".try_{word}({"2" if "scale" in more else ""})'
    register(Builtin(name=f"to_{word}", returns=returns, doc=f"{doc} Fails where the value does not convert.", examples=(example,),
                     python=_strict(python, returns.kind.value), spark=_fallible(column), **shared))  # fmt: skip
    register(Builtin(name=f"try_{word}", returns=returns.or_null, doc=f"{doc} Null where the value does not convert.",
                     examples=(lenient, (failing, "null")), python=python, spark=column, **shared))  # fmt: skip


_FORMAT = Param("format", STRING, optional=True)
_pair("int", INT, "Converts to an Int: a Float or a Decimal is truncated, a String has a sign and digits, true is 1.", ('"42".to_int()', "42"), (_int, _int_column))
_pair("float", FLOAT, "Converts to a Float: an Int, a Decimal (the nearest Float), or a String in decimal or exponent form.", ('"3.14".to_float()', "3.14"), (_float, _float_column))
_pair("decimal", decimal_of(0), "Converts to a Decimal with `scale` digits behind the point. A Float is rounded half to even. Any other value converts only where no "
      "digit but zeros is lost. An Int and a Decimal may leave the scale out.", ('"19.99".to_decimal(2)', "19.99"), (_decimal, _decimal_column),
      Param("scale", INT, optional=True, scale=True), scale=_scale, shown_returns="Decimal")  # fmt: skip
_pair("bool", BOOL, "Converts to a Bool: `true` `1` `yes` and `false` `0` `no` in any case; an Int is true unless it is 0.",
      ('"Yes".to_bool()', "true"), (_bool, _bool_column))  # fmt: skip
_pair("date", DATE, "Converts to a Date: a String `YYYY-MM-DD`, or in the given format.", ('"15/03/2024".to_date("%d/%m/%Y")', "2024-03-15"),
      (_date, _date_column), _FORMAT)  # fmt: skip
_pair("datetime", DATE_TIME, "Converts to a DateTime: a String `YYYY-MM-DDTHH:MM:SS`, made UTC where `Z` or an offset such as `+02:00` follows, or in the given format.",
      ('"2024-03-15T14:30:00".to_datetime()', "2024-03-15T14:30:00"), (_date_time, _date_time_column), _FORMAT)  # fmt: skip


# To text ----------------------------------------------------------------------------------------------------------------


def _text_column(site: Site) -> Any:
    """The text of a Float where all engines write it alike: whole numbers, and up to 15 digits without an exponent."""
    if site.kind in (Kind.STRING, Kind.INT, Kind.DECIMAL, Kind.BOOL, Kind.DATE):
        return site.receiver.cast("string")
    if site.kind is Kind.DATE_TIME:
        return site.f.replace(site.receiver.cast("string"), site.f.lit(" "), site.f.lit("T"))
    return _float_text_column(site.f, site.receiver)


def _float_text_column(f: Any, value: Any) -> Partly:
    text, size = value.cast("string"), f.abs(value)
    is_plain = (size >= f.lit(0.001)) & (size < f.lit(1e7)) & (f.length(text) <= _PLAIN_DIGITS)
    is_whole = (size < f.lit(1e15)) & (size >= f.lit(1.0)) & (value == f.floor(value).cast("double"))
    shown = f.when(is_whole, value.try_cast("bigint").cast("string")).otherwise(text)
    return Partly(shown, f.coalesce(is_plain | is_whole, value.isNull()))


_PLAIN_DIGITS = 16
"""Up to fifteen digits and a point: no other decimal of that length reads back as the same number."""
_SHOWN = "Converts to text: the shortest decimal that reads back, `YYYY-MM-DD` for dates."
register(Builtin(name="to_string", receiver=ANY, returns=STRING, doc=f"{_SHOWN} Never fails.", examples=(("1.0.to_string()", "1"),),
                 category="Conversion", section="Conversion Methods", python=text.display, spark=_static(_text_column)))  # fmt: skip
register(Builtin(name="format", receiver=ANY, params=(Param("format", STRING),), returns=STRING, doc=f"{_SHOWN} The format is not used.",
                 examples=(('42.format("")', "42"),), category="String", section="Formatting and concatenation",
                 python=lambda value, _: text.display(value), null_arguments=True, spark=_static(_text_column)))  # fmt: skip
