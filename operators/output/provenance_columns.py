"""Columns that say when and why each row of an output last changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cxl.types.types import DATE_TIME, INT, STRING, Type
from operators.core.binding import Binding
from operators.output.config import OutputConfig

EPOCH, CHANGED_AT, CAUSE, REASON = "provenance.epoch", "provenance.changed_at", "provenance.cause", "provenance.reason"
COLUMNS: Final[Mapping[str, Type]] = {EPOCH: INT, CHANGED_AT: DATE_TIME, CAUSE: STRING, REASON: STRING}
"""The epoch in which a row got its values, the begin of that run, the cause, and the reason of a manual correction (null: none)."""
FORMATS: Final = ("csv", "json", "xml", "parquet", "arrow", "xlsx", "avro")
"""Formats of files that have a place for the columns."""


def may_have_provenance(config: OutputConfig, names: Sequence[str], binding: Binding) -> bool:
    """Whether an output has a place for the columns, where they are wanted (E475). `names`: the columns that it writes."""
    if not config.with_provenance:
        return True
    if config.history is not None:
        binding.problems.report("E475", "a history has times of its own", ("config", "with_provenance"), help="leave with_provenance out, or write a second output with it")
        return False
    if config.type not in FORMATS:
        binding.problems.report("E475", f"a {config.type} output has no place for provenance", ("config", "type"), help=f"formats that have: {', '.join(FORMATS)}")
        return False
    for name in names:
        if name in COLUMNS:
            binding.problems.report("E475", f"'{name}' is a column of the node and of its provenance", ("config", "with_provenance"), help="exclude it, or map it to another name")
            return False
    return True
