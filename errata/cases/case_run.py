"""Runs cases: each in a folder of its own, where the relative paths of the pipeline begin, with a state of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from changelog.ops import SYMBOLS, Op
from errata.api.pipeline import Pipeline
from errata.cases.model import Case, Step, find_cases, pipeline_of, read_cases
from errata.cases.stand_ins import load_inside, real_source
from errata.cases.table_files import table_of
from errata.cases.tables import Table, differences
from errata.core.diagnostics import PipelineErrors, did_you_mean
from errata.core.events import RunResult
from errata.core.failures import Failure, Usage
from errata.core.options import EngineKind, EngineOptions, RunOptions
from errata.plan.expectations import expectations_of
from storage.formats import FormatError

DEAD = ("category", "detail", "trigger", "source", "file", "row", "stage", "route")
"""Columns of dead letters beside the fields of the sources."""


def _require_given(pipeline: Pipeline, given: Mapping[str, Any]) -> None:
    """Raise Usage for a source that would read what is real: a database, a service or an object store."""
    found = real_source(pipeline.plan, given)
    if found is not None:
        node, what = found
        raise Usage(f"source '{node.name}' reads {what}, and a case reads nothing that is real", help=f'give it rows: given: {{ {node.name}: "COLUMN | COLUMN" }}, or a file: given: {{ {node.name}: {{ file: rows.csv }} }}')


@dataclass(slots=True)
class CaseRun:
    """A pipeline in a folder of its own.

    Attributes:
        pipeline: Its file.
        folder: Where its relative paths begin.
        beside: Where relative paths of given files begin.
        settings: `variables` and `channel`, as `errata.load` takes them.
        engine: The engine of the runs.
        max_retract_share: The share of a source's rows that a run may retract.
        given: The rows that sources have been given so far.
        result: What the last run did; None where it failed.
    """

    pipeline: Path
    folder: Path
    beside: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    engine: EngineKind = "sail"
    max_retract_share: float = 1.0
    given: dict[str, Any] = field(default_factory=dict)
    result: RunResult | None = None

    def run(self, step: Step) -> Iterator[str]:
        """Run a step, and yield how what it leads to differs from what is expected."""
        self._lay_out(step)
        self.given |= {name: table_of(written, self.beside).arrow() for name, written in step.given.items()}
        code, message, pipeline = self._executed(step)
        wanted = step.exit_code if step.exit_code is not None else 2 if step.dlq is not None else 0
        if code != wanted:
            yield f"exit code {code}, not {wanted}{f': {message}' if message else ''}"
        if step.message is not None and step.message not in message:
            yield f"the message is {message!r}, without {step.message!r}"
        if pipeline is not None and self.result is not None:
            yield from self._rows(step, pipeline, self.result)

    def _executed(self, step: Step) -> tuple[int, str, Pipeline | None]:
        """Exit code and message of the run, and the pipeline where it could be planned."""
        self.result, pipeline = None, None
        options = RunOptions(EngineOptions(self.engine), full_refresh=step.full_refresh, max_retract_share=self.max_retract_share, notify=False)
        try:
            pipeline = load_inside(self.pipeline, self.folder, **self.settings)
        except PipelineErrors as errors:
            return 1, _problems(errors), None
        self._require_known(step, pipeline)
        _require_given(pipeline, self.given)
        try:
            self.result = pipeline.run(options, inputs=self.given)
        except PipelineErrors as errors:
            return 1, _problems(errors), None
        except Failure as failure:
            return failure.exit_code, failure.message, pipeline
        except FormatError as error:
            return 4, str(error), pipeline
        return self.result.exit_code, "", pipeline

    def _rows(self, step: Step, pipeline: Pipeline, result: RunResult) -> Iterator[str]:
        """How rows, changes, dead letters and expectations differ."""
        for name, written in step.expect.items():
            node = self._node(pipeline, name)
            yield from _compared(f"rows of {name}", table_of(written, self.beside), result[node].to_dicts(), pipeline, node)
        for name, written in step.changes.items():
            node = self._node(pipeline, name)
            yield from _compared(f"changes of {name}", table_of(written, self.beside), _ops(result, node), pipeline, node, "op")
        if step.dlq is not None:
            yield from _dead_letters(table_of(step.dlq, self.beside), pipeline, result)
        for name, count in step.failing.items():
            yield from _failing(name, count, result)

    def _require_known(self, step: Step, pipeline: Pipeline) -> None:
        """Raise Usage for a name that the pipeline does not have."""
        for name in (*step.expect, *step.changes):
            self._node(pipeline, name)
        names = [one.label for one in expectations_of(pipeline.plan)]
        unknown = next((name for name in step.failing if name not in names), None)
        if unknown is not None:
            raise Usage(f"the pipeline has no expectation '{unknown}'", help=did_you_mean(unknown, names) or f"its expectations: {', '.join(names) or 'none'}")
        sources = [node.name for node in pipeline.plan.of_kind("source")]
        unknown = next((name for name in step.given if name not in sources), None)
        if unknown is not None:
            raise Usage(f"the pipeline has no source '{unknown}'", help=did_you_mean(unknown, sources) or f"its sources: {', '.join(sources)}")

    @staticmethod
    def _node(pipeline: Pipeline, name: str) -> str:
        """The node that a case means. Raises Usage for a name that the pipeline does not have."""
        known = name if name in pipeline.plan.nodes else pipeline.composition_outputs.get(name)
        if known is None or known not in pipeline.plan.nodes:
            raise Usage(f"the pipeline has no node '{name}'", help=did_you_mean(name, pipeline.node_names) or f"its nodes: {', '.join(pipeline.node_names)}")
        return known

    def _lay_out(self, step: Step) -> None:
        """Put the files of a step where the pipeline reads them. Raises Usage for a path that leads out of the folder, or a file that is not there."""
        for name, source in step.files.items():
            target = self._below(name)
            if source is None:
                target.unlink(missing_ok=True)
                continue
            try:
                shutil.copyfile(self.beside / source, target)
            except OSError as error:
                raise Usage(f"the file {source} of a case cannot be read: {error.strerror}") from error
        for name, text in step.texts.items():
            self._below(name).write_text(text, encoding="utf-8", newline="")

    def _below(self, name: str) -> Path:
        target = (self.folder / name).resolve()
        if not name or not target.is_relative_to(self.folder.resolve()) or target == self.folder.resolve():
            raise Usage(f"the file '{name}' of a case is not below the pipeline's folder", help="write a relative path without '..'")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def _problems(errors: PipelineErrors) -> str:
    """The errors of a pipeline as a message."""
    return "; ".join(f"{one.code}: {one.message}" for one in errors.diagnostics if one.is_error)


def _ops(result: RunResult, node: str) -> list[dict[str, Any]]:
    """The op rows that a run brought to a node, with `op`."""
    return [{"op": SYMBOLS[Op(row["_op"])], **row} for row in result.changes(node)] if result.committed else []


def _dead_letters(expected: Table, pipeline: Pipeline, result: RunResult) -> Iterator[str]:
    """How the dead letters differ."""
    dead = [dict(row) for row in pipeline.dlq_list()] if result.rejected else []
    fields = (name for one in pipeline.plan.of_kind("source") for name in one.operator.output.data)
    return differences("dead letters", expected, dead, list(dict.fromkeys([*DEAD, *(name for row in dead for name in row), *fields])))


def _failing(name: str, count: int, result: RunResult) -> Iterator[str]:
    """How the number of failing rows of an expectation differs."""
    found = result.expectations.get(name, 0)
    if found != count:
        yield f"expectation '{name}': {found} failing rows, not {count}"


def _compared(what: str, expected: Table, rows: Sequence[Mapping[str, Any]], pipeline: Pipeline, node: str, *further: str) -> Iterator[str]:
    """How rows of a node differ. Its rows may have undeclared columns too."""
    names = dict.fromkeys([*further, *pipeline.plan[node].operator.output.data, *(name for row in rows for name in row if not name.startswith("_"))])
    return differences(what, expected, rows, list(names))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case.

    Attributes:
        step: The number of the step that differs, from 1; 0 where none does.
        differences: How it differs.
    """

    file: Path
    case: str
    step: int
    differences: Sequence[str]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.differences

    def row(self) -> dict[str, Any]:
        """The outcome as a row: file, case, verdict, step, detail, seconds."""
        verdict = "ok" if self.passed else "failed"
        return {"file": str(self.file), "case": self.case, "verdict": verdict, "step": self.step or None, "detail": "\n".join(self.differences), "seconds": round(self.seconds, 3)}


def run_cases(places: Sequence[Path], engine: EngineKind = "sail", matching: str = "") -> Iterator[Outcome]:
    """Run the cases at or below some places. A case ends at its first step that differs.

    Args:
        places: Case files, and folders of these.
        engine: The engine of the runs.
        matching: A part of the names of the cases that are run.

    Raises:
        PipelineErrors: A case file has problems.
        Usage: A place is not there, or has no cases.
    """
    gone = next((place for place in places if not place.exists()), None)
    if gone is not None:
        raise Usage(f"there is no file or folder {gone}")
    files = [(path, read_cases(path)) for path in dict.fromkeys(path for place in places for path in find_cases(place))]
    chosen = [(path, cases, case) for path, cases in files for case in cases.cases if matching.casefold() in case.name.casefold()]
    if not chosen:
        searched = ", ".join(map(str, places))
        raise Usage(f"no cases in {searched}{f' match {matching!r}' if matching and files else ''}", help="a file orders.test.yaml has cases for orders.yaml")
    for path, cases, case in chosen:
        yield run_case(path, pipeline_of(path, cases), case, engine)


def run_case(path: Path, pipeline: Path, case: Case, engine: EngineKind) -> Outcome:
    """Run a case in a folder that goes with it. Raises Usage for given files that cannot be, and for names that the pipeline does not have."""
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="errata-case-") as folder:
        run = CaseRun(pipeline, Path(folder), path.parent, {"variables": case.variables, "channel": case.channel}, engine, case.max_retract_share)
        for number, step in enumerate(case.in_turn(), 1):
            try:
                found = list(run.run(step))
            except Usage as problem:
                raise Usage(f"{path}, case '{case.name}', step {number}: {problem.message}", help=problem.help) from problem
            if found:
                return Outcome(path, case.name, number, found, monotonic() - began)
    return Outcome(path, case.name, 0, (), monotonic() - began)
