"""Exit codes, and the failures that stop a command.

    Failure
    +-- Stopped         exit 3: fail_fast, an error threshold, a guard
    +-- StorageFailed   exit 4: input, output, storage
    +-- Busy            exit 6: another run holds the pipeline
    +-- Usage           exit 64: wrong use of a command
    +-- LibraryMissing  exit 1: a library of an extra is not installed

A pipeline with errors raises `errata.core.diagnostics.PipelineErrors`, exit 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """How a command ended. On 1, 3, 4, 6, 70 and 130 state and outputs belong to the last committed epoch."""

    CLEAN = 0
    CONFIGURATION = 1
    REJECTED = 2
    STOPPED = 3
    STORAGE = 4
    VIOLATION = 5
    BUSY = 6
    USAGE = 64
    DEFECT = 70
    INTERRUPTED = 130


AGAIN = "run again to continue"
"""The next step where the same command can succeed without any change."""
REPAIR = "repair the cause, then run again"


def repair(file: str) -> str:
    """Return the next step where a file, if one is known, must change first."""
    return f"fix {file}, then run again" if file else REPAIR


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """The records of a run.

    Attributes:
        files: Path and number of records of each file that was read.
        written: Rows in outputs.
        rejected: Rejected records, without the waived ones.
        waived: Rejected records that were waived.
    """

    files: Sequence[tuple[str, int]]
    written: int
    rejected: int
    waived: int = 0


class Failure(Exception):
    """Base of the failures.

    Args:
        help: What the user can do.
        details: Further lines about the failure.
        file: The file to fix before another run can succeed.
        again: Whether another run can succeed without any change.
        redacted: The message without values of the data; None where the message has none but in quotes.
    """

    exit_code: int = Exit.STOPPED
    counts: RecordCounts | None = None

    def __init__(
        self, message: str, *, help: str = "", details: Sequence[str] = (), file: str = "", again: bool = False, redacted: str | None = None
    ) -> None:
        super().__init__(message)
        self.redacted = redacted
        self.message = message
        self.help = help
        self.details = tuple(details)
        self.next_step = AGAIN if again else repair(file)


class Stopped(Failure):
    """A run ended by fail_fast, an error threshold or a guard.

    Args:
        counts: The records of a run that had read all of its input.
    """

    def __init__(
        self, message: str, *, help: str = "", details: Sequence[str] = (), file: str = "", counts: RecordCounts | None = None, redacted: str | None = None
    ) -> None:
        super().__init__(message, help=help, details=details, file=file, redacted=redacted)
        self.counts = counts


class StorageFailed(Failure):
    """An input, an output or the storage could not be read or written."""

    exit_code = Exit.STORAGE


class Busy(Failure):
    """Another run holds the pipeline."""

    exit_code = Exit.BUSY

    @classmethod
    def held_by(cls, owner: str) -> "Busy":
        """Return the failure for a run whose claim is alive."""
        return cls(f"another run holds the pipeline: {owner}", help="wait for it with --wait", again=True)


class Usage(Failure):
    """A command whose words do not go together, or that needs something no run has made yet."""

    exit_code = Exit.USAGE

    @classmethod
    def no_run(cls) -> "Usage":
        """Return the failure of a command that needs an epoch before the first is committed."""
        return cls("no run yet, so there is nothing to show", help="`errata run` makes the first epoch")


class LibraryMissing(Failure):
    """A command that needs a library which is not installed."""

    exit_code = Exit.CONFIGURATION

    @classmethod
    def of_extra(cls, what: str, library: str, extra: str) -> "LibraryMissing":
        """Return the failure of a command (`what`) that needs a library of an extra."""
        return cls(f"{what} needs the library {library}, which is not installed", help=f"pip install 'errata[{extra}]'")
