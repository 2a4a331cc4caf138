"""PySpark's `functions` (as `F`) and `Window`, and pyarrow (as `pa`), imported when they are first used: neither planning a pipeline nor a run without change needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Window
    from pyspark.sql import functions as F
else:
    from importlib import import_module

    class _Later:
        """Stands for a module, or a member of it, until an attribute is asked for, and keeps that: a run asks for some a thousand times."""

        def __init__(self, module: str, member: str | None = None) -> None:
            self._module, self._member = module, member

        def __getattr__(self, attribute: str) -> Any:
            module = import_module(self._module)
            found = getattr(module if self._member is None else getattr(module, self._member), attribute)
            setattr(self, attribute, found)
            return found

        def __reduce__(self) -> tuple[type[_Later], tuple[str, str | None]]:
            return _Later, (self._module, self._member)

    F = _Later("pyspark.sql", "functions")
    Window = _Later("pyspark.sql", "Window")
    pa = _Later("pyarrow")

__all__ = ["F", "Window", "pa"]
