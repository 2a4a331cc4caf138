"""pyarrow, imported on first use. A program is checked without it.

    from cxl.lazy_imports import pa, pc
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    from importlib import import_module

    class _Later:
        """A module that is imported when an attribute is first read. Attributes are cached."""

        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, attribute: str) -> Any:
            found = getattr(import_module(self._module), attribute)
            setattr(self, attribute, found)
            return found

    pa = _Later("pyarrow")
    pc = _Later("pyarrow.compute")

__all__ = ["pa", "pc"]
