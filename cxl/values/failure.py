"""The failure of one record while a program runs."""

from cxl.diagnostics.source import Span

DEFAULT_CATEGORY = "type_coercion_failure"
"""The category of a failure that has no other."""
MAX_TEXT = 10_485_760
"""The longest text, in characters, that a program may make."""


class CxlFailure(Exception):
    """A record that cannot be evaluated.

    Functions raise it without a place. The interpreter adds the place of the call and the emitted field.

    Args:
        category: The category in the dead letter queue.
        span: The place in the program.
        field: The emitted field.
    """

    def __init__(self, message: str, *, category: str = DEFAULT_CATEGORY, span: Span | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.category = category
        self.span = span
        self.field = field


def conversion_failure(shown: str, target: str) -> CxlFailure:
    """Return the failure of a strict conversion. `shown` is the value as text, `target` the name of the type."""
    return CxlFailure(f"conversion failed: cannot convert '{shown}' to {target}")


def overflow(operation: str) -> CxlFailure:
    """Return the failure of an integer operation whose result exceeds 64 bits."""
    return CxlFailure(f"integer overflow in {operation}")


def division_by_zero() -> CxlFailure:
    """Return the failure of `/` or `%` by zero."""
    return CxlFailure("division by zero")


def measured(length: int) -> None:
    """Check the length of a text before it is made. Raises CxlFailure."""
    if length > MAX_TEXT:
        raise CxlFailure(f"string of {length} characters exceeds the limit of {MAX_TEXT}")
