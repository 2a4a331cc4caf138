"""The end of an erasure, behind its commit: files that only older versions need are removed, and a search looks for what is left.

It may be killed at any step. The ledger says that an erasure has not ended, and the next run does the rest. That run does not know the values, so its
record says that nobody searched; `errata erase --check` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from changelog.lazy_imports import pl
from errata.erasure.other_files import is_other
from errata.erasure.output_cells import written_cells
from errata.erasure.record import PENDING, made_key, signed
from errata.erasure.remains import LEFT, Fingerprints, fingerprints
from errata.erasure.search import PARQUET, Search
from errata.erasure.values import Values
from errata.plan.plan import Plan
from operators.output.config import OutputConfig
from operators.output.operator import Output
from storage import durable
from storage.delta.scrubbing import purge
from storage.errors import StorageError, storing
from storage.files.stores import store_of
from storage.lazy_deltalake import deltalake
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName
from storage.sql.tables import session_of
from storage.state.entry import Entry
from storage.state.integrity import anchor_ledger
from storage.state.ledger import Ledger
from storage.state.location import State
from storage.stores.folders import folder_at, folder_of
from storage.uris import is_local

_TABLES = ("changelog/", "state/", "rollback/")


@dataclass(frozen=True, slots=True)
class _Searched:
    """A place that is searched.

    Attributes:
        name: What messages call it.
        read: Gives its content.
        cells: Gives its columns; None where only bytes are read.
        has_cells: Whether rows were written there, so that bytes alone do not say everything.
    """

    name: str
    read: Callable[[], bytes]
    cells: Callable[[], list[pl.Series] | None] = lambda: None
    has_cells: bool = False

    def columns(self) -> list[pl.Series]:
        """Its columns, none where only bytes are read."""
        return self.cells() or []


@dataclass(frozen=True)
class Removal:
    """The remaining work of an erasure that was committed. `head`: the ledger's last entry."""

    plan: Plan
    state: State
    head: Entry

    def done(self, values: Values | None) -> dict[str, Any]:
        """Do it, and return the signed result of the search. Raises StorageError."""
        removed = self._tables() + self._orphans() + self._ledger() + sum(map(self._output, self._published()))
        for node in self.plan.of_kind("output"):
            self._database(cast("Output", node.operator).config)
        found, unsearched = ([], []) if values is None else self.searched(values)
        result = {
            "epoch": int(self.head.counters[PENDING]["epoch"]), "at": datetime.now(UTC).isoformat(timespec="seconds"), "removed_files": removed,
            "searched_values": None if values is None else len(values), "found": len(found), "files": found[:20],
            "cell_values": None if values is None else values.of_cells, "unsearched": unsearched[:20],
            **({LEFT: fingerprints(self._left(values, found), made_key(self.state))} if values is not None and found else {}),
        }  # fmt: skip
        return signed(result, made_key(self.state))

    def _left(self, values: Values, found: Collection[str]) -> Values:
        """The values that some places hold."""
        left = Values()
        for place in self._places():
            if place.name in found:
                content, columns = place.read(), place.columns()
                for one in values.each():
                    if (search := Search(one)).found_in(content) or search.in_columns(columns):
                        left.update(one)
        return left

    def recovered(self, known: Fingerprints) -> Values:
        """The values with these hashes, wherever they still are."""
        found, search = Values(), Search(Values())
        for place in self._places():
            found.update(known.found_in(search, place.read(), place.columns()))
        return found

    def _tables(self) -> int:
        """The older versions of the tables of the state."""
        bases: Mapping[str, int] = self.head.counters[PENDING]["tables"]
        removed = 0
        for path in sorted(self.head.tables):
            if path in bases:
                place = self.state.table(path)
                with storing(place):
                    removed += purge(folder_at(place, self.state.connection), place, int(bases[path]), path)
        return removed

    def _orphans(self) -> int:
        """Tables that the ledger does not name, as of nodes that are gone."""
        folder, removed = folder_at(self.state.root, self.state.connection), 0
        for name in list(folder.names()):
            path = "/".join(name.split("/")[:2])
            if name.startswith(_TABLES) and path not in self.head.tables:
                durable.step(f"purge:{path}", lambda name=name: folder.remove(name))  # type: ignore[misc]  # a lambda's default
                removed += 1
        return removed

    def _ledger(self) -> int:
        """The older versions of the ledger, whose entries quote values."""
        ledger = Ledger(self.state.ledger)
        version = ledger.checkpoint()
        anchor_ledger(self.state, ledger, self.head, {}, since=version - 1)
        with storing(self.state.ledger):
            return purge(folder_at(self.state.ledger, self.state.connection), self.state.ledger, version, "ledger")

    def _published(self) -> Iterator[str]:
        """The Delta tables that outputs have written."""
        places = self.plan.settings.places
        for node in self.head.nodes.values():
            for entry in node.get("files", ()):
                if "mark" in entry:
                    yield str(places / entry["path"]) if is_local(entry["path"]) else entry["path"]

    def _output(self, place: str) -> int:
        """The older versions of an output's table."""
        with storing(place):
            try:
                table = deltalake.DeltaTable(place)
            except deltalake.exceptions.TableNotFoundError:
                return 0
            label = place.rstrip("/").rpartition("/")[2]
            durable.step(f"checkpoint:{label}", table.create_checkpoint)
            return purge(folder_of(self.plan.settings.places / place), place, table.version(), label)

    def _database(self, config: OutputConfig) -> None:
        """Have a database reclaim the space of rows that are gone."""
        if config.connection is None:
            return
        connection, table = self.plan.settings.connections[str(config.connection)], TableName.parse(str(config.table))
        try:
            with session_of(connection, writes=True) as session:
                if session.standing(table).kind == "table":
                    durable.step(f"sql:reclaim:{table.table}", lambda: session.reclaim(table))
        except DatabaseError as error:
            raise StorageError(table.shown, str(error)) from None

    def searched(self, values: Values) -> tuple[list[str], list[str]]:
        """Search the state and the outputs.

        Returns:
            The places that hold a value, and the ones in which not every value was looked for: all values on a server and in what is too large unpacked;
            values that are found as whole words or cells alone where only bytes are read.
        """
        search, found, unsearched = Search(values), list[str](), [label for label, path in self._databases() if path is None]
        for place in self._places():
            content = place.read()
            cells = place.cells()
            if search.found_in(content) or search.in_columns(cells or ()):
                found.append(place.name)
            needs_cells = values.of_cells or (values.words and b"\0" in content[:4096])
            by_bytes = place.has_cells and cells is None and content[:4] != PARQUET
            if (needs_cells and by_bytes) or not search.is_searched(content):
                unsearched.append(place.name)
        return found, list(dict.fromkeys(unsearched))

    def _places(self) -> Iterator[_Searched]:
        """Everything that is searched: the files of the state, of outputs and of the dead letter queue."""
        state = folder_at(self.state.root, self.state.connection)
        yield from (_Searched(name, partial(state.read, name), has_cells=is_other(name)) for name in list(state.names()))
        for place in self._published():
            folder = folder_of(self.plan.settings.places / place)
            yield from (_Searched(f"{place}/{name}", partial(folder.read, name)) for name in list(folder.names()))
        for _, path in self._databases():
            if path is not None and path.exists():
                yield _Searched(str(path), path.read_bytes, has_cells=True)
        for path in self._watched():
            yield _Searched(path.name if path.parent == self.plan.settings.folder else str(path), path.read_bytes, has_cells=True)
        for node, name, content in self._written():
            yield _Searched(name, partial(bytes, content), partial(written_cells, self.plan, node, content), has_cells=True)

    def _databases(self) -> Iterator[tuple[str, Path | None]]:
        """The tables of databases that outputs write, and the files of the databases; None for a server."""
        for node in self.plan.of_kind("output"):
            config = cast("Output", node.operator).config
            if config.connection is not None:
                yield f"{config.connection}:{config.table}", self.plan.settings.connections[str(config.connection)].address().path

    def _watched(self) -> Iterator[Path]:
        """The files of metrics and of lineage that the pipeline names."""
        metrics, folder = self.plan.model.pipeline.metrics, self.plan.settings.folder
        lineage = metrics.openlineage.path if metrics.openlineage else None
        found = [folder / one for one in (metrics.prometheus, lineage) if one]
        if metrics.spool_dir:
            found += sorted((folder / metrics.spool_dir).glob("*.json"))
        yield from (path for path in found if path.is_file())

    def _written(self) -> Iterator[tuple[str, str, bytes]]:
        """The files that outputs and the dead letter queue wrote: the node, the path and the content."""
        places = self.plan.settings.places
        for node, summary in self.head.nodes.items():
            for entry in summary.get("files", ()):
                if "mark" not in entry and "database" not in entry:
                    target = places / entry["path"]
                    if target.exists():
                        yield node, str(entry["path"]), bytes(store_of(target).content(target))
