"""Measured results, kept in a file with a line of JSON for each program, engine and size, so that each can be measured at another time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.job import COLD

FILE: Final = Path(__file__).parent / "results.jsonl"


@dataclass(frozen=True, slots=True)
class Result:
    """One program on one engine and one size of input, and the machine, the day and the load under which it was measured."""

    program: str
    engine: str
    size: float
    machine: str
    load: float
    peak_mb: float
    parts: Mapping[str, float]

    def part(self, name: str) -> float | None:
        """The figure of a part, None where the program has no such part."""
        return self.parts.get(name)

    def cold(self) -> float | None:
        """The first run of a process, with the engine's start. A hand-written program reports the start separately."""
        cold = self.part(COLD)
        return None if cold is None else cold + (self.part("session") or 0.0)


class Results(tuple[Result, ...]):
    """All results, one of each program, engine and size."""

    __slots__ = ()

    @classmethod
    def load(cls, file: Path = FILE) -> Results:
        """The results of a file; none where it is not there."""
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return cls(Result(**json.loads(line)) for line in lines)

    def save(self, file: Path = FILE) -> None:
        """Write the file anew."""
        partial = file.with_suffix(".partial")
        partial.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in self), encoding="utf-8")
        partial.rename(file)

    def with_one(self, one: Result) -> Results:
        """These results with another one, which replaces the one of its program, engine and size."""
        others = (other for other in self if (other.program, other.engine, other.size) != (one.program, one.engine, one.size))
        return Results((*others, one))

    def of(self, program: str, engine: str, size: float) -> Result | None:
        """The result of a program, None where it was not measured."""
        return next((one for one in self if (one.program, one.engine, one.size) == (program, engine, size)), None)

    def part(self, program: str, engine: str, size: float, name: str) -> float | None:
        """The figure of a part of a program, None where it was not measured."""
        found = self.of(program, engine, size)
        return None if found is None else found.part(name)

    def among(self, programs: Iterable[str]) -> Results:
        """The results of some programs, by size, each size in the order of the programs."""
        order = {program: number for number, program in enumerate(programs)}
        found = [one for one in self if one.program in order]
        return Results(sorted(found, key=lambda one: (one.size, one.engine, order[one.program])))
