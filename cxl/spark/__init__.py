"""CXL on Spark: typed programs as columns, through the Spark Connect surface only (DESIGN sections 4 and 7).

`apply` runs a row program on a frame, `column` gives a single expression, `errors` says what is wrong with rows that failed; `evaluate_cases` asks many
small programs at once.
"""

from typing import TYPE_CHECKING, Any

from cxl.spark.names import FAILED, INDEX, PASS

if TYPE_CHECKING:
    from cxl.spark.cases import evaluate_cases
    from cxl.spark.context import Context
    from cxl.spark.program import Applied, DistinctKey, apply, column, errors

_HOMES = {"evaluate_cases": "cases", "Context": "context"}

__all__ = ["FAILED", "INDEX", "PASS", "Applied", "Context", "DistinctKey", "apply", "column", "errors", "evaluate_cases"]


def __getattr__(name: str) -> Any:
    """Members that need PySpark are imported when they are first used: a program is checked without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'program')}"), name)
