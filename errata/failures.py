"""Why a command stopped, other than a project that does not load: exit code, message and what it left behind.

    Failure
    +-- Stopped         exit 3: fail_fast, an error threshold, a guard
    +-- StorageFailed   exit 4: input, output, storage
    +-- Busy            exit 6: another run holds the pipeline
    +-- Usage           exit 64: wrong use of a command

`errata.diagnostics.PipelineErrors` is exit 1 (CONTRACT.md, "Exit codes").
"""

from collections.abc import Mapping, Sequence
from typing import Any


class Failure(Exception):
    """Base: `exit_code`, the message for people, an optional line of help, lines that tell more of what happened."""

    exit_code = 3
    measured: Mapping[str, Any] = {}

    def __init__(self, message: str, *, help: str = "", details: Sequence[str] = ()) -> None:
        """Keep the message, the help and the details apart."""
        super().__init__(message)
        self.message = message
        self.help = help
        self.details = tuple(details)


class Stopped(Failure):
    """An evaluation error under fail_fast, an error threshold or a guard ended the run; `measured` says what one that had read everything counted."""

    def __init__(self, message: str, *, help: str = "", details: Sequence[str] = (), measured: Mapping[str, Any] | None = None) -> None:
        """Keep the members that the metrics file has of the run's own."""
        super().__init__(message, help=help, details=details)
        self.measured = dict(measured or {})


class StorageFailed(Failure):
    """An input, an output or the storage could not be read or written."""

    exit_code = 4


class Busy(Failure):
    """Another run holds the pipeline."""

    exit_code = 6

    @classmethod
    def held_by(cls, owner: str) -> "Busy":
        """Another run's claim is alive."""
        return cls(f"another run holds the pipeline: {owner}", help="wait for it with --wait")


class Usage(Failure):
    """A command was called with words that do not go together."""

    exit_code = 64
