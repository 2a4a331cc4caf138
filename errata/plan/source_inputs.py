"""The files that a source reads: matched by its configuration, or the stored records of its service."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import cast

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from operators.source.node import SourceNode
from storage.files.discovery import FileQuery, FileStat, PathRefused, Reach, discover, looks_for
from storage.formats import FormatError
from storage.process_folders import temporary_folder
from storage.state.location import State

_WAY_IN = "name it in `exclude`, or permit it with --allow-absolute-paths"


def discovered(node: Node, plan: Plan) -> Sequence[FileStat]:
    """The files of a source in order, none of a table.

    Raises:
        StorageFailed: They are not there.
        PipelineErrors: A link leads out of the pipeline's folder (E232).
    """
    operator = cast("SourceNode", node.operator)
    if operator.versioned or operator.config.asks:
        return ()
    if operator.has_own_file:
        return stored_records(operator)
    config = operator.config
    if config.dataset:
        return plan.datasets[node.name].files()
    try:
        return discover(_query(operator), plan.settings.places, allow_absolute=plan.settings.allow_absolute_paths)
    except PathRefused as error:
        place = (*node.spec.path, "config", *config.matchers())
        raise PipelineErrors([node.spec.document.error(place, "E232", f"source '{node.name}': {error}", help=_WAY_IN)]) from error
    except FormatError as error:
        raise StorageFailed(f"source '{node.name}': {error}", file=config.path or "") from error


def reach_of(node: Node, plan: Plan) -> Reach:
    """Which files a source may read. To find that out takes less than `discovered`."""
    operator = cast("SourceNode", node.operator)
    if operator.versioned or operator.config.asks:
        return Reach(None)
    if operator.has_own_file or operator.config.dataset:
        return Reach(None, links=True)
    try:
        return Reach.of(_query(operator), plan.settings.places)
    except (FormatError, OSError):  # `discovered` says what is wrong
        return Reach(None, links=True)


def would_read(node: Node, plan: Plan, file: Path) -> bool:
    """Whether a source finds a file with this real path, once it is there, by a pattern that takes files of any size and time."""
    operator = cast("SourceNode", node.operator)
    if operator.versioned or operator.config.asks or operator.has_own_file or operator.config.dataset:
        return False
    try:
        return looks_for(_query(operator), plan.settings.places.folder, file)
    except FormatError:  # `discovered` says what is wrong
        return False


def _query(operator: SourceNode) -> FileQuery:
    """What a source looks for."""
    config, files = operator.config, operator.config.files
    return FileQuery(
        config.path, config.glob, config.regex, None if config.paths is None else tuple(config.paths), tuple(config.exclude),
        config.modified_after, config.modified_before, config.min_size, config.max_size,
        files.sort_by, files.sort_order, files.take_first, files.take_last, files.recursive, files.on_no_match,
    )  # fmt: skip


def file_name(operator: SourceNode) -> str:
    """The value of `$source.file` for records of a service, and for rows that a program hands over."""
    return f"<source:{operator.name}>" if operator.given is None else operator.given.name


def stored_records(operator: SourceNode) -> Sequence[FileStat]:
    """The file of kept records under the source's own name; nothing before the first fetch."""
    path = operator.kept
    if path is None or not path.is_file():
        return ()
    facts = path.stat()
    return (FileStat(path, file_name(operator), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns),)


def asking(plan: Plan) -> list[Node]:
    """The sources that ask a database."""
    return [node for node in plan.of_kind("source") if cast("SourceNode", node.operator).config.asks]


def services(plan: Plan) -> dict[str, str]:
    """The sources that read a service, or a dataset on a server, with why a run looks at each."""
    configs = ((node.name, cast("SourceNode", node.operator).config) for node in plan.of_kind("source"))
    return {name: f"only the run asks the {'service' if config.service else 'server'}" for name, config in configs if config.service or config.publisher}


def fetched_below(state: State) -> Path:
    """Where the records of services are kept: in a local state folder; for one elsewhere they are asked for again by each process."""
    return Path(state.root) / "fetched" if state.local else _of_this_process()


@cache
def _of_this_process() -> Path:
    return temporary_folder("fetched")
