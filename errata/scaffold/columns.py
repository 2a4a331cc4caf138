"""The type of a column, guessed from its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from changelog.lazy_imports import pl
from errata.scaffold.model import Cells, Guess
from storage.values.coerce import coerce

_NO_VALUE = ("null", "na", "n/a", "#n/a", "n.a.", "none", "nan", "nil", "-", "--", "?", ".", "\\n", "(null)", "k.a.", "unknown")
"""Texts that people write where there is no value, in small letters."""
_MOST_MISFITS = 0.05
_MONEY = re.compile(
    r"(amount|price|cost|revenue|fee|vat|tax|balance|salary|wage|paid|payment|net|gross|subtotal|discount|refund|invoice_total|total"
    r"|betrag|preis|summe|umsatz|kosten|netto|brutto|saldo|gebuehr|montant|prix|importe|precio|prezzo|importo|valor|eur|usd|gbp|chf)", re.IGNORECASE,
)  # fmt: skip
_MEASURE = re.compile(r"(temp|humid|press|volt|lat|lon|lng|ratio|rate|score|weight|height|width|length|depth|speed|reading|percent|%|pct|share|value|wert|_?[xyz]$)", re.IGNORECASE)
_DAY_NAME = re.compile(r"(date|datum|day|tag$|_on$|_at$|^at$|fecha|jour|giorno|created|updated|valid|from$|until$|^dt|_dt$|time|zeit)", re.IGNORECASE)
_INT = r"^[+-]?\d+$"
_LEADING = r"^0\d+$|^\+\d+$"
_POINT = r"^[+-]?(\d+\.\d*|\.\d+|\d+)$"
_EXPONENT = r"^[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+$"
_CURRENCY = r"(?:[€$£¥₹₽]|R\$|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|Fr\.?|kr\.?|zł|Kč)"
_SIGN = rf"(?:{_CURRENCY}|%)"
_ENDS_THOUSANDS = {",": ".", ".": ","}
"""By the sign before decimals what ends thousands."""
_SPACES = " \u00a0\u202f'\u2019"
_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y",
    "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%Y%m%d",
)  # fmt: skip
_TIMES = (
    "", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d-%m-%Y %H:%M:%S", "%d-%m-%Y %H:%M", "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S",
    "%Y%m%d%H%M%S",
)  # fmt: skip
_BUILT_IN = ("%Y-%m-%d", "%m/%d/%Y", "%Y/%m/%d", "%m-%d-%Y", "", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")
"""Formats that a source reads without being told."""
_TWINS = {"%m/%d/%Y": "%d/%m/%Y", "%m-%d-%Y": "%d-%m-%Y", "%m/%d/%y": "%d/%m/%y"}
"""Formats whose months and days change places."""


class _Texts(NamedTuple):
    """The texts of a column that are values.

    Args:
        name: The name of the column.
        values: The texts, without blanks around them.
        total: How many there are, texts without a value included.
        blank: Whether blanks are around some.
        nothing: The texts that say that there is no value.
        shown: What rows of the column are called in messages.
        day_first: Whether days come before months, where both could be.
        mark: The sign before decimals that other columns of the file show; empty where none does.
    """

    name: str
    values: pl.Series
    total: int
    blank: bool
    nothing: Sequence[str]
    day_first: bool
    mark: str

    def misfits(self, fits: pl.Series) -> pl.Series:
        """The values that do not fit."""
        return self.values.filter(~fits)

    def tolerates(self, count: int) -> bool:
        """Whether so few values do not fit that the others decide."""
        return are_tolerated(count, len(self.values))

    @property
    def converts(self) -> bool:
        """Whether a source cannot read the values as they are written."""
        return self.blank or bool(self.nothing)


def guess_of(name: str, cells: Cells, *, day_first: bool = False, mark: str = "") -> Guess:
    """Return the guessed type of a column.

    Args:
        name: The name of the column.
        cells: Its values.
        day_first: Whether days come before months where a date could be read both ways.
        mark: The sign before decimals that other columns show: it decides where a number could be read both ways.
    """
    if cells.declared is not None:
        return Guess(cells.declared, money=cells.declared.startswith("decimal"))
    kinds = cells.kinds
    if kinds & {"array", "objects"}:
        return Guess("array" if kinds <= {"array", "objects"} else "any")
    if "map" in kinds:
        return Guess("any")
    if not kinds:
        return Guess("string", doubts=("no record has a value: it is a string",))
    if kinds == {"bool"}:
        return Guess("bool")
    if "text" not in kinds:
        return _of_numbers(name, cells.texts.drop_nulls()) if "bool" not in kinds else Guess("any", doubts=("some values are numbers, some true or false: its type is any",))
    if kinds != {"text"}:
        return _of_mixture(cells, name, day_first=day_first)
    texts = cells.texts.drop_nulls()
    return _of_texts(name, texts.filter(texts != ""), day_first=day_first, mark=mark)


def are_tolerated(misfits: int, total: int) -> bool:
    """Return whether so few values do not fit that the others decide the type."""
    return misfits == 0 or (total >= 5 and (misfits == 1 or misfits <= _MOST_MISFITS * total))


def is_no_value(texts: pl.Series) -> pl.Series:
    """Return which texts are words that people write where there is no value."""
    return texts.str.strip_chars().str.to_lowercase().is_in(_NO_VALUE)


def _of_mixture(cells: Cells, name: str, *, day_first: bool) -> Guess:
    """Values of JSON or of a sheet that are texts in some records and something else in others."""
    texts = cells.texts.drop_nulls().filter(cells.texts.drop_nulls() != "")
    if "bool" in cells.kinds:
        return Guess("any", doubts=("some values are texts, some are true or false: its type is any",))
    if are_tolerated(int((~_fits(texts, r"^\d{4}-\d\d-\d\d(T|$)")).sum()), len(texts)):
        return _of_texts(name, texts, day_first=day_first, mark="")
    numbers = _fits(texts, _POINT) | _fits(texts, _EXPONENT)
    others = texts.filter(~numbers)
    nothing = bool(is_no_value(others).all())
    if len(others) and not nothing and are_tolerated(len(others), len(texts)) and not _fits(texts, _LEADING).any():
        guess = _of_numbers(name, texts.filter(numbers))
        return replace(guess, doubts=(*guess.doubts, *_rejected(others, len(texts), "number")))
    number = "decimal" if _is_money(name, texts.filter(_fits(texts, _POINT))) else "float"
    if len(others) and nothing:
        return Guess("any", doubts=(f"{_many(len(others), len(texts))} are texts such as '{others[0]}', the others are numbers ({number}): its type is any, so that no record is rejected",))
    if not len(others):
        return Guess("any", doubts=("some numbers are texts: its type is any, so that these stay as they are",))
    are = f"is a text, '{str(others[0])[:40]}'" if len(others) == 1 else f"are texts, such as '{str(others[0])[:40]}'"
    return Guess("any", doubts=(f"{_many(len(others), len(texts))} {are}: its type is any, so that no record is rejected",))


def _many(count: int, total: int, noun: str = "value") -> str:
    """`3 of 1,000 values`."""
    return f"{count:,} of {total:,} {noun}{'' if total == 1 else 's'}"


def _fits(values: pl.Series, pattern: str) -> pl.Series:
    return values.str.contains(pattern).fill_null(False)


# -- numbers


def _of_numbers(name: str, texts: pl.Series) -> Guess:
    """Numbers of JSON or of a sheet, which have no leading zeros."""
    if _fits(texts, _INT).all():
        return _ints(name, texts)
    return _points(name, texts) if _fits(texts, _POINT).all() else Guess("float")


def _ints(name: str, values: pl.Series) -> Guess:
    if _is_amount(name) and not re.search(r"total|net$", name, re.IGNORECASE):
        return Guess("decimal", 2, money=True, note="whole amounts so far; two digits behind the point may come")
    fits = values.cast(pl.Int64, strict=False).is_not_null()
    if not fits.all():
        return Guess("string", doubts=(f"{_many(int((~fits).sum()), len(values))} are whole numbers beyond 64 bits: it is a string",))
    return Guess("int")


def _is_amount(name: str) -> bool:
    return bool(_MONEY.search(name)) and not _MEASURE.search(name)


def _digits(values: pl.Series, mark: str = ".") -> pl.Series:
    """The number of digits behind the point, or another mark."""
    return values.str.extract(rf"{re.escape(mark)}(\d*)$").fill_null("").str.len_chars()


def _most(counts: pl.Series) -> int:
    """The largest of some counts; 0 for none."""
    return max(counts.to_list(), default=0)


def _is_money(name: str, values: pl.Series) -> bool:
    """Whether numbers are amounts: by the name, or since nearly all have two digits behind the point."""
    digits = _digits(values)
    most = _most(digits)
    if digits.is_empty() or most > 6:
        return False
    if _is_amount(name):
        return True
    return not _MEASURE.search(name) and most == 2 and int((digits == 2).sum()) >= 0.9 * len(digits)


def _points(name: str, values: pl.Series) -> Guess:
    """Numbers with a point."""
    if not _is_money(name, values):
        return Guess("float")
    digits = _most(_digits(values))
    why = "" if _is_amount(name) else "nearly all values have two digits behind the point: taken as amounts, which are exact (decimal)"
    return Guess("decimal", max(digits, 2), money=True, doubts=(why,) if why else ())


# -- texts


def _of_texts(name: str, given: pl.Series, *, day_first: bool, mark: str) -> Guess:
    """Texts that may be numbers, dates or words."""
    stripped = given.str.strip_chars(" \t\u00a0")
    nothing = is_no_value(stripped)
    values = stripped.filter(~nothing & (stripped != ""))
    if values.is_empty():
        return Guess("string", doubts=("no record has a value: it is a string",))
    words = sorted(stripped.filter(nothing).unique().to_list())
    texts = _Texts(name, values, len(stripped), bool((stripped != given).any()), words, day_first, mark)
    found = next((guess for guess in _tries(texts) if guess is not None), None)
    return found or _string(texts)


def _tries(texts: _Texts) -> Iterator[Guess | None]:
    yield _leading_zeros(texts)
    yield _words(texts)
    yield _compact_dates(texts)
    yield from _numbers(texts)
    yield _dated(texts, "date", _DATES[:-1])
    yield _dated(texts, "date_time", _TIMES)


def _string(texts: _Texts) -> Guess:
    """A string, with a doubt where many values are numbers."""
    numbers = int(_fits(texts.values, _POINT).sum())
    if numbers * 2 < len(texts.values):
        return Guess("string")
    other = texts.misfits(_fits(texts.values, _POINT))
    shown = f", the others are not, such as '{str(other[0])[:40]}'" if len(other) else ""
    return Guess("string", doubts=(f"{_many(numbers, texts.total)} are numbers{shown}: it is a string",))


def _leading_zeros(texts: _Texts) -> Guess | None:
    """Whole numbers are codes where some begin with a zero or a plus sign."""
    zeros = _fits(texts.values, _LEADING)
    if not zeros.any() or not _fits(texts.values, r"^\+?[\d ]+$").all():
        return None
    first = texts.values.filter(zeros)[0]
    sign = "a zero" if first.startswith("0") else "a plus sign"
    return Guess("string", doubts=(f"{_many(int(zeros.sum()), texts.total)} begin with {sign}: it is a string, so that '{first}' stays whole",))


def _words(texts: _Texts) -> Guess | None:
    """Truth values."""
    lower = texts.values.str.to_lowercase()
    if not lower.is_in(["true", "false", "yes", "no", "on", "off"]).all() or lower.n_unique() > 2:
        return None
    return _with_nothing(texts, Guess("bool"), "to_bool()")


def _numbers(texts: _Texts) -> Iterator[Guess | None]:
    """Numbers as a source reads them, then as people write them; the other way round where more of the values fit people's way."""
    written = _written(texts)
    plain = int((~(_fits(texts.values, _POINT) | _fits(texts.values, _EXPONENT))).sum())
    if written.misfits < plain or (texts.mark == "," and _are_thousands(texts.values)):
        yield _localized(texts, written)
        yield _number(texts)
    else:
        yield _number(texts)
        yield _localized(texts, written)


def _are_thousands(values: pl.Series) -> bool:
    """Whether all points of some numbers may end thousands, and there are some."""
    points = values.filter(_fits(values, "[.]"))
    return bool(len(points)) and bool(_fits(points, r"^[+-]?[1-9]\d{0,2}\.\d{3}$").all())


def _number(texts: _Texts) -> Guess | None:
    ints = _fits(texts.values, _INT)
    if texts.tolerates(int((~ints).sum())) and (ints.all() or not _fits(texts.values, _POINT).all()):
        guess = _ints(texts.name, texts.values.filter(ints))
        if guess.type == "string":
            return guess
        return _with_nothing(texts, guess, "to_int()" if guess.type == "int" else f"to_decimal({guess.scale})", texts.misfits(ints), "whole number")
    points = _fits(texts.values, _POINT) | _fits(texts.values, _EXPONENT)
    if not texts.tolerates(int((~points).sum())):
        return None
    good = texts.values.filter(points)
    guess = Guess("float") if _fits(good, _EXPONENT).any() else _points(texts.name, good)
    mark = "." if _fits(good, "[.]").any() and not _are_thousands(good) else ""
    guess = replace(guess, mark=mark, doubts=(*guess.doubts, *_three_decimals(texts, good)))
    return _with_nothing(texts, guess, "to_float()" if guess.type == "float" else f"to_decimal({guess.scale})", texts.misfits(points), "number")


def _three_decimals(texts: _Texts, values: pl.Series) -> Iterator[str]:
    """The doubt about numbers that all have three decimals, in a file or a column where a point may end thousands."""
    if (texts.day_first or _is_amount(texts.name)) and texts.mark != "." and _are_thousands(values):
        yield f"all values with a point are like '{values.filter(_fits(values, '[.]'))[0]}': the point is taken as that of decimals, not as one of thousands"


def _with_nothing(texts: _Texts, guess: Guess, call: str, misfits: pl.Series | None = None, noun: str = "") -> Guess:
    """The guess with the doubts about values that do not fit; with a conversion where the source cannot read the texts."""
    doubts = [*guess.doubts, *(() if misfits is None else _rejected(misfits, texts.total, noun)), *_taken_as_null(texts.nothing)]
    if not texts.converts:
        return replace(guess, doubts=tuple(doubts))
    conversion = _conditional("{}.trim()", f"{{}}.trim().{call}", texts.nothing)
    return replace(guess, type="string", date_format=None, conversion=conversion, becomes=guess.type, doubts=tuple(doubts))


def _conditional(tested: str, value: str, nothing: Sequence[str] = ()) -> str:
    """A CXL expression that is null for an empty text and for texts that say that there is no value."""
    tests = " or ".join(f"{tested} == {_quoted(word)}" for word in ("", *nothing))
    return f"if {tests} then null else {value}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- numbers as people write them


class _Written(NamedTuple):
    """Values without currencies and parentheses, and which of them have a comma, or a point, as the point of decimals."""

    bare: pl.Series
    comma: pl.Series
    point: pl.Series

    @property
    def misfits(self) -> int:
        """How many values do not fit, in the way that fits more of them."""
        return min(int((~self.comma).sum()), int((~self.point).sum()))


def _written(texts: _Texts) -> _Written:
    bare = texts.values.str.replace(rf"^\s*{_SIGN}\s*", "").str.replace(rf"\s*{_SIGN}\s*$", "")
    bare = bare.str.replace(rf"^-\s*{_CURRENCY}\s*", "-").str.replace(r"^\((.*)\)$", "-${1}").str.replace(rf"^-{_CURRENCY}", "-")
    return _Written(bare, _fits(bare, f"^{_grouped(',', _SPACES)}$"), _fits(bare, f"^{_grouped('.', _SPACES)}$"))


def _grouped(mark: str, spaces: str) -> str:
    """The regular expression of a number with this mark before its decimals, and separators of thousands where thousands end."""
    separator, point = (".", ",") if mark == "," else (",", "[.]")
    return rf"[+-]?([0-9]+|[0-9]{{1,3}}([{separator}{spaces}][0-9]{{3}})+)({point}[0-9]+)?"


def _localized(texts: _Texts, written: _Written) -> Guess | None:
    """Numbers with a decimal comma, separators of thousands, a currency or parentheses."""
    bare, comma, point = written
    with_comma, with_point = int((~comma).sum()), int((~point).sum())
    if not texts.tolerates(written.misfits):
        return None
    if with_comma != with_point:
        is_comma = with_comma < with_point
    elif texts.mark:
        is_comma = texts.mark == ","
    else:
        is_comma = texts.day_first and not _fits(bare, r"\d\.\d{3}$").any()
    return _converted(texts, bare, comma if is_comma else point, mark="," if is_comma else ".", sure=with_comma != with_point)


def _converted(texts: _Texts, bare: pl.Series, fits: pl.Series, *, mark: str, sure: bool) -> Guess:
    """The guess for numbers with this mark before their decimals, which the column itself shows where it is sure."""
    good, originals = bare.filter(fits), texts.values.filter(fits)
    plain, percent = not _fits(good, rf"[.,{_SPACES}]").any(), bool(_fits(originals, "%").any())
    digits = _most(_digits(good, mark))
    money = digits <= 6 and (digits == 2 or _is_amount(texts.name) or bool(_fits(originals, _CURRENCY).any()))
    exact = money or (plain and percent)
    scale = max(digits, 2) if exact else None
    kind = "decimal" if exact else "float" if digits else "int"
    call = f"to_{kind}({'' if scale is None else scale})"
    if plain:
        number, replaced = _ungrouped(texts.mark, decimals=exact), _steps(originals, "", comma=texts.mark != ".")
    else:
        number, replaced = _grouped(mark, _spaces_in(originals)), _steps(originals, _ENDS_THOUSANDS[mark], comma=mark == ",")
    steps = "".join(f".replace({_quoted(old)}, {_quoted(new)})" for old, new in replaced)
    value = f"if {{}}.trim().matches({_quoted(_pattern(originals, number))}) then {{}}{steps}.trim().{call} else {{}}.trim().{call}"
    signs = _of_thousands(good, mark) if sure else _of_both(good.filter(_fits(good, "[.,]")), mark, decided=bool(texts.mark))
    doubts = (*_rejected(texts.misfits(fits), texts.total, "number"), *_taken_as_null(texts.nothing), *signs)
    note = f"written as '{originals[0]}'" + (", read as a number of percent" if percent else "")
    conversion = _conditional("{}.trim()", value, texts.nothing)
    return Guess("string", scale, conversion=conversion, becomes=kind, note=note, doubts=doubts, money=money, mark=mark if sure else "")


def _spaces_in(originals: pl.Series) -> str:
    """The blanks and apostrophes that occur in some texts."""
    used = set("".join(originals.unique().to_list()))
    return "".join(one for one in _SPACES if one in used)


def _of_both(unsure: pl.Series, mark: str, *, decided: bool) -> Iterator[str]:
    """The doubt about values that could be read both ways, where there are some: another column decides, or nothing does."""
    if len(unsure) and decided:
        yield f"'{unsure[0]}' is read with '{mark}' as the point of decimals, since other columns have it"
    elif len(unsure):
        yield f"'{unsure[0]}' could have a decimal point or separators of thousands: '{mark}' was taken as the point of decimals"


def _of_thousands(good: pl.Series, mark: str) -> Iterator[str]:
    """The doubt about values that are whole numbers or have three decimals, where another value decides which."""
    separator = _ENDS_THOUSANDS[mark]
    unsure = good.filter(_fits(good, rf"^[+-]?[1-9][0-9]{{0,2}}{re.escape(separator)}[0-9]{{3}}$"))
    sure = good.filter(_fits(good, re.escape(mark)))
    if len(unsure) and len(sure):
        yield f"'{unsure[0]}' is read as {str(unsure[0]).replace(separator, '')}, since '{sure[0]}' has '{mark}' before its decimals ({_many(len(unsure), len(good))} like it)"


def _ungrouped(mark: str, *, decimals: bool) -> str:
    """The regular expression of a number without separators of thousands. Where the mark is unknown, one or two digits behind either sign are decimals."""
    if not decimals:
        return "[+-]?[0-9]+"
    return rf"[+-]?[0-9]+([{mark}][0-9]+)?" if mark else "[+-]?[0-9]+([.,][0-9]{1,2})?"


def _pattern(originals: pl.Series, number: str) -> str:
    """The regular expression of a column's way to write numbers; a text in another way is no number, or a plain one."""
    used = set("".join(originals.unique().to_list()))
    signs = sorted(set(originals.str.extract_all(_SIGN).explode().drop_nulls().to_list()), key=lambda one: (-len(one), one))
    spaces = _spaces_in(originals)
    if signs:
        sign = f"({'|'.join(one.replace('.', '[.]').replace('$', '[$]') for one in signs)})?"
        blanks = f"[{spaces}]*" if spaces else ""
        number = f"[+-]?{blanks}{sign}{blanks}{number}{blanks}{sign}"
    return f"{number}|[(]{number}[)]" if "(" in used else number


def _rejected(misfits: pl.Series, total: int, noun: str) -> Iterator[str]:
    """The doubt about values that do not fit, where there are some."""
    if len(misfits) == 1:
        yield f"{_many(1, total)} is no {noun}, '{str(misfits[0])[:40]}': its record is rejected"
    elif len(misfits):
        yield f"{_many(len(misfits), total)} are no {noun}, such as '{str(misfits[0])[:40]}': their records are rejected"


def _taken_as_null(nothing: Sequence[str]) -> Iterator[str]:
    """The doubt about texts that say that there is no value, where there are some."""
    if nothing:
        yield f"{', '.join(map(repr, nothing))} {'is' if len(nothing) == 1 else 'are'} read as no value"


def _steps(originals: pl.Series, separator: str, *, comma: bool) -> Iterator[tuple[str, str]]:
    """The replacements that some text needs before CXL can read it as a number.

    Args:
        originals: The texts.
        separator: What ends thousands; empty for nothing.
        comma: Whether a comma may come before decimals.
    """
    found = originals.str.extract_all(_SIGN).explode().drop_nulls().unique().to_list()
    for sign in sorted(found, key=lambda one: (-len(one), one)):
        yield sign, ""
    used = set("".join(originals.unique().to_list()))
    for one in (*(one for one in _SPACES if one in used), *separator):
        yield one, ""
    if comma:
        yield ",", "."
    if "(" in used:
        yield "(", "-"
        yield ")", ""


# -- dates


def _compact_dates(texts: _Texts) -> Guess | None:
    """Eight digits that are a date, where the name says so."""
    if not _DAY_NAME.search(texts.name) or not _fits(texts.values, r"^(19|20)\d{6}$").all():
        return None
    return _dated(texts, "date", ("%Y%m%d",))


def _dated(texts: _Texts, kind: str, formats: Sequence[str]) -> Guess | None:
    """A date or a time in the format that fits the most values."""
    pattern = r"\d" if kind == "date" else r"\d.*\d\d:?\d\d|^\d{14}$"
    if not texts.tolerates(int((~_fits(texts.values, pattern)).sum())):
        return None
    form, twin = _best_form(texts, kind, formats)
    fits = _read(texts.values, kind, form).is_not_null()
    if not texts.tolerates(int((~fits).sum())):
        return None
    doubts = (*_of_order(texts, form, twin), *(_of_offsets(texts) if not form else ()))
    known = form in _BUILT_IN
    guess = Guess(kind, date_format=None if known else form, form="" if form == "%Y-%m-%d" else form, doubts=doubts, note="" if known else f"written as {form}")
    call = f"to_{'date' if kind == 'date' else 'datetime'}({_quoted(guess.form) if guess.form else ''})"
    return _with_nothing(texts, guess, call, texts.misfits(fits), "date" if kind == "date" else "time")


def _of_order(texts: _Texts, form: str, twin: str | None) -> Iterator[str]:
    """The doubt about dates whose days and months may change places."""
    if twin is not None:
        first = "the day" if form.startswith("%d") else "the month"
        yield f"no value tells days from months, such as '{texts.values[0]}': {first} is taken as the first; the other order is '{twin}' in date_formats"


def _of_offsets(texts: _Texts) -> Iterator[str]:
    """The doubt about times with several offsets."""
    offsets = texts.values.str.extract(r"T\d\d:?\d\d.*?(Z|[+-]\d\d:?\d\d)$").fill_null("").unique().sort().to_list()
    if len(offsets) > 1:
        yield f"the times have several offsets ({', '.join(one or 'none' for one in offsets[:4])}): they are read as UTC, so that days begin at midnight in UTC"


def _best_form(texts: _Texts, kind: str, formats: Sequence[str]) -> tuple[str, str | None]:
    """The format that fits the most values, and the one that fits as many with days and months in each other's place."""
    head = texts.values.head(2_000)
    counts = {form: int(_read(head, kind, form).is_not_null().sum()) for form in formats}
    best = [form for form in formats if counts[form] == max(counts.values())]
    form = _better(best, texts)
    swaps = {**_TWINS, **{two: one for one, two in _TWINS.items()}}
    return form, next((other for one, two in swaps.items() if form.startswith(one) and (other := form.replace(one, two)) in best), None)


def _better(forms: Sequence[str], texts: _Texts) -> str:
    """The format, where several fit as many values: with the day first where other signs in the file say so."""
    first = forms[0]
    twins = [form for form in forms if form.startswith("%d")]
    return twins[0] if first.startswith("%m") and twins and texts.day_first else first


def _read(values: pl.Series, kind: str, form: str) -> pl.Series:
    """The values as a source would read them in one format; null where it does not fit."""
    if form and not _fits(values, _looks_like(form)).any():
        return pl.Series("", [None] * len(values), dtype=pl.Date)
    if not form:
        return pl.Series("", coerce(values.to_arrow().cast("string"), kind).values)
    alike = values.set(~_fits(values, _looks_like(form)), None)
    return alike.str.to_date(form, strict=False) if kind == "date" else alike.str.to_datetime(form, strict=False)


_PARTS = {
    "%Y": r"\d{4}", "%m": r"\d{1,2}", "%d": r"\d{1,2}", "%y": r"\d{2}", "%b": r"[A-Za-z]{3}", "%B": r"[A-Za-z]{3,9}", "%H": r"\d{1,2}", "%M": r"\d{1,2}", "%S": r"\d{1,2}", "%I": r"\d{1,2}",
    "%p": r"(?i:am|pm)",
}  # fmt: skip


def _looks_like(form: str) -> str:
    """The regular expression of a format."""
    if form in ("%Y%m%d", "%Y%m%d%H%M%S"):
        return r"^\d{8}$" if form == "%Y%m%d" else r"^\d{14}$"
    return "^" + re.sub(r"%[A-Za-z]|[^%A-Za-z]", lambda found: _PARTS.get(found.group(), re.escape(found.group())), form) + "$"
