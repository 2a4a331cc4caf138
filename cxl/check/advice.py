"""Help for values of the wrong type: the conversion that fits."""

from collections.abc import Mapping

from cxl.types.types import Kind, Type

_INTO: Mapping[Kind, str] = {
    Kind.INT: ".to_int()", Kind.FLOAT: ".to_float()", Kind.DECIMAL: ".to_decimal(scale)", Kind.BOOL: ".to_bool()", Kind.DATE: ".to_date()",
    Kind.DATE_TIME: ".to_datetime()", Kind.STRING: ".to_string()",
}  # fmt: skip
_CONVERTS: Mapping[Kind, frozenset[Kind]] = {
    Kind.STRING: frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.DATE, Kind.DATE_TIME}),
    Kind.INT: frozenset({Kind.FLOAT, Kind.BOOL, Kind.STRING}), Kind.FLOAT: frozenset({Kind.INT, Kind.STRING}),
    Kind.BOOL: frozenset({Kind.INT, Kind.STRING}), Kind.DATE: frozenset({Kind.DATE_TIME, Kind.STRING}),
    Kind.DATE_TIME: frozenset({Kind.DATE, Kind.STRING}), Kind.NUMERIC: frozenset({Kind.STRING}), Kind.DECIMAL: frozenset({Kind.STRING, Kind.INT, Kind.FLOAT}),
}  # fmt: skip
"""The kinds that values of a kind convert to."""
_DATES = (Kind.DATE, Kind.DATE_TIME)


def for_operands(op: str, left: Type, right: Type) -> str:
    """Return the help for operands whose types an operator does not take together."""
    kinds = (left.kind, right.kind)
    if op in ("and", "or"):
        return "both operands must be Bool"
    if op == "-" and left.kind in _DATES and right.kind in _DATES:
        return "the days between two dates: later.diff_days(earlier)"
    if op in ("+", "-") and left.kind in _DATES and right.kind is Kind.INT:
        return "a date is moved by .add_days(n), .add_months(n) or .add_years(n)"
    if left.base == right.base:
        return f"'{op}' is not defined for {left.base}"
    targets = [to for of, to in (kinds, kinds[::-1]) if to in _CONVERTS.get(of, ())]
    ways = [way for kind, way in _INTO.items() if kind in targets and (kind is not Kind.STRING or op not in "-*/%")]
    return f"convert one operand: {' or '.join(ways)}" if ways else ""


def for_value(given: Type, wanted: tuple[Type, ...]) -> str:
    """Return the help for a receiver or an argument of the wrong type."""
    kinds = {one.kind for one in wanted}
    kinds |= {Kind.INT, Kind.FLOAT} if Kind.NUMERIC in kinds else set()
    ways = [way for kind, way in _INTO.items() if kind in kinds & _CONVERTS.get(given.kind, frozenset())]
    return f"convert it: {' or '.join(ways)}" if ways else ""


def counted(arguments: int) -> str:
    """Return `1 argument`, `2 arguments`."""
    return f"{arguments} argument{'' if arguments == 1 else 's'}"
