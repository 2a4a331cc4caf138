"""Checks of a corrections node: each correction fits the columns, and no two say something about one cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cxl import CxlErrors
from cxl.types.types import Kind, type_name
from operators.core.binding import Binding
from operators.core.operator import Operator
from operators.core.registry import node_type
from operators.core.row_type import CK, RowType
from operators.core.settings import NodeSpec, check_path
from operators.corrections.config import CorrectionsConfig
from operators.corrections.correction import Fixed
from operators.corrections.operator import Corrections
from operators.corrections.reading import read_entries

KEY_KINDS: Final = frozenset({Kind.STRING, Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.DATE, Kind.DATE_TIME})
"""Kinds of columns that may name a record."""


@node_type("corrections", CorrectionsConfig)
def bind(spec: NodeSpec, binding: Binding) -> Operator | None:
    """Check a corrections node and its files, and give its operator."""
    config: CorrectionsConfig = spec.config
    row = binding.input
    good = check_path(config.path, ("config", "path"), binding.problems.report_help, binding.settings)
    for at, name in enumerate(config.key):
        fault = _key_fault(config.key, at, row)
        if fault is not None:
            known = binding.problems.similar(name, list(row.data)) if name not in row.data else None
            binding.problems.report("E481", fault, ("config", "key", at), help=known)
            good = False
    if not good:
        return None
    entries = binding.settings.corrections.get(spec.name, ())
    fixed = _fixed(row, config.key, binding)
    made, problems = read_entries(entries, row.data, config.key, fixed, binding)
    if problems:
        binding.problems.cxl(CxlErrors(problems), ("config", "path"))
        return None
    return Corrections(spec, row, made, fixed)


def _key_fault(key: Sequence[str], at: int, row: RowType) -> str | None:
    name = key[at]
    if name not in row.data:
        return None if row.guessed else f"there is no column '{name}'"
    if name in key[:at]:
        return f"'{name}' stands twice in the key"
    type_ = row.data[name]
    return None if type_.kind in KEY_KINDS else f"column '{name}' has the type {type_name(type_)}: a record is named by columns of plain types"


def _fixed(row: RowType, key: Sequence[str], binding: Binding) -> Mapping[str, Fixed]:
    """The columns that no correction may change here."""
    elsewhere = "correct it in the file, or by errata correct"
    found = {name: Fixed(f"'{name}' is a correlation key, whose groups are made where the records are read", elsewhere) for name in row.riding(CK)}
    for source in binding.sources:
        mark = binding.watermarks.get(source)
        if mark is not None and mark != "none" and "_event_time" in row.hidden:
            found[mark.column] = Fixed(f"'{mark.column}' gives the event time of source '{source}', which is taken where the records are read", elsewhere)
    return found | {name: Fixed(f"'{name}' is part of the key", "retract the record, and let the source bring another") for name in key}
