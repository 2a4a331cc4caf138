"""How a process reaches tables and states in object stores: by variables of its environment, which a connection gives."""

from __future__ import annotations

from collections.abc import Iterator

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.plan.plan import Plan
from errata.project.workspace import Workspace
from storage.errors import ConnectionFault
from storage.state.location import State
from storage.stores.connections import StoreConnection, reach_by_environment
from storage.uris import is_object, kind_of


def reach(connection: StoreConnection, workspace: Workspace) -> None:
    """Let tables in an object store be reached as a connection says. Raises PipelineErrors for a value that is not there (E602)."""
    try:
        reach_by_environment(connection)
    except ConnectionFault as fault:
        raise PipelineErrors([Diagnostic(fault.code, fault.message, file=str(workspace.file or ""), help=fault.help)]) from None


def reach_tables(plan: Plan, state: State, workspace: Workspace) -> Iterator[Diagnostic]:
    """Let the tables that nodes name be reached by the connections that cover them. Yields E640 where one process would need two of one kind."""
    by_kind = {} if state.connection is None else {kind_of(state.root): state.connection}
    for node in plan:
        path = node.spec.config.path if getattr(node.operator, "versioned", False) else None
        connection = plan.settings.stores.covering(path) if path and is_object(path) else None
        if connection is None or path is None:
            continue
        other = by_kind.setdefault(kind_of(path), connection)
        if other.settings != connection.settings:
            message = f"the table '{path}' is reached by connection '{connection.name}', and other tables or the state by '{other.name}'; a run can use one for all of them"
            yield node.spec.document.error((*node.spec.path, "config", "path"), "E640", message, help="give both connections the same settings, or one connection for both", node=node.name)
    for connection in by_kind.values():
        reach(connection, workspace)
