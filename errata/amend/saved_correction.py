"""`errata correct --save`: a correction written into the files beside the pipeline, where the next run finds it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

import yaml

from changelog.columns import column
from errata.amend.correct import given_value
from errata.core.failures import Usage
from errata.core.files import replace_file
from errata.core.options import Correction
from errata.inspect.snapshot import Snapshot
from errata.inspect.why import value_is
from errata.plan.expectations import delivering, written_input
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node
from errata.project.correction_files import YAML
from errata.yaml import parse_yaml
from operators.core.settings import PipelineSettings, leads_out
from operators.corrections.correction import shown_key
from operators.corrections.entries import cell_text
from operators.corrections.operator import Corrections
from storage.folder_lock import alone
from storage.uris import below
from storage.values.python_rows import dictionaries

FILE = "manual.yaml"
"""The file that is made where a pattern names the files."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A correction in its file.

    Attributes:
        path: The file.
        name: Its name, as the pipeline has it.
        text: What was added to it.
    """

    path: Path
    name: str
    text: str


def save(pipeline: LoadedPipeline, correction: Correction, notes: Mapping[str, str | None], *, dry: bool = False) -> Saved:
    """Add a correction to the file of the corrections node behind its source. Nothing is committed.

    Args:
        pipeline: The pipeline, which has run.
        correction: Which record, and its new values; without values it is retracted.
        notes: Author and ticket, where they are known.
        dry: Whether nothing is written.

    Raises:
        Usage: There is no such node, no such record, or a correction of it already.
    """
    node = _node(pipeline, correction.source)
    operator = cast("Corrections", node.operator)
    if set(correction.key) != set(operator.key):
        raise Usage(f"node '{node.name}' names records by {', '.join(operator.key)}", help=f"give {' '.join(f'--key {name}=...' for name in operator.key)}")
    row = _record(pipeline, node, correction)
    _require_new(operator, row, correction)
    for name, text in correction.changes.items():
        _require_value(pipeline, node, name, text)
    text = yaml.safe_dump([_entry(operator, row, correction, notes)], sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    saved = Saved(*place_of(str(node.spec.config.path), pipeline.plan.settings.folder), text)
    if not dry:
        key = {name: cell_text(row[name]) for name in operator.key}
        append(saved, pipeline.plan.settings, lambda entry: says_something(entry, key, correction.changes))
    return saved


def _require_new(operator: Corrections, row: Mapping[str, Any], correction: Correction) -> None:
    """Raise Usage where an active correction says something about the record already."""
    for one in operator.active:
        same = one.key == {name: cell_text(row[name]) for name in operator.key}
        if same and (one.column is None or not correction.changes or one.column in correction.changes):
            raise Usage(f"{one.shown} is corrected at {one.written.place} already", help="edit it there, or give it status: withdrawn")


def _entry(operator: Corrections, row: Mapping[str, Any], correction: Correction, notes: Mapping[str, str | None]) -> dict[str, Any]:
    """The correction as YAML has it."""
    change = {"set": {name: {"from": _plain(row[name]), "to": _given(text, row[name])} for name, text in correction.changes.items()}} if correction.changes else {"retract": True}
    return {"key": {name: _plain(row[name]) for name in operator.key}, **change, "reason": correction.reason, **{name: note for name, note in notes.items() if note}}


def _require_value(pipeline: LoadedPipeline, node: Node, name: str, text: str) -> None:
    """Raise Usage for a value that the node would refuse."""
    operator, type_ = cast("Corrections", node.operator), node.operator.inputs[0].data[name]
    if name in operator.fixed:
        raise Usage(operator.fixed[name].reason, help=operator.fixed[name].help)
    given_value(name, text, type_, pipeline.plan.settings.date_formats)


def _node(pipeline: LoadedPipeline, source: str) -> Node:
    found = sorted((node for node in pipeline.plan.of_kind("corrections") if source in delivering(pipeline.plan, node)), key=lambda node: written_input(pipeline.plan, node) != source)
    if not found:
        raise Usage(f"no corrections node reads '{source}'", help="add one behind the source: type: corrections, config: { path: corrections/*.yaml, key: [...] }")
    return found[0]


def _record(pipeline: LoadedPipeline, node: Node, correction: Correction) -> Mapping[str, Any]:
    """The record as its source has it, behind a merge as the node reads it. Raises Usage where there is none or several, or a column is unknown."""
    reading = Snapshot(pipeline.name, pipeline.state, pipeline.plan)
    row = node.operator.inputs[0].data
    above = correction.source if written_input(pipeline.plan, node) == correction.source else node.inputs[0][0]
    for name in correction.changes:
        if name not in row:
            raise Usage(f"'{correction.source}' has no column '{name}'", help=f"its columns: {', '.join(row)}")
    live = reading.live_rows(reading.committed(above))
    for name, text in correction.key.items():
        live = live.where(value_is(column(name), row[name], text))
    found = dictionaries(reading.engine.to_arrow(live.select(*map(column, row)), 2))
    if len(found) != 1:
        raise Usage(f"{'several records' if found else 'no record'} of '{above}' {'have' if found else 'has'} {shown_key(correction.key)}")
    return found[0]


def _plain(value: Any) -> Any:
    """A value as YAML writes it."""
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat() if isinstance(value, date | datetime) else value


def _given(text: str, before: Any) -> Any:
    """A new value as the command line gives it, a number where the cell has one."""
    if text == "":
        return None if before is None or not isinstance(before, str) else ""
    if isinstance(before, bool):
        return text
    for kind in (int, float):
        if isinstance(before, kind):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def place_of(pattern: str, folder: Path) -> tuple[Path, str]:
    """The file that a new correction is written into, and its name below the pipeline's folder. Raises Usage where a pattern has no place for one."""
    if not any(sign in pattern for sign in "*?["):
        path = folder / pattern
        if path.suffix.lower() not in YAML:
            raise Usage(f"'{pattern}' is no YAML file", help="write the correction into it, or name a pattern: path: corrections/*")
        return path, below(str(path), folder)
    name = str(Path(pattern).parent / FILE)
    if not fnmatch(name, pattern) or any(sign in str(Path(pattern).parent) for sign in "*?["):
        raise Usage(f"'{pattern}' has no place for a new file", help="name a pattern such as corrections/*.yaml")
    return folder / name, name


def append(saved: Saved, settings: PipelineSettings, doubles: Callable[[Any], bool], count: int = 1) -> None:
    """Add entries to their file, which stays a list of YAML, while nobody else adds some.

    Args:
        saved: The entries.
        settings: Where the pipeline lies.
        doubles: Whether an entry of the file says something about the same cells.
        count: The number of entries.

    Raises:
        Usage: The file would be no list, or leads out of the folder, or has such an entry.
    """
    path = saved.path.resolve()
    if not settings.allow_absolute_paths and leads_out(settings.folder, saved.name):
        raise Usage(f"'{saved.name}' is a link to a file outside the pipeline's folder", help="the next run would not read it: save into a file beside the pipeline")
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.parent):
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        text = before + ("" if not before or before.endswith("\n") else "\n") + saved.text
        document = parse_yaml(text, file=str(saved.path), env={})
        if not isinstance(document.value, list) or any(one.is_error for one in document.diagnostics):
            raise Usage(f"'{saved.name}' cannot be extended", help="write its corrections as a list whose lines begin with '- key:'")
        if any(map(doubles, document.value[:-count])):
            raise Usage(f"the record is corrected in {saved.name} already", help="edit it there, or give it status: withdrawn")
        replace_file(path, text)


def key_of(entry: Any, first: str) -> Mapping[str, str] | None:
    """The texts of the key of an active entry, as YAML has it; None where it is not active. `first`: the column of a key that is a value alone."""
    if not isinstance(entry, Mapping) or entry.get("status", "active") != "active":
        return None
    given = entry.get("key")
    return {name: str(value) for name, value in (given if isinstance(given, Mapping) else {first: given}).items()}


def says_something(entry: Any, key: Mapping[str, str], columns: Collection[str]) -> bool:
    """Return whether an active entry of a corrections file is about cells of a record.

    Args:
        entry: The entry as YAML has it.
        key: The texts of the record's key by column.
        columns: The columns of the cells; none for the whole record.
    """
    if key_of(entry, next(iter(key))) != key:
        return False
    cells = entry.get("set")
    return not isinstance(cells, Mapping) or not columns or any(name in columns for name in cells)
