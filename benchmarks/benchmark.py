"""A benchmark: its programs, the sizes over which they run, and the part of the page that shows their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.job import Job
from benchmarks.results import Results

SCRATCH: Final = Path(__file__).parent / "scratch"
"""Where inputs are kept and programs write."""
ENGINES: Final = ("sail", "spark")


@dataclass(frozen=True, slots=True)
class Program:
    """A measured program.

    Args:
        run: Does the work.
        engines: What it runs on. A program with an engine of its own is measured whatever engine is asked for.
        always: So is this one, on each of its engines.
    """

    run: Callable[[Job], None]
    engines: tuple[str, ...] = ENGINES
    always: bool = False

    def wanted(self, engine: str, asked: tuple[str, ...]) -> bool:
        """Whether it is measured on an engine where some engines are asked for."""
        return self.always or engine not in ENGINES or engine in asked


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One or more tables of the page.

    Args:
        name: What the command line calls it.
        programs: By name, in the order in which they are measured.
        sizes: Numbers of rows, or scales, that `make bench` measures.
        write: Writes the input of a program of some size into a folder, where it is not there yet; returns its path.
        show: The lines of the page.
        engines: The engines that `make bench` measures.
    """

    name: str
    programs: Mapping[str, Program]
    sizes: tuple[float, ...]
    write: Callable[[Path, str, float], Path]
    show: Callable[[Results], Iterator[str]]
    engines: tuple[str, ...] = ("sail",)

    def planned(self, sizes: tuple[float, ...], engines: tuple[str, ...]) -> Iterator[tuple[str, str, float]]:
        """Program, engine and size of all that is to be measured, the programs of one size side by side."""
        for size in sizes or self.sizes:
            for name, program in self.programs.items():
                yield from ((name, engine, size) for engine in program.engines if program.wanted(engine, engines or self.engines))
