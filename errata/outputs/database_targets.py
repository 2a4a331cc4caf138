"""The tables of databases that a run writes: whose they are, what they hold, and from which epoch on they lack rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, cast

from cxl.types.types import type_name
from errata.core.failures import StorageFailed
from errata.outputs.context import OutputContext
from errata.outputs.writer import output_columns
from errata.plan.plan import Node, Plan
from errata.plan.steps import OutputChanges
from errata.rendering.event_stream import database_text
from errata.state.source_files import files_before, undeclared
from operators.output.operator import Output
from storage.errors import ConnectionFault
from storage.sql.connections import Connection
from storage.sql.errors import CannotHold, DatabaseError, Trouble
from storage.sql.names import TableName
from storage.sql.tables import CONTROL, KEY, Column, Shape, Standing, dialect_of, look
from storage.state.entry import Entry
from storage.state.replaceable import note_replaceable, replaceable, spend_replaceable

CHAINS = "chains"
"""The member of an entry's counters with the chains that full refreshes replaced."""

_HELP: Final[Mapping[Trouble, str]] = {
    "key": "shorten the value in CXL, name other columns in primary_key, or leave _key out with key_column: none", "character": "replace the character in CXL, or take a database with the encoding UTF8",
}  # fmt: skip
"""What helps where the database refuses rows."""


def database_outputs(plan: Plan) -> list[Node]:
    """The outputs that are tables of databases."""
    return [node for node in plan.of_kind("output") if cast("Output", node.operator).in_database]


@dataclass(frozen=True)
class Looked:
    """One table before a run.

    Attributes:
        standing: What the database says.
    """

    context: OutputContext
    node: Node
    connection: Connection
    table: TableName
    standing: Standing

    @property
    def output(self) -> Output:
        """The operator."""
        return cast("Output", self.node.operator)

    @property
    def shown(self) -> str:
        """Connection and table, as the ledger and messages have them."""
        return f"{self.connection.name}:{self.table.shown}"

    def ledger_entry(self) -> dict[str, Any]:
        """The table as the ledger's entry has it."""
        return {"path": self.shown, "database": True}

    @cached_property
    def _entries(self) -> Sequence[Entry]:
        return self.context.history() if self.context.prior is not None else ()

    def chain(self) -> str:
        """The hash of the ledger's first row, which no other ledger has. It is there once an epoch is committed."""
        return str(self.context.history()[0].hash)

    @cached_property
    def _own_chains(self) -> frozenset[str]:
        """The chain of the ledger, and the chains that full refreshes replaced."""
        if not self._entries:
            return frozenset()
        first = self._entries[0]
        return frozenset([first.hash, *first.counters.get(CHAINS, ())])

    @property
    def ours(self) -> bool:
        """Whether this output of this pipeline wrote the table."""
        control = self.standing.control
        return control is not None and control.chain in self._own_chains and control.table_name == self.table.shown

    @cached_property
    def _made_by(self) -> Mapping[int, str]:
        """The execution that committed each epoch."""
        return {entry.epoch: entry.execution_id for entry in self._entries if not entry.maintains}

    def _holds(self, head: Entry) -> bool:
        """Whether this output of this pipeline wrote the table in the last epoch."""
        control = self.standing.control
        return self.ours and control is not None and (control.epoch, control.execution_id) == (head.epoch, self._made_by.get(head.epoch))

    @property
    def foreign(self) -> bool:
        """Whether there is a table that somebody else made."""
        return self.standing.kind is not None and not self.ours

    @property
    def may_replace(self) -> bool:
        """Whether a foreign table may be replaced: by this run, by the pipeline, or by an earlier run whose rows the database refused."""
        return self.context.force or self.output.config.if_exists == "overwrite" or replaceable(self.context.state, self.node.name) == self.identity

    @property
    def identity(self) -> str:
        """A hash of the database, without its passwords, and of what is there. With it, the state notes the table that may be replaced."""
        facts = [*self.connection.address().identity, self.table.shown, self.standing.kind, self.standing.columns]
        return blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Spend the permission to replace a foreign table. A write that is refused gives it back; a run that is killed does not, so that no later run replaces a table by mistake.

        An epoch that leaves a permission did not write its table, so there is none where the table holds the last epoch. This saves a request to a store.

        Raises StorageError where the state cannot be written or read.
        """
        state, output, head, allowed = self.context.state, self.node.name, self.context.head, self.foreign and self.may_replace
        if head is None or not self._holds(head):
            spend_replaceable(state, output)
        try:
            yield
        except StorageFailed:
            if allowed:
                note_replaceable(state, output, self.identity)
            raise

    def _written_by(self, entry: Entry | None) -> Sequence[Mapping[str, Any]]:
        """What an epoch wrote for the output."""
        found: Sequence[Mapping[str, Any]] = entry.nodes.get(self.node.name, {}).get("files", []) if entry is not None else []
        return found

    def shape(self, extra: Sequence[tuple[str, str]]) -> Shape:
        """The columns of the table. `extra`: names and types of the undeclared fields that the output writes."""
        config = self.output.config
        spelled = self.output.declared.spelled
        columns = [Column(name, spelled(name, type_name(type_.base))) for name, type_ in output_columns(self.output, extra)[0]]
        if config.mode == "op_rows":
            return _event_shape(columns, config.form or "two")
        if config.primary_key:
            return Shape(tuple(columns), tuple(config.primary_key))
        keyed = config.key_column != "none"
        return Shape((*columns, Column(KEY, "key")) if keyed else tuple(columns), (KEY,) if keyed else ())

    def since(self, shape: Shape) -> int | None:
        """The epoch from which on the table lacks rows; None where all rows have to be written."""
        head, control = self.context.head, self.standing.control
        if head is None or control is None or self.standing.kind != "table" or not self.ours:
            return None
        if control.chain != self._entries[0].hash or control.columns != shape.text:
            return None
        if self._made_by.get(control.epoch) != control.execution_id:
            self.context.warn(f"W610: output '{self.node.name}': {self.shown} holds an epoch that this state does not know; it is written anew")
            return None
        return control.epoch if self.context.followed_from <= control.epoch else None

    def intact(self, head: Entry) -> bool:
        """Whether the table holds the last epoch."""
        control = self.standing.control
        if self.standing.kind != "table" or control is None or not self._holds(head) or control.chain != self._entries[0].hash:
            return False
        return control.columns == self.shape(undeclared(self.context.plan, self.node, files_before(head))).text

    def moved(self, head: Entry) -> bool:
        """Whether the last epoch wrote the output elsewhere."""
        entries = self._written_by(head)
        return bool(entries) and entries[0]["path"] != self.shown

    def refuse(self) -> None:
        """Raise StorageFailed for a foreign table that may not be replaced (E610), and for names that the database cannot hold (E614)."""
        kind = self.standing.kind
        if kind not in ("table", None):
            raise StorageFailed(f"E610: output '{self.node.name}': {self.shown} is {'an' if kind.startswith('i') else 'a'} {kind}, which is never written to", help="name another table")
        if self.foreign and not self.may_replace:
            help_text = "--force or if_exists: overwrite replaces it"
            raise StorageFailed(f"E610: output '{self.node.name}': the table {self.shown} is there and was not written by this pipeline", help=help_text)
        self.refuse_columns(self.shape(()))

    def refuse_columns(self, shape: Shape) -> None:
        """Raise StorageFailed (E614) for names that the database cannot hold, and for a primary key that it cannot compare."""
        for message, help_text in (*self._wrong_table(), *self._wrong_names(shape), *self._wrong_key(shape)):
            raise StorageFailed(f"E614: output '{self.node.name}': {message}", help=help_text)

    def _wrong_table(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the name of the table, and the ways out."""
        schema, kind, dialect = self.table.schema, self.connection.kind, dialect_of(self.connection)
        schemas = dialect.schemas
        if self.table.table.casefold() == CONTROL:
            yield f"{self.shown} is the table that notes what each output holds", "name another table"
        if dialect.own_tables is not None and dialect.own_tables.fullmatch(self.table.table):
            yield f"{kind} keeps the name '{self.table.table}' for itself", "name another table"
        if dialect.own_schemas is not None and schema is not None and dialect.own_schemas.fullmatch(schema):
            yield f"{kind} keeps the schema '{schema}' for itself", "name another schema"
        if schemas is not None and schema is not None and schema.casefold() not in schemas:
            yield f"a file of {kind} has no schema '{schema}'", f"write table: {self.table.table}"

    def _wrong_names(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """What is wrong with the names of columns, and with the length of all names, and the ways out."""
        dialect, seen, help_text = dialect_of(self.connection), dict[str, str](), "give the column another name with mapping"
        for name in (*shape.names, self.table.table, *filter(None, [self.table.schema])):
            if dialect.longest_name is not None and len(name.encode()) > dialect.longest_name:
                yield f"the name '{name}' is longer than {dialect.longest_name} bytes; the database would cut it", "write a shorter one; mapping gives a column another name"
        if dialect.most_columns is not None and len(shape.columns) > dialect.most_columns:
            yield f"a table of {self.connection.kind} has {dialect.most_columns} columns at most, not {len(shape.columns)}", "leave some of them out with exclude"
        for name in shape.names:
            if not name or "\0" in name:
                yield f"no database has a column named {name!r}", help_text
            if name in dialect.reserved:
                yield f"{self.connection.kind} has a system column '{name}' in each table", help_text
            folded = name.casefold() if dialect.folds_case else name
            if folded in seen:
                yield f"columns '{seen[folded]}' and '{name}' are one name to the database", "give one of them another name with mapping"
            seen[folded] = name

    def _wrong_key(self, shape: Shape) -> Iterator[tuple[str, str]]:
        """Columns of the primary key that the database cannot compare, and the way out."""
        dialect = dialect_of(self.connection)
        for one in shape.columns:
            if one.name in shape.primary_key and dialect.type_of(one.type) in dialect.incomparable:
                message = f"column '{one.name}' of the primary key is {dialect.type_of(one.type)}, which {self.connection.kind} cannot compare"
                yield message, "name columns of other types, or leave primary_key out: the column _key is then the key"


def _event_shape(columns: Sequence[Column], form: str) -> Shape:
    """The columns of a table of op rows."""
    data = list(columns) if form not in ("single", "debezium") else [Column("event", "any")]
    letters = form in ("flink", "debezium", "single")
    names = {column.name for column in data}
    system = [("offset", "int"), ("op", "string" if letters else "int"), ("system_time", "date_time"), ("event_time", "date_time")]
    shown = [Column(f"_{name}" if name in names else name, type_) for name, type_ in system]
    return Shape((*shown, *data), (shown[0].name,), "op_rows", form)


@dataclass(frozen=True, slots=True)
class DatabaseTargets:
    """The tables of one run by output."""

    tables: Mapping[str, Looked]

    @classmethod
    def of(cls, context: OutputContext) -> DatabaseTargets:
        """Look at the tables of all outputs. Raises StorageFailed where a database cannot be reached."""
        found = {}
        for node in database_outputs(context.plan):
            config = cast("Output", node.operator).config
            connection, table = context.plan.settings.connections[str(config.connection)], TableName.parse(str(config.table))
            try:
                standing = look(connection, table, context.plan.settings.name, node.name)
            except DatabaseError as error:
                redacted = f"E608: output '{node.name}': {database_text(error, table.shown)}"
                raise StorageFailed(f"E608: output '{node.name}': {error}", again=error.trouble in ("unreachable", "moment", "busy"), redacted=redacted) from None
            except ConnectionFault as fault:
                raise StorageFailed(str(fault), help=fault.help) from None
            found[node.name] = Looked(context, node, connection, table, standing)
        return cls(found)

    def refuse_foreign(self) -> None:
        """Raise StorageFailed for tables that may not be replaced."""
        for one in self.tables.values():
            one.refuse()

    def changes(self, head: Entry) -> OutputChanges:
        """The outputs whose tables are others than in the last epoch, and those whose tables do not hold it."""
        moved = frozenset(name for name, one in self.tables.items() if one.moved(head))
        return OutputChanges(moved, frozenset(name for name, one in self.tables.items() if not one.intact(head)))


@contextmanager
def failing(looked: Looked, epoch: int) -> Iterator[None]:
    """Turn errors of a database after the commit into StorageFailed: the epoch stands, the table holds an earlier one."""
    output, control = looked.node.name, looked.standing.control if looked.ours else None
    holds = f"still holds epoch {control.epoch}" if control is not None else "holds no epoch"
    status = f"epoch {epoch} is committed; {looked.table.shown} {holds}: run again"
    try:
        yield
    except DatabaseError as error:
        redacted = f"E613: output '{output}': {database_text(error, looked.table.shown)}: {status}"
        raise StorageFailed(f"E613: output '{output}': {error}: {status}", help=_HELP.get(error.trouble, ""), again=error.trouble in ("unreachable", "moment", "busy"), redacted=redacted) from None
    except CannotHold as error:
        raise StorageFailed(f"{error.code}: output '{output}': {error.message}: {status}", help=error.help) from None
    except ConnectionFault as fault:
        raise StorageFailed(f"{fault}: {status}", help=fault.help) from None


