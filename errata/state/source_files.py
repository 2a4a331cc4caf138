"""The files that a source's configuration matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from errata.core.failures import StorageFailed
from errata.execution.rest_sources import kept_records

if TYPE_CHECKING:
    from errata.plan.plan import Node, Plan
    from operators.source.node import SourceNode
    from storage.files.discovery import FileStat


def discovered(node: Node, plan: Plan) -> Sequence[FileStat]:
    """The files of a source in order, none of a table. Raises StorageFailed where they are not there."""
    from storage.files.discovery import FileQuery, discover
    from storage.formats import FormatError

    operator = cast("SourceNode", node.operator)
    if operator.versioned:
        return ()
    if operator.config.service is not None:
        return kept_records(operator)
    config = operator.config
    files = config.files
    query = FileQuery(
        config.path, config.glob, config.regex, None if config.paths is None else tuple(config.paths), tuple(config.exclude),
        config.modified_after, config.modified_before, config.min_size, config.max_size,
        files.sort_by, files.sort_order, files.take_first, files.take_last, files.recursive, files.on_no_match,
    )  # fmt: skip
    try:
        return discover(query, plan.settings.folder, allow_absolute=plan.settings.allow_absolute_paths)
    except FormatError as error:
        raise StorageFailed(f"source '{node.name}': {error}", file=config.path or "") from error
