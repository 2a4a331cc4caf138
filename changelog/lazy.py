"""PySpark's `functions` (as `F`) and `Window`, imported when they are first used: planning a pipeline takes no engine, so it must not wait for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Window
    from pyspark.sql import functions as F
else:
    from importlib import import_module

    class _Later:
        """Stands for a member of a module until an attribute of it is asked for, and keeps that: a run asks for some a thousand times."""

        def __init__(self, module: str, name: str) -> None:
            self._module, self._name = module, name

        def __getattr__(self, attribute: str) -> Any:
            found = getattr(getattr(import_module(self._module), self._name), attribute)
            setattr(self, attribute, found)
            return found

        def __reduce__(self) -> tuple[type[_Later], tuple[str, str]]:
            return _Later, (self._module, self._name)

    F = _Later("pyspark.sql", "functions")
    Window = _Later("pyspark.sql", "Window")

__all__ = ["F", "Window"]
