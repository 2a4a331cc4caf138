"""String methods. Characters are code points, white space is Unicode White_Space."""

from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import NOT_CONSTANT, Outcome, Partly, Site
from cxl.types.types import ARRAY, BOOL, DECIMAL, INT, STRING
from cxl.values import text
from cxl.values.failure import MAX_TEXT, measured

WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters with the Unicode property White_Space."""
_LONG = 1 << 30
_SECTION = "String Methods"


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> Builtin:
    settings = {"receiver": STRING, "returns": STRING, "category": "String", "section": _SECTION, **more}
    return register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, **settings))


# Case and white space ---------------------------------------------------------------------------------------------------
_entry("upper", "All characters in upper case.", ('"straße".upper()', "STRASSE"), str.upper, lambda c: c.f.upper(c.receiver))
_entry("lower", "All characters in lower case.", ('"Hello".lower()', "hello"), str.lower, lambda c: c.f.lower(c.receiver))
_entry("trim", "The text without white space at both ends.", ('"  a b ".trim()', "a b"),
       lambda s: s.strip(WHITE_SPACE), lambda c: c.f.trim(c.receiver, c.f.lit(WHITE_SPACE)))  # fmt: skip
_entry("trim_start", "The text without white space at the start.", ('"  a ".trim_start()', "a "),
       lambda s: s.lstrip(WHITE_SPACE), lambda c: c.f.ltrim(c.receiver, c.f.lit(WHITE_SPACE)))  # fmt: skip
_entry("trim_end", "The text without white space at the end.", ('" a  ".trim_end()', " a"),
       lambda s: s.rstrip(WHITE_SPACE), lambda c: c.f.rtrim(c.receiver, c.f.lit(WHITE_SPACE)))  # fmt: skip

# Tests ------------------------------------------------------------------------------------------------------------------
_entry("starts_with", "Whether the text starts with the prefix.", ('"hello".starts_with("he")', "true"),
       str.startswith, lambda c: c.f.startswith(c.receiver, c.args[0]), params=(Param("prefix", STRING),), returns=BOOL)  # fmt: skip
_entry("ends_with", "Whether the text ends with the suffix.", ('"report.csv".ends_with(".csv")', "true"),
       str.endswith, lambda c: c.f.endswith(c.receiver, c.args[0]), params=(Param("suffix", STRING),), returns=BOOL)  # fmt: skip
_entry("contains", "Whether the text contains the other.", ('"hello world".contains("lo wo")', "true"),
       str.__contains__, lambda c: c.f.contains(c.receiver, c.args[0]), params=(Param("part", STRING),), returns=BOOL)  # fmt: skip
_entry("length", "The number of characters.", ('"café".length()', "4"), len, lambda c: c.f.length(c.receiver).cast("bigint"), returns=INT)


# Parts ------------------------------------------------------------------------------------------------------------------
def _replace(site: Site) -> Any:
    if site.constants[0] == "":
        return None
    value = site.f.replace(site.receiver, *site.args)
    return value if site.constants[0] is not NOT_CONSTANT else Partly(value, site.f.coalesce(site.args[0] != "", site.f.lit(True)))


def _substring(value: str, start: int, length: int = -1) -> str:
    begin = max(start, 0)
    return value[begin:] if length < 0 else value[begin : begin + length]


def _substring_column(site: Site) -> Any:
    begin = site.int_arg(0, 0, _LONG) + site.f.lit(1)
    if len(site.args) == 1:
        return _known_arguments(site, site.f.substring(site.receiver, begin, site.f.lit(_LONG)))
    count = site.int_arg(1, -1, _LONG)
    if site.constants[1] is NOT_CONSTANT:
        count = site.f.when(count < 0, site.f.lit(_LONG)).otherwise(count)
    elif site.constants[1] < 0:
        count = site.f.lit(_LONG)
    return _known_arguments(site, site.f.substring(site.receiver, begin, count))


def _known_arguments(site: Site, value: Any) -> Any:
    """The value, or null where an argument is null. Sail's `substring` takes a null for its default."""
    for column, constant in zip(site.args, site.constants, strict=True):
        value = site.f.when(column.isNotNull(), value) if constant is NOT_CONSTANT else value
    return value


def _unless_negative(site: Site, index: int, value: Any) -> Any:
    """The value, or null where the Int argument is negative."""
    if site.constants[index] is NOT_CONSTANT:
        return site.f.when(site.args[index] >= 0, value)
    return value if site.constants[index] >= 0 else site.f.lit(None).cast("string")


def _left(site: Site) -> Any:
    return _unless_negative(site, 0, site.f.substring(site.receiver, site.f.lit(1), site.int_arg(0, 0, _LONG)))


def _right(site: Site) -> Any:
    """Sail's own `right` fails the job below a regular expression in a branch that no row of a batch takes."""
    count = site.int_arg(0, 0, _LONG)
    return _unless_negative(site, 0, site.f.substring(site.receiver, -count, count))


def _put_together(delimiter: str, parts: list[str]) -> str:
    """The parts with the delimiter between them. Raises CxlFailure."""
    measured(sum(map(len, parts)) + len(delimiter) * (len(parts) - 1))
    return delimiter.join(parts)


def _replaced(value: str, find: str, replacement: str) -> str:
    """`str.replace`. Raises CxlFailure."""
    if len(replacement) > len(find):
        measured(len(value) + value.count(find) * (len(replacement) - len(find)))
    return value.replace(find, replacement)


_entry("replace", "Replaces every occurrence of one text by another.", ('"foo-bar-baz".replace("-", "_")', "foo_bar_baz"),
       _replaced, _replace, params=(Param("find", STRING), Param("replacement", STRING)))  # fmt: skip
_entry("substring", "At most `length` characters from `start` (from 0); empty past the end.", ('"hello world".substring(6, 3)', "wor"),
       _substring, _substring_column, params=(Param("start", INT), Param("length", INT, optional=True)))  # fmt: skip
_entry("left", "The first `n` characters; null when `n` is negative.", ('"hello world".left(5)', "hello"),
       lambda s, n: s[:n] if n >= 0 else None, _left, params=(Param("n", INT),))  # fmt: skip
_entry("right", "The last `n` characters; null when `n` is negative.", ('"hello world".right(5)', "world"),
       lambda s, n: (s[-n:] if n else "") if n >= 0 else None, _right, params=(Param("n", INT),))  # fmt: skip
_entry("reverse", "The characters in reverse order.", ('"hello".reverse()', "olleh"), lambda s: s[::-1], lambda c: c.f.reverse(c.receiver))


# Longer texts -----------------------------------------------------------------------------------------------------------
def _padding(value: str, width: int, char: str) -> str | None:
    if width < 0:
        return None
    measured(width)
    return (char[:1] or " ") * max(0, width - len(value))


def _pad_left(value: str, width: int, char: str = " ") -> str | None:
    padding = _padding(value, width, char)
    return None if padding is None else padding + value


def _pad_right(value: str, width: int, char: str = " ") -> str | None:
    padding = _padding(value, width, char)
    return None if padding is None else value + padding


def _pad_char(site: Site) -> Any:
    given = site.constant(1, " ")
    if given is not NOT_CONSTANT:
        return site.f.lit(given[:1] or " ")
    first = site.f.substring(site.args[1], site.f.lit(1), site.f.lit(1))
    return site.f.when(first == "", site.f.lit(" ")).otherwise(first)


def _pad_column(pad: str) -> Any:
    def build(site: Site) -> Any:
        width = site.int_arg(0, 0, MAX_TEXT)
        char = _pad_char(site)
        padded = site.f.when(site.f.length(site.receiver) < width, getattr(site.f, pad)(site.receiver, width, char)).otherwise(site.receiver)
        value = _unless_negative(site, 0, site.f.when(char.isNotNull(), padded) if site.constant(1, " ") is NOT_CONSTANT else padded)
        if site.constants[0] is not NOT_CONSTANT and site.constants[0] <= MAX_TEXT:
            return value
        too_wide = site.f.coalesce(site.args[0] > MAX_TEXT, site.f.lit(False))
        return Outcome(site.f.when(~too_wide, value), site.receiver.isNotNull() & char.isNotNull() & too_wide)

    return build


def _repeat(value: str, count: int) -> str | None:
    if count < 0:
        return None
    measured(len(value) * count)
    return value * count


def _repeat_column(site: Site) -> Any:
    size = site.f.length(site.receiver).cast("double") * site.args[0].cast("double")
    value = _unless_negative(site, 0, site.f.when(size <= MAX_TEXT, site.f.repeat(site.receiver, site.int_arg(0, 0, MAX_TEXT))))
    return Outcome(value, site.f.coalesce(size > MAX_TEXT, site.f.lit(False)))


_WIDTH = (Param("width", INT), Param("char", STRING, optional=True))
_entry("pad_left", "Pads at the left to a width, with blanks or the first character of `char`; null when the width is negative.",
       ('"42".pad_left(5, "0")', "00042"), _pad_left, _pad_column("lpad"), params=_WIDTH)  # fmt: skip
_entry("pad_right", "Pads at the right to a width, with blanks or the first character of `char`; null when the width is negative.",
       ('"hi".pad_right(6, ".")', "hi...."), _pad_right, _pad_column("rpad"), params=_WIDTH)  # fmt: skip
_entry("repeat", "The text `n` times; null when `n` is negative.", ('"ab".repeat(3)', "ababab"),
       _repeat, _repeat_column, params=(Param("n", INT),))  # fmt: skip
_entry("concat", "Joins the text and the arguments; a null argument adds nothing, any other value its `to_string`.",
       ('"a".concat("b", null, "d")', "abd"),
       lambda s, *parts: _put_together("", [s, *map(text.display, parts)]),
       lambda c: c.f.concat(c.receiver, *(c.f.coalesce(arg.cast("string"), c.f.lit("")) for arg in c.args)),
       params=(Param("parts", (STRING, DECIMAL), variadic=True, shown=True),), null_arguments=True)  # fmt: skip


# Arrays of texts --------------------------------------------------------------------------------------------------------
def _split(value: str, delimiter: str) -> list[str]:
    return value.split(delimiter) if delimiter else ["", *value, ""]


_entry("split", "The parts between the delimiters.", ('"a,b,,c".split(",")', '["a","b","","c"]'),
       _split, None, params=(Param("delimiter", STRING),), returns=ARRAY)  # fmt: skip
_entry("join", "The elements as one text with the delimiter between them; a null element is empty.",
       ('"a,b,c".split(",").join(" - ")', "a - b - c"), lambda array, delimiter: _put_together(delimiter, [*map(text.display, array)]), None,
       receiver=ARRAY, params=(Param("delimiter", STRING),))  # fmt: skip

