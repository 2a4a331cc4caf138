"""The sources that an erasure is about, by the words of its command."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.core.options import Erasure
from errata.inspect.snapshot import predicate
from errata.plan.plan import Plan


def erased_sources(plan: Plan, wanted: Erasure) -> list[str]:
    """The sources that an erasure is about. Raises Usage where there are none, and PipelineErrors for a condition that does not compile."""
    sources = {node.name: node for node in plan.of_kind("source")}
    if wanted.source is not None and wanted.source not in sources:
        raise Usage(f"'{wanted.source}' is no source", help=did_you_mean(wanted.source, list(sources)) or f"sources: {', '.join(sources)}")
    _check_totals(wanted, {column for node in sources.values() for column in node.operator.output.data})
    named = [wanted.source] if wanted.source is not None else list(sources)
    if wanted.where is not None:
        if wanted.source is None and len(sources) > 1:
            raise Usage("--where needs --node SOURCE where there are several sources", help=f"sources: {', '.join(sources)}")
        predicate(wanted.where, sources[named[0]].operator.output.data)
        return named
    columns = {name: list(sources[name].operator.output.data) for name in named}
    return [name for name in named if wanted.key.keys() <= {*columns[name]}] or _no_columns(wanted, columns)


def _no_columns(wanted: Erasure, columns: Mapping[str, Sequence[str]]) -> NoReturn:
    """Raise Usage: no source has the columns of --key."""
    known = list(dict.fromkeys(column for names in columns.values() for column in names))
    missing = next((column for column in wanted.key if column not in known), ", ".join(wanted.key))
    raise Usage(f"no source has the column '{missing}'", help=did_you_mean(missing, known) or f"columns: {', '.join(known)}")


def _check_totals(wanted: Erasure, columns: Collection[str]) -> None:
    """Raise Usage where a column of --keep-totals is in no source, or names the records."""
    if unknown := next((name for name in wanted.keep_totals if name not in columns), None):
        raise Usage(f"no source has the column '{unknown}' of --keep-totals", help=did_you_mean(unknown, sorted(columns)))
    if both := next((name for name in wanted.keep_totals if name in wanted.key), None):
        raise Usage(f"--keep-totals would keep '{both}', which names the records")
