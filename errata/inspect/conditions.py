"""CXL conditions over the data of rows that were read for a command (`errata log --where`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from cxl import CxlErrors, CxlFailure, compile_program
from cxl.runtime.context import Context
from cxl.runtime.interpret import Runner
from cxl.types.types import Kind, Schema
from errata.core.diagnostics import PipelineErrors, from_cxl


def data_condition(text: str, schema: Schema) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row's `data` meets a CXL predicate; a row that fails does not. Raises PipelineErrors for a text that does not compile."""
    try:
        program = compile_program(text, schema, mode="predicate")
    except CxlErrors as errors:
        raise PipelineErrors(from_cxl(one) for one in errors.diagnostics) from errors
    readers: dict[Kind, Callable[[str], Any]] = {Kind.DATE_TIME: datetime.fromisoformat, Kind.DATE: date.fromisoformat}

    runner = Runner(program)

    def typed(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: readers[type_.kind](value) if type_.kind in readers and isinstance(value := row.get(name), str) else row.get(name) for name, type_ in schema.items()}

    def condition(row: Mapping[str, Any]) -> bool:
        try:
            return runner.evaluate(typed(row["data"]), Context()) is True
        except CxlFailure:
            return False

    return condition
