"""Sources that ask a database: all of a connection in one moment, as a run begins. Their answers are spooled beside the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import asking
from errata.plan.steps import plan_steps
from errata.rendering.event_stream import database_text
from operators.source.answers import Answer, AnswerChanges, spooled
from operators.source.file_changes import FileRecord
from operators.source.node import SourceNode
from operators.source.request import InputChanged
from storage.errors import ConnectionFault
from storage.files.discovery import content_hash
from storage.formats import FormatError
from storage.sql.connections import Connection
from storage.sql.errors import DatabaseError
from storage.sql.reading import Reading, one_moment
from storage.sql.statements import one_statement
from storage.state.entry import Entry


def ask_databases(plan: Plan, head: Entry | None, *, only_tokens: bool = False) -> dict[str, AnswerChanges]:
    """The changes of the answers of databases since the last epoch.

    Args:
        plan: The pipeline.
        head: The last epoch.
        only_tokens: Whether no more is asked than what says that nothing changed. Other sources are left out of the result.

    Raises:
        StorageFailed: A database cannot be reached or read.
    """
    nodes = asking(plan)
    for node in () if only_tokens else nodes:  # a run that was killed left its answers
        forget(cast("SourceNode", node.operator).spool)
    whole = {step.node for step in plan_steps(plan, head, {}).nodes if step.action in ("first", "rebuild")}
    known = {node.name: _known(node, head) for node in nodes if node.name not in whole}
    by_connection: dict[str, list[Node]] = {}
    for node in nodes:
        by_connection.setdefault(str(cast("SourceNode", node.operator).config.connection), []).append(node)
    found: dict[str, AnswerChanges] = {}
    for name, group in by_connection.items():
        with _failing(name, group):
            found |= _asked(plan.settings.connections[name], group, known, only_tokens=only_tokens)
    return found


def _known(node: Node, head: Entry | None) -> FileRecord | None:
    records = FileRecord.all_of(head.sources.get(node.name, {})) if head else ()
    return records[0] if records else None


def _asked_text(node: Node) -> str:
    """The query, the table and the change token of a source, as its configuration has them."""
    config = cast("SourceNode", node.operator).config
    return " ".join(filter(None, [config.query, config.table, config.change_token]))


@contextmanager
def _failing(connection: str, nodes: Sequence[Node]) -> Iterator[None]:
    """Turn errors of a database into StorageFailed."""
    names = ", ".join(f"'{node.name}'" for node in nodes)
    try:
        yield
    except DatabaseError as error:
        noun = "sources" if len(nodes) > 1 else "source"
        help_text = "state, outputs and cursors are those of the last epoch"
        raise StorageFailed(f"E608: {noun} {names}: {error}", help=help_text, again=error.trouble in ("unreachable", "moment", "busy"), redacted=f"E608: {noun} {names}: {database_text(error, *map(_asked_text, nodes))}") from None
    except ConnectionFault as fault:
        raise StorageFailed(str(fault), help=fault.help) from None
    except (FormatError, InputChanged) as error:
        raise StorageFailed(f"connection '{connection}': {error}", help=getattr(error, "help", "")) from error
    except OSError as error:
        raise StorageFailed(f"E320: {error.filename or connection}: {error.strerror or error}", help="make room where the state lies, then run again") from error


def _asked(connection: Connection, nodes: Sequence[Node], known: Mapping[str, FileRecord | None], *, only_tokens: bool) -> dict[str, AnswerChanges]:
    """Ask for the sources of one connection. A moment that was lost is begun once again."""
    connection.require_library()
    stamp = _Stamp(connection)
    untouched = {node.name: AnswerChanges((one,), known=one) for node in nodes if (one := known.get(node.name)) is not None and stamp.says_unchanged(one)}
    rest = [node for node in nodes if node.name not in untouched]
    if not rest or (only_tokens and not any(_token_of(node) for node in rest)):
        return untouched
    try:
        return untouched | _in_one_moment(connection, rest, known, stamp=stamp, only_tokens=only_tokens)
    except DatabaseError as error:
        if error.trouble != "moment":
            raise
        return untouched | _in_one_moment(connection, rest, known, stamp=stamp, only_tokens=only_tokens)


def _token_of(node: Node) -> str | None:
    return cast("SourceNode", node.operator).config.change_token


def _in_one_moment(connection: Connection, nodes: Sequence[Node], known: Mapping[str, FileRecord | None], *, stamp: _Stamp, only_tokens: bool) -> dict[str, AnswerChanges]:
    """Ask for the sources of one connection in one transaction. Where one fails, no answer stays behind."""
    found: dict[str, AnswerChanges] = {}
    with ExitStack() as unless_all, one_moment(connection) as reading:
        for node in nodes:
            before = known.get(node.name)
            token = _token(reading, node)
            if before is not None and token is not None and before.token == token:
                found[node.name] = AnswerChanges((before,), known=before)
            elif not only_tokens:
                spool = cast("SourceNode", node.operator).spool
                assert spool is not None  # a loaded project has a place for it
                unless_all.callback(forget, spool)
                found[node.name] = _with_marks(_spooled(reading, node, before, spool), before, token, stamp.text)
        unless_all.pop_all()
    return found


def _spooled(reading: Reading, node: Node, before: FileRecord | None, spool: Path) -> Answer:
    """The answer for a source. What is at fault in the pipeline is named by its place there."""
    try:
        return spooled(reading, cast("SourceNode", node.operator), before, spool)
    except InputChanged as error:
        document = node.spec.document
        if not error.place or document is None:
            raise
        span = document.span((*node.spec.path, *error.place))
        raise StorageFailed(f"{error}", help=error.help, details=(f"at {span.file}:{span.line}:{span.column}",)) from error


def _token(reading: Reading, node: Node) -> str | None:
    statement = _token_of(node)
    return None if statement is None else reading.first_row(one_statement(statement))


def _with_marks(answer: Answer, before: FileRecord | None, token: str | None, stamp: str | None) -> AnswerChanges:
    """The changes of an answer; one without changes is forgotten."""
    changes = replace(answer, record=replace(answer.record, token=token, stamp=stamp)).changes(before)
    if not changes.changed:
        forget(answer.spool)
    return changes


class _Stamp:
    """The marks of a database in a file that did not change: sizes and times of the file and its log, then their content. An empty log is none."""

    def __init__(self, connection: Connection) -> None:
        path = connection.address().path
        self._paths = [] if path is None else [path, path.with_name(path.name + ("-wal" if connection.kind == "sqlite" else ".wal"))]
        self._facts = self._looked_up()
        self._content: str | None = None

    def _looked_up(self) -> str | None:
        facts = []
        for path in self._paths:
            try:
                stat = path.stat()
            except OSError:
                facts.append("none")
            else:
                facts.append(f"{stat.st_size}@{stat.st_mtime_ns}" if stat.st_size else "none")
        return " ".join(facts) if facts and facts[0] != "none" else None

    @property
    def text(self) -> str | None:
        """Sizes, times and a hash of the content; None for a server, and for a file that somebody wrote meanwhile: its content may not be what was read."""
        if self._facts is None:
            return None
        if self._content is None:
            self._content = ",".join(content_hash(path) for path in self._paths if path.is_file() and path.stat().st_size)
        return f"{self._facts} {self._content}" if self._looked_up() == self._facts else None

    def says_unchanged(self, known: FileRecord) -> bool:
        """Whether the file is the one that an entry was read from."""
        if self._facts is None or known.stamp is None:
            return False
        facts, _, content = known.stamp.rpartition(" ")
        return facts == self._facts or (self._sizes(facts) == self._sizes(self._facts) and self.text is not None and self.text.endswith(f" {content}"))

    @staticmethod
    def _sizes(facts: str) -> list[str]:
        return [one.partition("@")[0] for one in facts.split()]


def forget(spool: Path | None) -> None:
    """Remove a spooled answer."""
    if spool is not None:
        spool.unlink(missing_ok=True)
