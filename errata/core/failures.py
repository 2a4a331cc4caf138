"""Why a command stopped, other than a project that does not load: exit code, message and what it left behind.

    Failure
    +-- Stopped         exit 3: fail_fast, an error threshold, a guard
    +-- StorageFailed   exit 4: input, output, storage
    +-- Busy            exit 6: another run holds the pipeline
    +-- Usage           exit 64: wrong use of a command

`errata.core.diagnostics.PipelineErrors` is exit 1 (CONTRACT.md, "Exit codes").
"""

from collections.abc import Mapping, Sequence
from typing import Any

AGAIN = "run again to continue"
"""The way on where the same run can succeed without any change."""
REPAIR = "repair the cause, then run again"


def repair(file: str) -> str:
    """The way on where a file is to be changed first, if one is known."""
    return f"fix {file}, then run again" if file else REPAIR


class Failure(Exception):
    """Base: `exit_code`, the message for people, an optional line of help, lines that tell more of what happened, the way on.

    `file`: what is to be fixed before another run can succeed, if one file is to blame. `again`: nothing need be fixed.
    """

    exit_code = 3
    measured: Mapping[str, Any] = {}

    def __init__(self, message: str, *, help: str = "", details: Sequence[str] = (), file: str = "", again: bool = False) -> None:
        """Keep the message, the help, the details and the way on apart."""
        super().__init__(message)
        self.message = message
        self.help = help
        self.details = tuple(details)
        self.way_on = AGAIN if again else repair(file)


class Stopped(Failure):
    """An evaluation error under fail_fast, an error threshold or a guard ended the run; `measured` says what one that had read everything counted."""

    def __init__(self, message: str, *, help: str = "", details: Sequence[str] = (), file: str = "", measured: Mapping[str, Any] | None = None) -> None:
        """Keep the members that the metrics file has of the run's own."""
        super().__init__(message, help=help, details=details, file=file)
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
        return cls(f"another run holds the pipeline: {owner}", help="wait for it with --wait", again=True)


class Usage(Failure):
    """A command was called with words that do not go together, or asks for what no run has made yet."""

    exit_code = 64

    @classmethod
    def no_run(cls) -> "Usage":
        """The failure of a command that needs an epoch where none was committed yet."""
        return cls("no run yet, so there is nothing to show", help="`errata run` makes the first epoch")
