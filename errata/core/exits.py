"""The exit codes of Errata (CONTRACT.md, "Exit codes")."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended. On 1, 3, 4, 6, 70 and 130 state and outputs are those of the last committed epoch."""

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
