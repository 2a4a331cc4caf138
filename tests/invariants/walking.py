"""Walking through a random story step by step: after each step everything that was written is what one full run writes."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import errata
from errata.core.options import Correction, EngineOptions, RunOptions
from storage import durable
from storage.durable import Moment
from tests.invariants.dags import CHANNEL, PASSING, Pipeline, Story
from tests.invariants.laying import lay_out
from tests.invariants.scripts import KEYS, ManualCorrections, Step
from tests.support.chunking import small_chunks
from tests.support.killing import Died
from tests.support.pipelines import Folder

ANEW = ("_cxl_dlq_id", "_cxl_dlq_timestamp")
"""Columns of the dead letter queue that each run makes anew."""


class Broken(AssertionError):
    """A later run did not write the same as a full run."""


def walk(story: Story, engine: str = "sail", turns: Sequence[str | EngineOptions] = ()) -> None:
    """Run each step and compare; at last look for violations of the invariants. Raises Broken.

    `turns` are the engines of the steps, where they are not all that of the full runs.
    """
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        if story.large:
            stack.enter_context(small_chunks())
        walker = Walker(story.pipeline, Folder(Path(place) / "steps", engine))
        for number, step in enumerate(story.steps):
            walker.folder.engine = turns[number] if turns else engine
            found = walker.go(step, Path(place) / f"killed{number}")
            if number:
                full = Walker(story.pipeline, Folder(Path(place) / f"full{number}", engine))
                _compare(number, found, full.go(Step(step.files, step.edited), Path(place)))
        walker.rest(audited=story.audited)


class Walker:
    """A folder in which a pipeline goes its steps."""

    def __init__(self, pipeline: Pipeline, folder: Folder) -> None:
        self.pipeline, self.folder = pipeline, folder
        self.kept = 1
        """The first epoch that is not folded into a base."""

    def go(self, step: Step, elsewhere: Path) -> dict[str, str]:
        """The files after a step, and the exit code. A run that is killed goes on `elsewhere`."""
        for name, text in self.pipeline.files(edited=step.edited).items():
            self.folder.write(name, text)
        if step.correction:
            result = self._correct(step.correction, edited=step.edited)
        else:
            lay_out(self.folder, self.pipeline.sources, step.files)
            result = self._act(step, elsewhere)
        return written(self.folder) | {"exit code": str(result.exit_code)}

    def rest(self, *, audited: bool) -> None:
        """Nothing is left to do, and nothing is wrong."""
        before = self.folder.state_files()
        if self._run().committed or self.folder.state_files() != before:
            raise Broken("a run without any change did something")
        wrong = [row for row in self._project().verify(recompute=audited, engine=self.folder.engine_options) if row["verdict"] != "ok"]
        if wrong:
            raise Broken(f"verify: {wrong}")

    def _project(self) -> errata.Pipeline:
        return self.folder.load(**({"channel": CHANNEL} if self.pipeline.channel else {}))

    def _run(self, **changed: Any) -> errata.RunResult:
        return self._project().run(self._options(**changed))

    def _options(self, **changed: Any) -> RunOptions:
        return RunOptions(engine=self.folder.engine_options, max_retract_share=1.0, **changed)

    def _act(self, step: Step, elsewhere: Path) -> errata.RunResult:
        if step.act == "kill":
            return self._killed(step.at, elsewhere)
        if step.act == "cursors":
            self._run(from_cursors=True)
        result = self._run(full_refresh=step.act == "refresh")
        if step.act == "refresh":
            self.kept = 1
        elif step.act == "revert":
            return self._there_and_back(step.at) or result
        elif step.act == "compact":
            self.kept = self._project().head_epoch() if step.at % 2 else self.kept
            list(self._project().compact(self.kept if step.at % 2 else None, self.folder.engine_options))
        elif step.act == "twice":
            return self._run()
        return result

    def _killed(self, number: int, elsewhere: Path) -> errata.RunResult:
        """A run that dies at the side of a step, if it gets there, and the one after it."""

        def probe(moment: Moment) -> None:
            if moment.number == 1 + number // 2 and moment.side == ("before", "after")[number % 2]:
                shutil.copytree(self.folder.path, elsewhere)
                raise Died

        try:
            with durable.probing(probe):
                return self._run()
        except Died:
            self.folder = Folder(elsewhere, self.folder.engine)
            return self._run()

    def _there_and_back(self, number: int) -> errata.RunResult | None:
        head = self._project().head_epoch() or 0
        if head <= self.kept:
            return None
        try:
            self._project().revert(self.kept + number % (head - self.kept), self._options())
        except errata.Failure as failure:
            if "knows the records of" not in str(failure):
                raise
            return None
        return self._project().revert(head, self._options())

    def _correct(self, one: ManualCorrections, *, edited: bool) -> errata.RunResult:
        name = self.pipeline.renames.get(one.source, one.source) if edited else one.source
        key = {KEYS[one.source]: str(one.number)}
        return self._project().correct(Correction(name, key, {one.column: str(one.value)}, "found"), self._options())[1]


def _compare(step: int, found: Mapping[str, str], full: Mapping[str, str]) -> None:
    found = {name: text for name, text in found.items() if name in full or not name.startswith(PASSING)}
    if sorted(found) != sorted(full):
        raise Broken(f"step {step}: files {sorted(found)}, a full run writes {sorted(full)}")
    for name, text in full.items():
        if found[name] != text:
            raise Broken(f"step {step}: {name}\n--- found\n{found[name]}--- full run\n{text}")


def written(folder: Folder) -> dict[str, str]:
    """The text of each output by its path; of a table its rows, and the rows of the dead letter queue without what each run makes anew, in no order."""
    place = folder.path / "out"
    found: dict[str, str] = {}
    for path in sorted(place.rglob("*")) if place.exists() else []:
        name = str(path.relative_to(place))
        if path.suffix == ".delta":
            found[name] = _shown(DeltaTable(str(path)).to_pyarrow_table().to_pylist())
        elif path.is_file() and not any(parent.suffix == ".delta" for parent in path.parents):
            found[name] = _settled(path.read_text()) if name == "dlq.csv" else path.read_bytes().decode("latin-1")
    return found


def _settled(text: str) -> str:
    return _shown([{name: value for name, value in row.items() if name not in ANEW} for row in csv.DictReader(StringIO(text))])


def _shown(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{line}\n" for line in sorted(map(str, rows)))



