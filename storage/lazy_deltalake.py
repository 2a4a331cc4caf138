"""The deltalake library, imported on first use: `from storage.lazy_deltalake import deltalake`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import deltalake
    import deltalake.exceptions
else:
    from changelog.lazy_imports import Lazy

    deltalake = Lazy("deltalake")

__all__ = ["deltalake"]
