"""Which of several expressions failed on a row, and what the interpreter says of it: for operators that evaluate more than one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from changelog.lazy_imports import F
from cxl import spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl import Program

WRONG = "__wrong"
"""The number of the expression that failed first, null where none did."""


def first_case(cases: Sequence[tuple[Column, Column]], otherwise: Column) -> Column:
    """One CASE of any number of branches; `otherwise` alone where there are none."""
    if not cases:
        return otherwise
    chain = F.when(*cases[0])
    for case in cases[1:]:
        chain = chain.when(*case)
    return chain.otherwise(otherwise)


def explained(bad: DataFrame, programs: Mapping[int, Program], context: spark.Context) -> tuple[DataFrame, Column, Column]:
    """Rows that failed, with category and detail of the failure of the program whose number stands in `WRONG`."""
    category, detail = F.lit(None).cast("string"), F.lit(None).cast("string")
    for number, program in programs.items():
        bad = spark.errors(bad, program, context, f"__why{number}")
        why = F.col(f"__why{number}")
        category = F.when(F.col(WRONG) == number, why.getField("category")).otherwise(category)
        detail = F.when(F.col(WRONG) == number, why.getField("message")).otherwise(detail)
    return bad, category, detail
