"""Walking through a random story step by step: after each step everything that was written is what one full run writes."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from tests.invariants.dags import Files, Source, Story
from tests.pipelines import Folder

ANEW = ("_cxl_dlq_id", "_cxl_dlq_timestamp")
"""Columns of the dead letter queue that each run makes anew."""


class Broken(AssertionError):
    """What a later run wrote is not what a full run writes."""


def lay_out(folder: Folder, sources: list[Source], files: Mapping[str, Files]) -> None:
    """Make the source folders hold exactly these files."""
    for source in sources:
        place = folder.path / source.name
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            if old.name not in files[source.name]:
                old.unlink()
        for name, rows in files[source.name].items():
            folder.write_csv(f"{source.name}/{name}", source.header, rows)


def walk(story: Story, engine: str = "sail") -> None:
    """Run each step and compare; at last look for violations of the invariants. Raises Broken."""
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place) / "steps", engine)
        for number, (files, edit) in enumerate(story.steps):
            found = _written(folder, story, files, edit)
            if number:
                _compare(number, found, _written(Folder(Path(place) / f"full{number}", engine), story, files, edit))
        wrong = folder.violations()
        if wrong:
            raise Broken(f"verify: {wrong}")


def _written(folder: Folder, story: Story, files: Mapping[str, Files], edit: int) -> dict[str, str]:
    """What a run over these files writes, and its exit code."""
    for name, text in story.pipeline.files(edit).items():
        folder.write(name, text)
    lay_out(folder, story.pipeline.sources, files)
    code = folder.run().exit_code
    return written(folder) | {"exit code": str(code)}


def _compare(step: int, found: Mapping[str, str], full: Mapping[str, str]) -> None:
    if sorted(found) != sorted(full):
        raise Broken(f"step {step}: files {sorted(found)}, a full run writes {sorted(full)}")
    for name, text in full.items():
        if found[name] != text:
            raise Broken(f"step {step}: {name}\n--- found\n{found[name]}--- full run\n{text}")


def written(folder: Folder) -> dict[str, str]:
    """The text of each output by its path; of the dead letter queue without what each run makes anew, and in no order."""
    place = folder.path / "out"
    found = {str(file.relative_to(place)): file.read_bytes().decode() for file in sorted(place.rglob("*")) if file.is_file()} if place.exists() else {}
    return {name: _settled(text) if name == "dlq.csv" else text for name, text in found.items()}


def _settled(text: str) -> str:
    rows = [{name: value for name, value in row.items() if name not in ANEW} for row in csv.DictReader(StringIO(text))]
    return "".join(f"{line}\n" for line in sorted(map(str, rows)))
