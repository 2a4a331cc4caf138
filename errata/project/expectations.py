"""The expectations of a node as its file has them: named, and checked as far as they can be without the node's columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pydantic import ValidationError

from errata.project.findings import NodeReporter
from operators.expect.config import ACCEPTED, MEASURES, Expectation, Placed


def read_expectations(written: Any, reporter: NodeReporter, ports: Collection[str] = ()) -> tuple[Placed, ...]:
    """The expectations of a node. Wrong ones are left out: the model of the node reports them.

    Args:
        written: The value of `expect`.
        reporter: Reports names that are taken, and severities that cannot be.
        ports: The names of the node's ports.
    """
    taken = {ACCEPTED, *ports}
    found: list[Placed] = []
    for position, one in _sound(written):
        name = one.name or _free(one.made_name, {*taken, *(other.name for other in found)})
        if name in taken or any(other.name == name for other in found):
            place = ("expect", position, "name")
            if name in taken:
                what = f"'{name}' is the name of the rows that pass" if name == ACCEPTED else f"'{name}' is a port of the node"
                reporter.report("E280", f"{what}, so no expectation can have it", place, help="choose another name")
            else:
                reporter.report("E280", f"two expectations of '{reporter.name}' are named '{name}'", place, help="choose another name")
            continue
        if one.severity == "reject" and one.kind in MEASURES:
            message = f"{one.kind} looks at all rows together: there is no row to reject"
            reporter.report("E285", message, ("expect", position, "severity"), help="severity: warn, or stop")
            continue
        found.append(Placed(position, name, one))
    return tuple(found)


def _sound(written: Any) -> Iterator[tuple[int, Expectation]]:
    """The expectations that can be read, with their positions."""
    for position, one in enumerate(written if isinstance(written, list) else ()):
        try:
            yield position, Expectation.model_validate(one)
        except ValidationError:
            continue


def _free(name: str, taken: Collection[str]) -> str:
    """A made name, with a number where it is taken."""
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
