"""The writes to a table in one transaction: the changes of rows, all rows anew, or further op rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from changelog.lazy_imports import pc
from storage import durable
from storage.sql.connections import Connection
from storage.sql.errors import CannotHold, DatabaseError
from storage.sql.names import TableName, listed, quoted, temporary
from storage.sql.tables import Column, ControlRow, Session, Shape, Standing, session_of

if TYPE_CHECKING:
    import pyarrow as pa

TRIES: Final = 3
INSERT, DELETE, UPDATE = 0, 1, 2
Batches: TypeAlias = "Callable[[], Iterator[pa.RecordBatch]]"
"""Gives batches of rows, each time that it is called."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes of rows since the epoch that a table holds.

    Attributes:
        rows: One row a change: `at` (its number), `op`, `nth` (the number among equal old rows, from 1), the old identity as `k0` ..., the new row as `c0` ...
        identity: The columns by which old rows are found.
        by_values: Whether these are all columns, so that several rows may be equal.
    """

    rows: pa.Table
    identity: tuple[Column, ...]
    by_values: bool

    def count(self, op: int) -> int:
        """The number of changes of a kind."""
        return int(pc.sum(pc.equal(self.rows.column("op"), op)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class Write:
    """The write of one output to its table.

    Attributes:
        pipeline: The pipeline's name; with `output` the key of the control row.
        shape: The columns of the table.
        before: What the run saw when it looked.
        row: The control row afterwards.
        delta: The changes of a mirror; None where all rows are written.
        live: All rows of a mirror; of a table of op rows the appended ones.
        anew: Whether the table is emptied first.
        replaces: Whether a table that is there is not this output's own.
        warn: Takes what somebody else changed (W610).
    """

    pipeline: str
    output: str
    table: TableName
    shape: Shape
    before: Standing
    row: ControlRow
    live: Batches
    delta: Delta | None = None
    anew: bool = True
    replaces: bool = False
    warn: Callable[[str], None] = field(default=lambda _text: None, repr=False)

    def warn_of_another(self, changed: str) -> None:
        """Warn of what somebody else changed."""
        self.warn(f"W610: output '{self.output}': somebody else changed {changed} {self.table.shown}; it is written anew")


Way: TypeAlias = Literal["statements", "replacing"]
"""How corrections are written: as updates, or as deletions and insertions."""


Found: TypeAlias = Literal["none", "empty", "rows"]
"""The state of a table: not there, emptied, with rows."""


def write(connection: Connection, given: Write) -> None:
    """Bring a table to its epoch, in one transaction. A transaction that was lost is tried again.

    Raises:
        DatabaseError: The database refused it; nothing was written.
        CannotHold: The table's columns cannot be altered.
    """
    way: Way = "statements"
    left = TRIES
    while True:
        try:
            _write_once(connection, given, way)
        except DatabaseError as error:
            if error.trouble == "unique" and given.delta is not None and way == "statements":
                way = "replacing"  # two rows exchange a value: an update would meet the other row's
                continue
            left -= 1
            if error.trouble != "moment" or not left:
                raise
            continue
        return


def _write_once(connection: Connection, given: Write, way: Way) -> None:
    with session_of(connection, writes=True) as session:
        found = durable.step("sql:begin", lambda: _begun(session, given))
        if found == given.row != given.before.control:
            return  # the answer to an earlier COMMIT was lost
        if found is not None and found != given.before.control:
            raise connection.failed("busy", f"another run wrote {given.table.shown} meanwhile: it holds epoch {found.epoch}")
        durable.step("sql:rows", lambda: _filled(session, given, way))
        durable.step("sql:commit", session.commit)


def _begun(session: Session, given: Write) -> ControlRow | None:
    session.begin()
    if given.table.schema is not None and session.standing(given.table).kind is None:
        session.make_schema(given.table.schema)
    return session.claim(given.table, given.pipeline, given.output)


def _filled(session: Session, given: Write, way: Way) -> None:
    target = _Target(session, given)
    found = target.prepare()
    if found == "none":
        target.make()
    elif given.shape.mode == "op_rows":
        target.append(anew=given.anew and found != "empty")
    elif found == "empty" or given.anew or given.delta is None or not target.takes(given.delta):
        target.rewrite(empty=found == "empty")
    elif not target.change(given.delta, way):
        given.warn_of_another("the table")
        target.rewrite()
    session.note(given.table, given.pipeline, given.output, given.row, datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class _Target:
    """One table in a transaction."""

    session: Session
    given: Write

    @property
    def name(self) -> str:
        return self.session.named(self.given.table)

    def temporary(self, content: str) -> str:
        """The quoted name of a temporary table."""
        return quoted(temporary(self.given.table.table, content))

    @cached_property
    def place(self) -> Sequence[str]:
        """What is together the place of a row of the table `t`, which has its columns by now; nothing where nothing has the place."""
        return [f"t.{name}" for name in self.session.place(self.given.table, self.given.shape.names)]

    def takes(self, delta: Delta) -> bool:
        """Whether changes can be written one by one: of equal rows, only the place says which one it is, and a table of changes has more columns than the rows."""
        most = self.session.dialect.most_columns
        return (not delta.by_values or bool(self.place)) and (most is None or delta.rows.num_columns <= most)

    @property
    def columns(self) -> Sequence[Column]:
        return self.given.shape.columns

    def prepare(self) -> Found:
        """Give a table that is there the columns that it needs; what there is now."""
        session, given = self.session, self.given
        found = session.standing(given.table)
        if found.kind is None:
            return "none"
        if found.kind != "table" or (given.before.kind is None and not given.replaces):
            raise session.connection.failed("constraint", f"somebody made {given.table.shown} meanwhile")
        wanted = [(column.name, session.dialect.type_of(column.type)) for column in self.columns]
        fits = sorted(found.columns) == sorted(wanted)
        if fits and (given.replaces or not self._other_key()):
            return "rows"
        if not given.replaces and given.before.control is not None and given.before.control.columns == given.row.columns:
            given.warn_of_another("the columns of the table")
        return self._altered(found, wanted)

    def _other_key(self) -> bool:
        """Whether the table was made with another primary key, or for another kind of rows."""
        control = self.given.before.control
        return self.given.replaces or control is None or _beside_columns(control.columns) != _beside_columns(self.given.row.columns)

    def _altered(self, found: Standing, wanted: Sequence[tuple[str, str]]) -> Found:
        """Empty the table and let its columns come and go; drop it where its key is another one, or where the database cannot do it."""
        session, had = self.session, dict(found.columns)
        key = set(self.given.shape.primary_key)
        stays = session.dialect.alters and not self._other_key() and all(had.get(name) == type_ for name, type_ in wanted if name in key)
        try:
            if not stays:
                session.drop(self.given.table)
                return "none"
            session.execute(f"DELETE FROM {self.name}")
            for name in (name for name, type_ in found.columns if dict(wanted).get(name) != type_):
                session.execute(f"ALTER TABLE {self.name} DROP COLUMN {quoted(name)}")
            for name, type_ in (one for one in wanted if had.get(one[0]) != one[1]):
                session.execute(f"ALTER TABLE {self.name} ADD COLUMN {quoted(name)} {type_}")
        except DatabaseError as error:
            if error.trouble in ("moment", "busy"):
                raise
            message = f"the columns of {self.given.table.shown} cannot be altered: {error.reason}"
            raise CannotHold("E616", message, "drop what needs the column, such as a view, run again, and make it anew") from None
        return "empty"

    # -- all rows

    def make(self) -> None:
        """Make the table with all rows. Nobody else can see it yet, and no trigger or rule of somebody else is on it, so they go straight in."""
        self.session.make(self.given.table, self.given.shape, self.given.live())

    def rewrite(self, *, empty: bool = False) -> None:
        """Empty the table, by DELETE so that readers go on seeing the old rows, and write all rows."""
        if not empty:
            self.session.execute(f"DELETE FROM {self.name}")
        self._copy()

    def append(self, *, anew: bool) -> None:
        """Write further rows behind its own."""
        if anew:
            self.session.execute(f"DELETE FROM {self.name}")
        self._copy()

    def _copy(self) -> None:
        session = self.session
        given = temporary(self.given.table.table, "rows")
        rows = session.load(given, [Column(f"c{at}", column.type) for at, column in enumerate(self.columns)], self.given.live())
        written = session.execute(f"INSERT INTO {self.name} ({listed(self.given.shape.names)}) SELECT {self._values('r')} FROM {quoted(given)} AS r")
        if written != rows:
            raise session.connection.failed("constraint", f"{self.given.table.shown} took {written} of {rows} rows")

    def _values(self, alias: str) -> str:
        return ", ".join(f"{alias}.{quoted(f'c{at}')}" for at in range(len(self.columns)))

    # -- changes

    def change(self, delta: Delta, way: Way) -> bool:
        """Write changes; whether each statement touched as many rows as it names."""
        session = self.session
        identity = [Column(f"k{at}", column.type) for at, column in enumerate(delta.identity)]
        loaded = [Column(name, "int") for name in ("at", "op", "nth")] + identity + [Column(f"c{at}", column.type) for at, column in enumerate(self.columns)]
        session.load(temporary(self.given.table.table, "delta"), loaded, iter(delta.rows.to_batches()))
        if delta.by_values:
            self._find(delta)
        gone = (DELETE,) if way == "statements" else (DELETE, UPDATE)
        if self._delete(delta, gone) != sum(map(delta.count, gone)):
            return False
        if way == "statements" and self._update(delta) != delta.count(UPDATE):
            return False
        came = (INSERT,) if way == "statements" else (INSERT, UPDATE)
        return self._insert(delta, came) == sum(map(delta.count, came))

    @property
    def _changes(self) -> str:
        return f"{self.temporary('delta')} AS d"

    @property
    def _places(self) -> str:
        return f"{self.temporary('places')} AS p JOIN {self._changes} ON d.at = p.at"

    @property
    def _named_places(self) -> str:
        return ", ".join(f"{name} AS p{at}" for at, name in enumerate(self.place))

    def _of_places(self, alias: str) -> str:
        return ", ".join(f"{alias}.p{at}" for at in range(len(self.place)))

    def _matches(self, delta: Delta) -> str:
        """The condition that a row of the table `t` is the old row of a change `d`."""
        return " AND ".join(f"t.{quoted(column.name)} = d.k{at}" for at, column in enumerate(delta.identity))

    def _find(self, delta: Delta) -> None:
        """Note the place of each old row: the `nth` of equal rows, in the order of their places."""
        dialect = self.session.dialect
        if dialect.incomparable:
            self._find_by_text(delta)
            return
        names = [f"t.{quoted(column.name)}" for column in delta.identity]
        shown = ", ".join(f"{name} AS k{at}" for at, name in enumerate(names))
        numbered = f"SELECT {self._named_places}, {shown}, row_number() OVER (PARTITION BY {', '.join(names)} ORDER BY {', '.join(self.place)}) AS nth FROM {self.name} AS t"
        same = " AND ".join(f"n.k{at} {dialect.same} d.k{at}" for at in range(len(names)))
        self.session.execute(
            f"CREATE TEMP TABLE {self.temporary('places')} AS SELECT d.at AS at, {self._of_places('n')} FROM ({numbered}) AS n"
            f" JOIN {self._changes} ON d.op <> {INSERT} AND d.nth = n.nth AND {same}"
        )

    def _find_by_text(self, delta: Delta) -> None:
        """The same by the text of whole rows, by which PostgreSQL can hash; its JSON has no equality."""
        whole = f"ROW({', '.join(f't.{quoted(column.name)}' for column in delta.identity)})::text"
        wanted = f"ROW({', '.join(f'd.k{at}' for at in range(len(delta.identity)))})::text"
        images = f"SELECT {self._named_places}, {whole} AS image FROM {self.name} AS t"
        places = self._of_places("i")
        numbered = f"SELECT {places}, image, row_number() OVER (PARTITION BY image ORDER BY {places}) AS nth FROM ({images}) AS i"
        changes = f"SELECT d.at, d.nth, {wanted} AS image FROM {self._changes} WHERE d.op <> {INSERT}"
        self.session.execute(
            f"CREATE TEMP TABLE {self.temporary('places')} ON COMMIT DROP AS SELECT c.at AS at, {self._of_places('n')} FROM ({numbered}) AS n"
            f" JOIN ({changes}) AS c ON c.image = n.image AND c.nth = n.nth"
        )

    def _delete(self, delta: Delta, ops: Sequence[int]) -> int:
        kinds = ", ".join(map(str, ops))
        if delta.by_values:
            found = f"SELECT {self._of_places('p')} FROM {self._places} WHERE d.op IN ({kinds})"
            return self.session.execute(f"DELETE FROM {self.name} AS t WHERE ({', '.join(self.place)}) IN ({found})")
        return self.session.execute(f"DELETE FROM {self.name} AS t WHERE EXISTS (SELECT 1 FROM {self._changes} WHERE d.op IN ({kinds}) AND {self._matches(delta)})")

    def _update(self, delta: Delta) -> int:
        sets = ", ".join(f"{quoted(column.name)} = d.c{at}" for at, column in enumerate(self.columns))
        found, same = (self._places, f"({', '.join(self.place)}) = ({self._of_places('p')})") if delta.by_values else (self._changes, self._matches(delta))
        return self.session.execute(f"UPDATE {self.name} AS t SET {sets} FROM {found} WHERE d.op = {UPDATE} AND {same}")

    def _insert(self, delta: Delta, ops: Sequence[int]) -> int:
        """Insert new rows; -1 where somebody else's row has the key of one."""
        kinds = ", ".join(map(str, ops))
        if self.given.shape.primary_key and self._taken(kinds):
            return -1
        return self.session.execute(f"INSERT INTO {self.name} ({listed(self.given.shape.names)}) SELECT {self._values('d')} FROM {self._changes} WHERE d.op IN ({kinds})")

    def _taken(self, kinds: str) -> bool:
        places = {column.name: at for at, column in enumerate(self.columns)}
        same = " AND ".join(f"t.{quoted(name)} = d.c{places[name]}" for name in self.given.shape.primary_key)
        [(count,)] = self.session.fetched(f"SELECT count(*) FROM {self._changes} JOIN {self.name} AS t ON {same} WHERE d.op IN ({kinds})")
        return bool(count)


def _beside_columns(text: str) -> str:
    """The shape of a control row without its columns."""
    return text.partition('"primary_key"')[2]
