"""CXL on Spark: typed programs as columns, through Spark Connect's API only.

`apply` runs a row program on a frame. `column` turns one expression into a column. `errors` says why rows failed.
"""

from typing import TYPE_CHECKING, Any

from cxl.spark.names import FAILED, INDEX, PASS

if TYPE_CHECKING:
    from cxl.spark.inputs import Context
    from cxl.spark.program import Applied, DistinctKey, apply, column, errors

__all__ = ["FAILED", "INDEX", "PASS", "Applied", "Context", "DistinctKey", "apply", "column", "errors"]


def __getattr__(name: str) -> Any:
    """Import PySpark with the first member that needs it: a program is checked without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{'inputs' if name == 'Context' else 'program'}"), name)
