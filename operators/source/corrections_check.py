"""Checks of what a source says about corrections: `ops`, `of`, `version_field`, change feeds, scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cxl.types.types import Kind
from operators.source.config import GROUPS, Column, ScopePath, SourceConfig
from storage import formats


class Finding(NamedTuple):
    """A diagnostic: its code, message, place below the node, and a way out."""

    code: str
    message: str
    place: tuple[str | int, ...]
    help: str | None = None


def findings(config: SourceConfig) -> Iterator[Finding]:
    """Yield what is wrong."""
    yield from _groups(config)
    yield from _of(config)
    yield from _versions(config)
    yield from _feed(config)
    yield from _paths(config)
    yield from _scope(config)
    yield from _order(config)


def _groups(config: SourceConfig) -> Iterator[Finding]:
    """E464: each group has values, and a value has one group."""
    ops, place = config.merge.ops, ("config", "merge", "ops")
    if ops is None:
        return
    if not ops:
        yield Finding("E464", "ops has no group", place, f"groups are {', '.join(GROUPS)}")
    seen: dict[str | None, str] = {}
    for group, words in ops.items():
        if group not in GROUPS:
            yield Finding("E464", f"ops has no group '{group}'", (*place, group), f"groups are {', '.join(GROUPS)}")
        if not words:
            yield Finding("E464", f"the group '{group}' of ops has no values", (*place, group), "give it values, or leave it out")
        for word in dict.fromkeys(words):
            if seen.setdefault(word, group) != group:
                shown = "null" if word is None else f"'{word}'"
                yield Finding("E464", f"{shown} is in the groups '{seen[word]}' and '{group}' of ops", (*place, group), "keep it in one of them")


def _of(config: SourceConfig) -> Iterator[Finding]:
    """E465: `of` names columns of the primary key; E215: by columns that exist."""
    types = {column.name: _type_of(column) for column in config.schema_}
    for key, named in (config.merge.of or {}).items():
        place = ("config", "merge", "of", key)
        if key not in config.merge.primary_key:
            yield Finding("E465", f"'{key}' is no column of the primary key", place, f"the primary key is {', '.join(config.merge.primary_key)}")
        elif named not in types:
            yield Finding("E215", f"there is no column '{named}' in the schema", place)
        elif key in types and types[key] != types[named]:
            yield Finding("E465", f"'{named}' has another type than '{key}', whose values it names", place, "declare both with one type")


def _type_of(column: Column) -> Kind | None:
    """The kind of a column's values; None where its type is wrong, which is reported elsewhere."""
    try:
        return column.cxl_type.kind
    except ValueError:
        return None


def _versions(config: SourceConfig) -> Iterator[Finding]:
    """E466: versions are for events of keys, and all of a record; E215: they are columns that exist."""
    merge, place = config.merge, ("config", "merge", "version_field")
    if merge.version_field is None:
        return
    if merge.strategy not in ("changelog", "upsert"):
        yield Finding("E466", f"version_field belongs to the strategies changelog and upsert, not '{merge.strategy}'", place, "choose one of these strategies, or remove version_field")
    if merge.ops and "patch" in merge.ops:
        yield Finding("E466", "version_field and the group 'patch' of ops exclude each other: a patch depends on what is live before it", place, "remove one of them; without version_field the order of delivery counts")
    names = {column.name for column in config.schema_}
    for name in () if config.feed else merge.version_field:
        if name not in names:
            yield Finding("E215", f"there is no column '{name}' in the schema", place)


def _order(config: SourceConfig) -> Iterator[Finding]:
    """E469: rows of a database have no order of their own."""
    merge = config.merge
    if config.asks and merge.ops is not None and merge.version_field is None and merge.cursor is None:
        yield Finding("E469", "'ops' needs an order, and rows of a database have none", ("config", "merge", "ops"), "name it: version_field, or cursor")


def _feed(config: SourceConfig) -> Iterator[Finding]:
    """E467: a change feed is JSON, and says itself what its messages do."""
    if "cdc" not in config.options:
        return
    merge, place = config.merge, ("config", "options", "cdc")
    if config.type != "json" and config.type in formats.names():
        yield Finding("E467", f"change feeds are read from json, not from {config.type}", place, "use type json")
    if merge.strategy != "changelog" or not merge.primary_key:
        yield Finding("E467", "a change feed needs 'merge' with strategy changelog and a primary_key", ("config", "merge"), "write merge: { strategy: changelog, primary_key: [id] }")
    for name in ("op", "ops", "of", "on_unknown"):
        if getattr(merge, name) is not None:
            yield Finding("E467", f"a change feed says itself what its messages do, so that '{name}' has no meaning", ("config", "merge", name), "remove it")


def _paths(config: SourceConfig) -> Iterator[Finding]:
    """E461: only messages of change feeds have members outside of the row."""
    for index, column in enumerate(config.schema_):
        if column.path is not None and "cdc" not in config.options:
            yield Finding("E461", f"column '{column.name}' has a path, and the source no messages with an envelope", ("config", "schema", index, "path"), "remove it, or read a change feed by options.cdc")


def _scope(config: SourceConfig) -> Iterator[Finding]:
    """E468: a scope needs a snapshot with a primary key, and columns that exist or a pattern with names."""
    merge, place = config.merge, ("config", "merge", "scope")
    if merge.scope is None:
        return
    if merge.strategy != "snapshot":
        yield Finding("E468", f"scope belongs to the strategy snapshot, not '{merge.strategy}'", place, "choose snapshot, or remove scope")
    elif not merge.primary_key:
        yield Finding("E468", "scope needs a primary_key", place, "name the columns of a record's identity as primary_key")
    if not config.asks and config.type in formats.names() and formats.reader_type(config.type).versioned:
        yield Finding("E468", "scope is about deliveries in files; a table has versions", place, "remove scope: the newest version is the whole truth")
    if isinstance(merge.scope, ScopePath):
        if config.asks:
            yield Finding("E468", "an answer of a database has no path that tells its scope", place, "scope: [month] names the columns that tell it")
        yield from _pattern(merge.scope, (*place, "path"))
        return
    names = {column.name for column in config.schema_}
    for name in merge.scope:
        if name not in names:
            yield Finding("E468", f"there is no column '{name}' in the schema, which scope names", place)


def _pattern(scope: ScopePath, place: Sequence[str | int]) -> Iterator[Finding]:
    """E468: a pattern of paths has names, each once, and no other braces."""
    names = scope.names
    if not names or "" in names or len(set(names)) < len(names) or scope.path.count("{") != len(names) or scope.path.count("}") != len(names):
        yield Finding("E468", f"'{scope.path}' is no pattern of paths: it needs parts such as {{month}}, each name once", tuple(place))


def fits(config: SourceConfig, problems: Any) -> bool:
    """Report all findings. Return whether there are none."""
    found = list(findings(config))
    for one in found:
        problems.report(one.code, one.message, one.place, help=one.help)
    return not found
