"""Errors between files and records.

    FormatError
        OptionError   a configuration that no file can satisfy (`storage.formats.options`)
        InputError    a file that cannot be read
            NothingFound   a file that is not there
        OutputError   a value or a target that cannot be written
"""

from __future__ import annotations

import re
from mmap import mmap
from typing import Any, ClassVar, TypeAlias

Buffer: TypeAlias = bytes | mmap
"""A file's bytes, read or mapped."""


class FormatError(Exception):
    """Base of the errors of files, records and their options."""


class OutputError(FormatError):
    """A value that a format cannot hold, or a target that cannot be written (exit 4). `found_in` recovers its text from the exception of an engine."""

    _MARK: ClassVar[re.Pattern[str]] = re.compile(r"OutputError: (?P<text>[^\n]+)")

    @classmethod
    def found_in(cls, text: str) -> str | None:
        """The message of an output error inside the text of an engine's exception; None where there is none."""
        found = cls._MARK.search(text)
        return found["text"].strip() if found else None


class InputError(FormatError):
    """A file that is not of the declared format (exit 4).

    The text is `file: line 3, byte 57: message`. `found_in` recovers it from the exception of an engine.

    Args:
        file: how messages call the file
        message: what is wrong
        line: the number of the line or record, from 1; None where it is unknown
        offset: the number of the byte, from 0; None where it is unknown
    """

    _MARK: ClassVar[re.Pattern[str]] = re.compile(r"InputError: (?P<text>[^\n]+)")

    def __init__(self, file: str, message: str, *, line: int | None = None, offset: int | None = None) -> None:
        self.file, self.message, self.line, self.offset = file, message, line, offset
        super().__init__(": ".join(filter(None, (file, self.place, message))))

    @property
    def place(self) -> str:
        """Return the known part of the place, such as `line 3, byte 57`."""
        return ", ".join(f"{name} {number}" for name, number in (("line", self.line), ("byte", self.offset)) if number is not None)

    def in_text(self, data: Buffer) -> InputError:
        """The same error with the line of its byte in `data`, the bytes of the file."""
        if self.line is not None or self.offset is None:
            return self
        return InputError(self.file, self.message, line=line_after(data[: self.offset]), offset=self.offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_input_error, (self.file, self.message, self.line, self.offset))

    @classmethod
    def found_in(cls, text: str) -> str | None:
        """The message of an input error inside the text of an engine's exception; None where there is none."""
        found = cls._MARK.search(text)
        return found["text"].strip() if found else None


class NothingFound(InputError):
    """A file that is not there, or a pattern that no file matches."""


def _input_error(file: str, message: str, line: int | None, offset: int | None) -> InputError:
    return InputError(file, message, line=line, offset=offset)


def ends_a_line(data: Buffer, at: int) -> bool:
    """Whether a line ends at byte `at`: its line end is just before it or begins there."""
    return data[at - 1 : at] in (b"\n", b"\r") or data[at : at + 1] in (b"\n", b"\r")


def line_after(text: bytes) -> int:
    """The number of the line that continues after some text, from 1."""
    return len(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
