"""Lazy proxies of heavy libraries, each imported on first use. A check of a pipeline and a run without changes need none of them.

    from changelog.lazy_imports import F, Window, np, pa, pc, pl

`F` and `Window` are PySpark's, `np` is numpy, `pl` polars, `pa` pyarrow, `pc` pyarrow.compute, `pacsv` pyarrow.csv, `pajson` pyarrow.json, `pq` pyarrow.parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv
    import pyarrow.json as pajson
    import pyarrow.parquet as pq
    from pyspark.sql import Window
    from pyspark.sql import functions as F
else:
    from importlib import import_module

    class Lazy:
        """A module, or a member of one, that is imported when an attribute is first read. Attributes are cached."""

        def __init__(self, module: str, member: str | None = None) -> None:
            self._module, self._member = module, member

        def __getattr__(self, attribute: str) -> Any:
            module = import_module(self._module)
            found = getattr(module if self._member is None else getattr(module, self._member), attribute)
            setattr(self, attribute, found)
            return found

        def __reduce__(self) -> tuple[type[Lazy], tuple[str, str | None]]:
            return Lazy, (self._module, self._member)

    F = Lazy("pyspark.sql", "functions")
    Window = Lazy("pyspark.sql", "Window")
    np = Lazy("numpy")
    pa = Lazy("pyarrow")
    pacsv = Lazy("pyarrow.csv")
    pajson = Lazy("pyarrow.json")
    pc = Lazy("pyarrow.compute")
    pl = Lazy("polars")
    pq = Lazy("pyarrow.parquet")

__all__ = ["F", "Window", "np", "pa", "pacsv", "pajson", "pc", "pl", "pq"]
