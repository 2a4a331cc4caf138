"""What goes wrong with one record while a program runs ("Failures are data")."""

from cxl.diagnostics.source import Span

DEFAULT_CATEGORY = "type_coercion_failure"
"""The category of an evaluation that has none of its own (SPEC-DECISIONS, Errors 11)."""
MAX_TEXT = 10_485_760
"""The longest text, in characters, that a program makes."""


class CxlFailure(Exception):
    """A record that cannot be evaluated: category of the dead letter queue, message, place in the program.

    Functions raise it without a place; the interpreter adds the place of the call and the emitted field.
    """

    def __init__(self, message: str, *, category: str = DEFAULT_CATEGORY, span: Span | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.category = category
        self.span = span
        self.field = field


def conversion_failure(shown: str, target: str) -> CxlFailure:
    """The failure of a strict conversion of the value shown to the type named `target`."""
    return CxlFailure(f"conversion failed: cannot convert '{shown}' to {target}")


def overflow(operation: str) -> CxlFailure:
    """A 64-bit integer operation whose result does not fit."""
    return CxlFailure(f"integer overflow in {operation}")


def division_by_zero() -> CxlFailure:
    """`/` or `%` by zero."""
    return CxlFailure("division by zero")


def measured(length: int) -> None:
    """Check the length of a text before it is made. Raises CxlFailure."""
    if length > MAX_TEXT:
        raise CxlFailure(f"string of {length} characters exceeds the limit of {MAX_TEXT}")
