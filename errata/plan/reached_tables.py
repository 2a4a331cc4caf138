"""How a process reaches tables and states in object stores: by variables of its environment, which a connection gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.plan.plan import Node, Plan
from errata.project.workspace import Workspace
from storage.errors import ConnectionFault
from storage.state.location import State
from storage.stores.connections import StoreConnection, reach_by_environment
from storage.uris import is_object, kind_of


def reach(connections: Iterable[StoreConnection], workspace: Workspace | None) -> None:
    """Let tables in object stores be reached as connections say, of each kind the last one. Raises PipelineErrors for a value that is not there (E602)."""
    try:
        reach_by_environment(connections)
    except ConnectionFault as fault:
        raise PipelineErrors([Diagnostic(fault.code, fault.message, file=str((workspace and workspace.file) or ""), help=fault.help)]) from None


def reach_tables(plan: Plan, state: State) -> None:
    """Let a state, and the tables that nodes name, be reached by the connections that cover them, and by no other ones. Raises PipelineErrors (E602)."""
    reach([*(connection for *_, connection in _tables(plan)), *([] if state.connection is None else [state.connection])], plan.workspace)


def check_tables(plan: Plan, state: State) -> Iterator[Diagnostic]:
    """Yield E640 where one process would need two connections of one kind."""
    by_kind = {} if state.connection is None else {kind_of(state.root): state.connection}
    for node, path, connection in _tables(plan):
        other = by_kind.setdefault(kind_of(path), connection)
        if _reached_by(other) != _reached_by(connection):
            message = f"the table '{path}' is reached by connection '{connection.name}', and other tables or the state by '{other.name}'; a run can use one for all of them"
            yield node.spec.document.error((*node.spec.path, "config", "path"), "E640", message, help="give both connections the same settings, or one connection for both", node=node.name)


def _tables(plan: Plan) -> Iterator[tuple[Node, str, StoreConnection]]:
    """The tables in stores that nodes name, with their connections."""
    for node in plan:
        path = node.spec.config.path if getattr(node.operator, "versioned", False) else None
        connection = plan.settings.stores.covering(path) if path and is_object(path) else None
        if connection is not None and path is not None:
            yield node, path, connection


def _reached_by(connection: StoreConnection) -> tuple[object, ...]:
    """The settings that two connections must share to reach the same tables."""
    return connection.settings, connection.allow_http, connection.skip_signature
