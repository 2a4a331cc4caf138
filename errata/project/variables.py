"""Declared variables with their types and defaults as values (user guide, "Scoped Variables"; SPEC-DECISIONS, State 31)."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from cxl.types.types import ANY, BOOL, DATE, DATE_TIME, FLOAT, INT, STRING, Kind, Type, parse_type
from errata.core.diagnostics import Diagnostic, did_you_mean
from errata.project.declared_variables import SCOPES, Declared, declared
from errata.project.findings import Findings
from errata.yaml import Document
from operators.core.settings import Variable

RESERVED: Mapping[str, frozenset[str]] = {
    "source": frozenset({"file", "row", "path", "count", "batch", "ingestion_timestamp", "name", "event_time"}),
    "pipeline": frozenset(
        {"start_time", "name", "execution_id", "batch_id", "total_count", "ok_count", "dlq_count", "filtered_count", "distinct_count"}
    ),
    "record": frozenset(),
    "vars": frozenset(),
}
"""Built-in members of each scope, which no declaration may take (user guide, "Declaring variables")."""

_KEYS = ("default", "type")
_ALLOWED = (INT, FLOAT, STRING, BOOL, DATE, DATE_TIME)
_PYTHON: Mapping[Kind, tuple[type, ...]] = {
    Kind.INT: (int,), Kind.FLOAT: (int, float), Kind.STRING: (str,), Kind.BOOL: (bool,), Kind.DATE: (str, date), Kind.DATE_TIME: (str, datetime),
}  # fmt: skip


def declared_variables(document: Document, given: Mapping[str, Any], findings: Findings) -> dict[tuple[str, str], Variable]:
    """The variables of a pipeline by scope (`vars`, `pipeline`, `source`, `record`) and name.

    `given` are texts from the command line or Python values by `scope.name` or bare name; they are read with the declared type.
    """
    found: dict[tuple[str, str], Variable] = {}
    for entry in declared(document):
        findings.diagnostics += _unknown_keys(entry, document)
        variable = _variable(entry, document, findings)
        if variable is None:
            continue
        if (variable.scope, variable.name) in found:
            findings.diagnostics.append(document.error(entry.path, "E201", f"variable '{entry.name}' is declared twice in scope '{entry.scope}'"))
        found.setdefault((variable.scope, variable.name), variable)
    for name, value in given.items():
        _override(name, value, found, document, findings)
    return found


def _variable(entry: Declared, document: Document, findings: Findings) -> Variable | None:
    scope = "vars" if entry.scope == "static" else entry.scope
    if entry.name in RESERVED.get(scope, frozenset()):
        findings.diagnostics.append(document.error(entry.path, "E202", f"'{entry.name}' is a built-in member of ${scope}", key=True))
        return None
    try:
        type_ = parse_type(entry.type).base
    except ValueError:
        type_ = None
    if type_ not in _ALLOWED or type_ is None:
        message = f"variable '{entry.name}' has type '{entry.type}'"
        findings.diagnostics.append(document.error((*entry.path, "type"), "E203", message, help="allowed: int, float, string, bool, date, date_time"))
        return Variable(scope, entry.name, ANY, None)  # so that its readers have nothing to report
    held = entry.holder[entry.key]
    default = held.get("default") if isinstance(held, dict) else held
    try:
        return Variable(scope, entry.name, type_.or_null, read_value(default, type_))
    except ValueError:
        message = f"the default of '{entry.name}' is no {entry.type}"
        place = (*entry.path, "default") if isinstance(held, dict) else entry.path
        findings.diagnostics.append(document.error(place, "E204", message))
        return Variable(scope, entry.name, type_.or_null, None)


def _unknown_keys(entry: Declared, document: Document) -> Iterator[Diagnostic]:
    """The keys that a declaration does not have; those of a transform's are read with its configuration."""
    held = entry.holder[entry.key]
    if isinstance(held, dict) and entry.path[0] == "pipeline":
        for key in (key for key in held if key not in _KEYS):
            hint = did_you_mean(key, _KEYS) or f"known keys: {', '.join(_KEYS)}"
            yield document.error((*entry.path, key), "CFG-001", f"unknown key '{key}'", key=True, help=hint)


def read_value(value: Any, type_: Type) -> Any:
    """A YAML or command-line value as the Python value of a type. Raises ValueError where it does not fit."""
    if value is None:
        return None
    if isinstance(value, str) and type_.kind is not Kind.STRING:
        return _read_text(value, type_.kind)
    expected = _PYTHON[type_.kind]
    if not isinstance(value, expected) or (isinstance(value, bool) and type_.kind is not Kind.BOOL):
        raise ValueError(f"{value!r} is no {type_}")
    return float(value) if isinstance(value, int | float) and type_.kind is Kind.FLOAT else value


def _read_given(value: Any, type_: Type) -> Any:
    """A text from the command line or a value from Python as a value of the type: dates as their texts, a whole float as an int. Raises ValueError."""
    if isinstance(value, date) and type_.kind in (Kind.DATE, Kind.DATE_TIME):
        return _read_text(value.isoformat(), type_.kind)
    if isinstance(value, float) and type_.kind is Kind.INT and value.is_integer():
        return int(value)
    return read_value(value, type_)


def _read_text(text: str, kind: Kind) -> Any:
    if kind is Kind.BOOL:
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text == "true"
    readers: Mapping[Kind, Callable[[str], Any]] = {Kind.INT: int, Kind.FLOAT: float, Kind.DATE: date.fromisoformat, Kind.DATE_TIME: datetime.fromisoformat}
    return readers[kind](text)


def _override(name: str, value: Any, found: dict[tuple[str, str], Variable], document: Document, findings: Findings) -> None:
    scope, _, rest = name.partition(".")
    key = (scope, rest) if rest else ("vars", name)
    if key not in found and rest and scope == "static":
        key = ("vars", rest)
    variable = found.get(key)
    if variable is None:
        known = [f"{scope}.{name}" for scope, name in found]
        hint = did_you_mean(name, known) or f"declared: {', '.join(known) or 'none'}; scopes: vars, {', '.join(SCOPES)}"
        findings.diagnostics.append(document.error(("pipeline",), "E205", f"--var {name}: there is no such variable", help=hint))
        return
    try:
        found[key] = Variable(variable.scope, variable.name, variable.type, _read_given(value, variable.type.base), variable.source)
    except ValueError:
        message = f"--var {name}={value}: the value is no {variable.type.base}"
        findings.diagnostics.append(document.error(("pipeline",), "E204", message))
