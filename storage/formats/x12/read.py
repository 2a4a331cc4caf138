"""X12 interchanges to records, with checks of the three levels of the envelope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import methodcaller

from typing_extensions import override

from storage.files.errors import Buffer, InputError
from storage.formats.edi.reading import Body, Reading, Seen, bodies_in, check_count, check_echo, element_at, positional, text_blocks


class InterchangeReading(Reading):
    """The state of an interchange: the open group and set, and the counts in each."""

    header_tag, trailer = "ISA", "IEA"
    service = frozenset({"GS", "SE", "GE", "IEA"})

    def __init__(self, name: str, most: int, header: Sequence[str], seen: Seen | None = None) -> None:
        super().__init__(name, most, seen)
        self.header = header
        self.number = 1
        self.group: list[str] | None = None
        self.set: list[str] | None = None
        self.fields: dict[str, str] = {}
        self.groups = self.sets = self.segments = 0
        self.levels: dict[str, dict[str, str]] = {}

    @override
    def meaning(self, tag: str, data: list[str]) -> Body | None:
        match tag:
            case "ISA":
                raise self.wrong("a second ISA before the IEA trailer")
            case "GS":
                self._open_group(data)
                return None
            case "GE":
                self._close_group(data)
                return None
            case "IEA":
                self._close(data)
                return None
        return self._in_set(tag, data)

    def _open_group(self, data: list[str]) -> None:
        if self.group is not None:
            raise self.wrong("GS inside a functional group whose GE is missing")
        self.group, self.sets = data, 0
        self.groups += 1
        self.levels = {"functional_group": positional(data)}

    def _close_group(self, data: list[str]) -> None:
        if self.group is None or self.set is not None:
            raise self.wrong(
                "GE without an open functional group" if self.group is None else "GE inside a transaction set whose SE is missing"
            )
        check_count("GE01, the count of transaction sets,", element_at(data, 0), self.sets, self.number, self.name)
        check_echo("GE02, the group control number,", element_at(data, 1), element_at(self.group, 5), self.number, self.name)
        self.group, self.levels = None, {}

    def _close(self, data: list[str]) -> None:
        if self.group is not None:
            raise self.wrong("IEA inside a functional group whose GE is missing")
        check_count("IEA01, the count of functional groups,", element_at(data, 0), self.groups, self.number, self.name)
        check_echo("IEA02, the interchange control number,", element_at(data, 1), element_at(self.header, 12), self.number, self.name)
        self.closed = True

    def _in_set(self, tag: str, data: list[str]) -> Body | None:
        if tag == "ST":
            self._open_set(data)
        if self.set is None:
            raise self.wrong(f"'{tag[:10]}' stands outside a transaction set")
        self.segments += 1
        if tag == "SE":
            self._close_set(data)
            return None
        return self.record(tag, self.fields, data, self.levels)

    def _open_set(self, data: list[str]) -> None:
        if self.group is None or self.set is not None:
            raise self.wrong("ST outside a functional group" if self.group is None else "ST inside a transaction set whose SE is missing")
        self.set, self.segments = data, 0
        self.sets += 1
        self.levels = {**self.levels, "transaction_set": positional(data)}
        fields = {"set_ref": element_at(data, 1), "set_type": element_at(data, 0)}
        self.fields = {name: text for name, text in fields.items() if text}

    def _close_set(self, data: list[str]) -> None:
        check_count("SE01, the count of segments,", element_at(data, 0), self.segments, self.number, self.name)
        check_echo("SE02, the set control number,", element_at(data, 1), element_at(self.set or [], 1), self.number, self.name)
        self.set = None
        self.levels = {"functional_group": self.levels["functional_group"]}


def header_in(text: str, name: str) -> tuple[list[str], str, str, str]:
    """ISA01 to ISA16, the element separator, the terminator, and the text after the header. Raises InputError."""
    if not text.startswith("ISA") or len(text) < 4:
        raise InputError(name, f"segment 1: an interchange begins with ISA, not with '{text[:10]}'")
    separator = text[3]
    parts = text.split(separator, 16)
    if len(parts) < 17 or len(parts[16]) < 2:
        raise InputError(name, "segment 1: the ISA header is cut off")
    last, terminator = parts[16][0], parts[16][1]
    if any("\n" in part or "\r" in part for part in parts[1:16]) or terminator == separator:
        raise InputError(name, "segment 1: the ISA header has not its 16 elements")
    return [*parts[1:16], last], separator, terminator, parts[16][2:]


def bodies_of(data: Buffer, name: str, most: int, seen: Seen | None = None) -> Iterator[Body]:
    """The records of an interchange; none with `seen`, which collects their fields. Raises InputError."""
    blocks = text_blocks(data, name)
    header, separator, terminator, text = header_in(next(blocks, ""), name)
    split, elements = methodcaller("split", terminator), methodcaller("split", separator)
    return bodies_in(InterchangeReading(name, most, header, seen), chain([text], blocks), split, elements, blank=terminator in "\r\n")


def header_of(data: Buffer, name: str) -> Sequence[str]:
    """The elements of the ISA. Raises InputError."""
    return header_in(next(text_blocks(data, name), ""), name)[0]
