"""The obstore library, imported on first use: `from storage.lazy_obstore import obstore`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import obstore
    import obstore.exceptions
    import obstore.store
else:
    from changelog.lazy_imports import Lazy

    obstore = Lazy("obstore")

__all__ = ["obstore"]
