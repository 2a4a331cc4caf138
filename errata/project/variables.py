"""Declared variables: found in a pipeline's document, changed there by channels, read as values.

Four registries: `static` (`$vars`), `pipeline`, `source` and `record`. An entry of `pipeline.vars` is the default of a static
variable, or a map with its `type` and `default`. Under the name of a scope it is a map of declarations. Transforms declare
variables in `declares`.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from cxl.types.types import ANY, BOOL, DATE, DATE_TIME, FLOAT, INT, MOST_DIGITS, STRING, Kind, Type, parse_type
from errata.core.diagnostics import Diagnostic, did_you_mean
from errata.project.findings import Findings
from errata.yaml import Document
from operators.core.settings import Variable
from storage.values.dates import constant_time
from storage.values.decimals import DecimalType, decimal_type, value_of
from storage.values.types import base_type

SCOPES = ("pipeline", "source", "record")
_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (float, "float"), (str, "string"))

Path = tuple[str | int, ...]
RESERVED: Mapping[str, frozenset[str]] = {
    "source": frozenset({"file", "row", "path", "count", "batch", "ingestion_timestamp", "name", "event_time"}),
    "pipeline": frozenset(
        {"start_time", "name", "execution_id", "batch_id", "total_count", "ok_count", "dlq_count", "filtered_count", "distinct_count"}
    ),
    "record": frozenset(),
    "vars": frozenset(),
}
"""Built-in members of each scope, which no declaration may have."""

_KEYS = ("default", "type")
_ALLOWED = (INT, FLOAT, STRING, BOOL, DATE, DATE_TIME)
_PYTHON: Mapping[Kind, tuple[type, ...]] = {
    Kind.INT: (int,), Kind.FLOAT: (int, float), Kind.STRING: (str,), Kind.BOOL: (bool,), Kind.DATE: (str, date), Kind.DATE_TIME: (str, datetime),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration: its type as written, its place, and the map and key that hold it."""

    scope: str
    name: str
    type: str
    path: Path
    holder: MutableMapping[str, Any]
    key: str

    def set_default(self, default: Any) -> None:
        """Replace the default. A scalar becomes a map with its type."""
        entry = self.holder[self.key]
        if isinstance(entry, dict):
            entry["default"] = default
        else:
            self.holder[self.key] = {"type": self.type, "default": default}


class Registry:
    """The declarations of one document. Changes go to the document's value."""

    def __init__(self, block: MutableMapping[str, Any], found: Iterator[Declared]) -> None:
        """`block` is the pipeline's `vars`, where new declarations go."""
        self._block = block
        written = list(found)
        self._found = {(one.scope, one.name): one for one in written}
        self._repeated = [one for one in written if self._found[one.scope, one.name] is not one]

    def __iter__(self) -> Iterator[Declared]:
        """Yield every declaration. Of several with one name the last counts, and comes first."""
        yield from self._found.values()
        yield from self._repeated

    def find(self, scope: str, name: str) -> Declared | None:
        """Return the declaration of a name."""
        return self._found.get((scope, name))

    def set_default(self, scope: str, name: str, type_: str, default: Any) -> None:
        """Override the default of a name, or declare it."""
        self.add(scope, name, type_)
        self._found[scope, name].set_default(default)

    def add(self, scope: str, name: str, type_: str) -> None:
        """Declare a name that is not declared."""
        if (scope, name) in self._found:
            return
        holder = self._block if scope == "static" else self._block.setdefault(scope, {})
        holder[name] = {"type": type_}
        self._found[scope, name] = Declared(scope, name, type_, ("pipeline", "vars"), holder, name)


def declared(document: Document) -> Registry:
    """Return the declarations of a document. Malformed ones are skipped: planning reports them."""
    value = document.value if isinstance(document.value, dict) else {}
    pipeline = value.get("pipeline")
    if not isinstance(pipeline, dict):
        pipeline = {}
    block = pipeline.setdefault("vars", {})
    if not isinstance(block, dict):
        block = {}
    nodes = value.get("nodes")
    return Registry(block, _all(block, nodes if isinstance(nodes, list) else []))


def _all(block: MutableMapping[str, Any], nodes: list[Any]) -> Iterator[Declared]:
    for name, entry in block.items():
        path: Path = ("pipeline", "vars", name)
        if is_scope_block(name, entry):
            yield from (Declared(name, inner, _type(one), (*path, inner), entry, inner) for inner, one in entry.items())
        else:
            yield Declared("static", name, _type(entry), path, block, name)
    for index, node in enumerate(nodes):
        yield from _declares(index, node)


def is_scope_block(name: str, entry: Any) -> bool:
    """Whether an entry of `vars` holds the declarations of a scope, and is no variable of that name."""
    return name in SCOPES and isinstance(entry, dict) and all(isinstance(inner, dict) for inner in entry.values())


def _declares(index: int, node: Any) -> Iterator[Declared]:
    """The `declares` list of a transform, as far as its scopes exist."""
    config = node.get("config") if isinstance(node, dict) else None
    entries = config.get("declares") if isinstance(config, dict) else None
    for position, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry.get("scope") in SCOPES:
            path: Path = ("nodes", index, "config", "declares", position)
            yield Declared(entry["scope"], entry["name"], _type(entry), path, {"entry": entry}, "entry")


def _type(entry: Any) -> str:
    """The declared type, or the type of a scalar."""
    if isinstance(entry, dict):
        return str(entry.get("type", "any"))
    return next((name for kind, name in _SCALARS if isinstance(entry, kind)), "any")


# Values ---------------------------------------------------------------------------------------------------------------


def declared_variables(document: Document, given: Mapping[str, Any], findings: Findings) -> dict[tuple[str, str], Variable]:
    """Return the variables of a pipeline by scope (`vars`, `pipeline`, `source`, `record`) and name.

    Args:
        given: Overrides by `scope.name` or bare name: texts of the command line or Python values. They are read with the declared type.
    """
    found: dict[tuple[str, str], Variable] = {}
    for entry in declared(document):
        findings.diagnostics += _unknown_keys(entry, document)
        variable = _variable(entry, document, findings)
        if variable is None:
            continue
        if (variable.scope, variable.name) in found:
            findings.diagnostics.append(document.error(entry.path, "E201", f"variable '{entry.name}' is declared twice in scope '{entry.scope}'", help="remove one declaration, or rename its variable"))
        found.setdefault((variable.scope, variable.name), variable)
    for name, value in given.items():
        _override(name, value, found, document, findings)
    return found


def _variable(entry: Declared, document: Document, findings: Findings) -> Variable | None:
    scope = "vars" if entry.scope == "static" else entry.scope
    if entry.name in RESERVED.get(scope, frozenset()):
        findings.diagnostics.append(document.error(entry.path, "E202", f"'{entry.name}' is a built-in member of ${scope}", key=True, help="choose another name"))
        return None
    try:
        type_ = parse_type(entry.type).base
    except ValueError:
        type_ = None
    if type_ is None or (type_ not in _ALLOWED and type_.kind is not Kind.DECIMAL):
        message = f"variable '{entry.name}' has type '{entry.type}'"
        findings.diagnostics.append(document.error((*entry.path, "type"), "E203", message, help="allowed: int, float, decimal(10,2), string, bool, date, date_time"))
        return Variable(scope, entry.name, ANY, None)  # so that its readers have nothing to report
    written = entry.holder[entry.key]
    default = written.get("default") if isinstance(written, dict) else written
    try:
        most = precision_of(entry.type)
        return Variable(scope, entry.name, type_.or_null, read_value(default, type_, most), precision=most)
    except ValueError:
        message = f"the default of '{entry.name}' is no {entry.type}"
        place = (*entry.path, "default") if isinstance(written, dict) else entry.path
        findings.diagnostics.append(document.error(place, "E204", message))
        return Variable(scope, entry.name, type_.or_null, None)


def _unknown_keys(entry: Declared, document: Document) -> Iterator[Diagnostic]:
    """The unknown keys of a declaration in `pipeline.vars`. Transforms report their own."""
    written = entry.holder[entry.key]
    if isinstance(written, dict) and entry.path[0] == "pipeline":
        for key in (key for key in written if key not in _KEYS):
            hint = did_you_mean(key, _KEYS) or f"known keys: {', '.join(_KEYS)}"
            yield document.error((*entry.path, key), "CFG-001", f"unknown key '{key}'", key=True, help=hint)


def precision_of(type_: str) -> int:
    """Return the digits in all that a declared type of decimals has; 38 for other types."""
    digits = decimal_type(base_type(type_))
    return MOST_DIGITS if digits is None else digits.precision


def read_value(value: Any, type_: Type, precision: int = MOST_DIGITS) -> Any:
    """Return a value of YAML or the command line as the Python value of a type. A number is a Decimal by its digits. Raises ValueError where it does not fit."""
    if value is None:
        return None
    if type_.kind is Kind.DECIMAL:
        found = None if isinstance(value, bool) else value_of(value, DecimalType(precision, type_.scale))
        if found is None:
            raise ValueError(f"{value!r} is no {type_}")
        return found
    if isinstance(value, str) and type_.kind is not Kind.STRING:
        return _read_text(value, type_.kind)
    expected = _PYTHON[type_.kind]
    if not isinstance(value, expected) or (isinstance(value, bool) and type_.kind is not Kind.BOOL):
        raise ValueError(f"{value!r} is no {type_}")
    return float(value) if isinstance(value, int | float) and type_.kind is Kind.FLOAT else value


def _read_given(value: Any, type_: Type, precision: int) -> Any:
    """An override as a value of the type. Dates come as dates or texts, and a whole float may be an int. Raises ValueError."""
    if isinstance(value, date) and type_.kind in (Kind.DATE, Kind.DATE_TIME):
        return _read_text(value.isoformat(), type_.kind)
    if isinstance(value, float) and type_.kind is Kind.INT and value.is_integer():
        return int(value)
    return read_value(value, type_, precision)


def _read_text(text: str, kind: Kind) -> Any:
    if kind is Kind.BOOL:
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text == "true"
    readers: Mapping[Kind, Callable[[str], Any]] = {Kind.INT: int, Kind.FLOAT: float, Kind.DATE: date.fromisoformat, Kind.DATE_TIME: constant_time}
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
        found[key] = replace(variable, default=_read_given(value, variable.type.base, variable.precision))
    except ValueError:
        message = f"--var {name}={value}: the value is no {_declared(variable)}"
        findings.diagnostics.append(document.error(("pipeline",), "E204", message))


def _declared(variable: Variable) -> str:
    """The type of a variable in messages; a Decimal's with the digits that its declaration allows."""
    type_ = variable.type.base
    return f"decimal({variable.precision},{type_.scale})" if type_.kind is Kind.DECIMAL else str(type_)
