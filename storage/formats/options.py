"""Base of the models of `options:` and similar blocks, and the error of a wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from storage.files.errors import FormatError


class OptionError(FormatError):
    """A configuration that no file can satisfy (exit 1).

    Args:
        message: what is wrong
        path: the keys that lead to the wrong value, below the node's `config`
        unknown: whether the last key of the path does not exist
        code: the code of the diagnostic
        help_text: the way out, where the message does not have it
    """

    def __init__(self, message: str, path: Sequence[str | int] = (), *, unknown: bool = False, code: str = "E218", help_text: str | None = None) -> None:
        super().__init__(message)
        self.path = tuple(path)
        self.unknown = unknown
        self.code = code
        self.help_text = help_text

    @classmethod
    def of(cls, wrong: ValidationError, key: str) -> OptionError:
        """The first error that a model finds in the block below `key`."""
        first = wrong.errors()[0]
        path = (key, *(part for part in first["loc"] if part != "[key]"))
        unknown = first["type"] == "extra_forbidden"
        message = "there is no such key" if unknown else _in_words(first)
        given = f", not {first['input']!r}" if first["type"] == "literal_error" else ""
        return cls(f"{'.'.join(map(str, path))}: {message}{given}", path, unknown=unknown)


class Options(BaseModel):
    """Base of option models: frozen, unknown keys are refused."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


def _in_words(error: Any) -> str:
    """The error of one value, without pydantic's names for it."""
    if error["type"] in ("too_short", "too_long"):
        bound, word = ("min_length", "least") if error["type"] == "too_short" else ("max_length", "most")
        count = error["ctx"][bound]
        return f"must have at {word} {count} {'entry' if count == 1 else 'entries'}, not {error['ctx']['actual_length']}"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should", "must")
