"""The regular expressions that CXL allows: those RE2 accepts, because RE2 matches in linear time."""

from functools import lru_cache


@lru_cache(maxsize=512)
def problem(pattern: str) -> str | None:
    """Return why a pattern is invalid, None where it is valid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return None
