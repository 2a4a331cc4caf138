"""Small projects for tests: a folder with a pipeline and its files, run through the public surface, looked at through the commands."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import cxl.syntax.nesting_limit  # noqa: F401 - raises the recursion limit once, before a property test looks at it
import errata
from changelog.rows import Limits
from errata.core.options import EngineOptions, RunOptions
from storage.engines.base import Engine
from tests.support.event_streams import checked

Record = Mapping[str, Any]


def command(*words: str) -> tuple[int, str, str]:
    """Run `errata` in this process: exit code, standard output, standard error. A stream of events is checked."""
    from errata.cli import main

    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    if "--events" in words and "jsonl" in words:
        checked(out.getvalue(), code, next(word for word in words if word.endswith(".yaml")))
    return code, out.getvalue(), err.getvalue()


@contextmanager
def limited(**limits: int) -> Iterator[None]:
    """Give engines other `Limits` for the body of a `with`, so that small inputs are handled as large ones."""
    before, Engine.limits = Engine.limits, Limits(**limits)
    try:
        yield
    finally:
        Engine.limits = before


@dataclass
class Folder:
    """A project's folder. `engine` is the engine of its runs."""

    path: Path
    engine: str | EngineOptions = "sail"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def engine_options(self) -> EngineOptions:
        """The engine as an option of runs."""
        return EngineOptions(self.engine) if isinstance(self.engine, str) else self.engine

    def write(self, name: str, text: str) -> None:
        """Write a file below the folder."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")

    def write_csv(self, name: str, header: Sequence[str], records: Sequence[Record]) -> None:
        """Write records as a CSV file; None is an empty cell."""
        lines = StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(["" if record[name] is None else record[name] for name in header] for record in records)
        self.write(name, lines.getvalue())

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def load(self, **settings: Any) -> errata.Pipeline:
        """The folder's pipeline."""
        return errata.load(self.path / "pipeline.yaml", **settings)

    def run(self, **changed: Any) -> errata.RunResult:
        """Run the pipeline."""
        given = {"engine": self.engine_options, "max_retract_share": 1.0, **self.options, **changed}
        return self.load().run(RunOptions(**given))

    def text(self, name: str) -> str:
        """The text of a file below the folder."""
        return (self.path / name).read_text(encoding="utf-8")

    def rows(self, name: str) -> list[dict[str, str]]:
        """The records of a CSV file below the folder."""
        return list(csv.DictReader(StringIO(self.text(name))))

    def log(self, node: str) -> list[dict[str, Any]]:
        """The changelog of a node, as `errata log` shows it."""
        return [dict(row) for row in self.load().log(node)]

    def violations(self) -> list[Record]:
        """The faults that `errata verify` finds."""
        return [row for row in self.load().verify() if row["verdict"] != "ok"]

    def state_files(self) -> dict[str, int]:
        """Every file of the state folder with its time of change."""
        root = self.path / ".errata"
        return {str(file.relative_to(root)): file.stat().st_mtime_ns for file in root.rglob("*") if file.is_file() and file.name != "claim"}


@contextmanager
def standing_in(folder: Path) -> Iterator[None]:
    """Work inside a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def jsonl(text: str) -> list[Any]:
    """The values of JSON lines."""
    return [json.loads(line) for line in text.splitlines() if line]
