"""CXL: the typed expression language of Errata.

`compile_program` turns text into a `Program`. `cxl.runtime.interpret` runs it on records, `cxl.spark` turns it into Spark columns.
A program that does not compile raises `CxlErrors`, a record that cannot be evaluated `CxlFailure`.
"""

from cxl.compiler import compile_for, compile_program
from cxl.diagnostics.diagnostics import CxlErrors, Diagnostic
from cxl.diagnostics.source import Origin, Position, Span, TextOrigin
from cxl.typed.program import Program, conjuncts
from cxl.typed.target import SystemTypes, Target
from cxl.types.types import Schema, Type, parse_type
from cxl.values.failure import CxlFailure

__all__ = [
    "CxlErrors", "CxlFailure", "Diagnostic", "Origin", "Position", "Program", "Schema", "Span", "SystemTypes", "Target",
    "TextOrigin", "Type", "compile_for", "compile_program", "conjuncts", "parse_type",
]  # fmt: skip
