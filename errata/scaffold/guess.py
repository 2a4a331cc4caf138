"""A pipeline guessed from files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from errata.core.failures import StorageFailed, Usage
from errata.core.files import replace_file
from errata.scaffold.model import Doubt, SourceGuess
from errata.scaffold.names import common_name, plain_name, unique
from errata.scaffold.pipeline_text import output_form, pipeline_text, state_exists
from errata.scaffold.samples import is_data, samples_of
from errata.scaffold.sources import checked_folder, grouped, links_of, source_of, with_date_formats

PIPELINE = "pipeline.yaml"


@dataclass(frozen=True, slots=True)
class Guessed:
    """A pipeline that was guessed and written.

    Args:
        path: The pipeline file.
        sources: Its sources.
        doubts: What was unsure.
    """

    path: Path
    sources: Sequence[SourceGuess]
    doubts: Sequence[Doubt]

    def found(self) -> Iterator[str]:
        """Yield a line for each source: files, records, columns, key."""
        for source in self.sources:
            files = f"{len(source.samples)} files" if len(source.samples) > 1 else source.samples[0].path.name
            files += "" if source.samples[0].alone else f" ({source.samples[0].options.get('record_path') or source.samples[0].kind})"
            records = f"{source.records:,} record{'' if source.records == 1 else 's'}" if source.whole else f"the first {source.records:,} records"
            columns = f"{len(source.columns):,} column{'' if len(source.columns) == 1 else 's'}"
            yield f"{source.name}: {files}, {records}, {columns}, {'key ' + ', '.join(source.key) if source.key else 'no key'}"


def guess_pipeline(folder: Path, given: Sequence[Path], *, force: bool = False) -> Guessed:
    """Guess a pipeline from files, write it into a folder and return it.

    Args:
        folder: The folder of the pipeline, at or above the files.
        given: Files, or folders whose data files are taken.
        force: Whether a pipeline file may be replaced.

    Raises:
        StorageFailed: A pipeline file exists, a file cannot be read, or one is outside of the folder; nothing is written.
        Usage: No file was found.
    """
    target = folder / PIPELINE
    if target.exists() and not force:
        raise StorageFailed(f"{target} exists", help="choose another folder, or replace it with --force")
    files = {path.resolve(): str(path) for path in _files(given)}
    home = folder.resolve()
    checked_folder(files, home)
    samples = [sample for path, name in files.items() for sample in samples_of(path, name)]
    sources: list[SourceGuess] = []
    for group in grouped(samples):
        sources.append(source_of(group, home, [one.name for one in sources]))
    formats = with_date_formats(sources)
    name = sources[0].name if len(sources) == 1 else plain_name(home.name, common_name([sources[0].name], "pipeline"))
    name = next(free for number in range(1, 1_000) if not state_exists(home, free := name if number == 1 else f"{name}_{number}"))
    text = pipeline_text(name, sources, list(links_of(sources)), formats, out=_outputs(home, sources), command=os.fspath(target))
    replace_file(target, text)
    return Guessed(target, sources, [doubt for source in sources for doubt in source.doubts])


def _files(given: Sequence[Path]) -> Iterator[Path]:
    """The files; folders give theirs in the order of their names. Raises Usage where a folder has none, and StorageFailed for a missing file."""
    for path in given:
        if (path / "refs" / "head").is_file():
            raise Usage(f"{path} is a dataset of Open Data Fabric", help=f"a source of type odf reads it: {{type: odf, path: {path}}}; see docs/reference/datasets.md")
        if path.is_dir():
            found = sorted(one for one in path.iterdir() if one.is_file() and is_data(one) and not one.name.startswith("."))
            if not found:
                raise Usage(f"the folder {path} has no file of data", help="name the files: errata init --from FILE…")
            yield from found
        elif path.is_file():
            yield path
        else:
            raise StorageFailed(f"{path}: file not found", help="name files that exist: errata init --from FILE…")


def _outputs(folder: Path, sources: Sequence[SourceGuess]) -> str:
    """The folder of the outputs: `out`, or one with a number where a file of theirs exists."""
    files = [*(f"{source.name}.{output_form(source)}" for source in sources), "rejected.csv"]
    taken: list[str] = []
    while True:
        name = unique("out", taken)
        if not (folder / name).is_file() and not any((folder / name / file).exists() for file in files):
            return name
        taken.append(name)
