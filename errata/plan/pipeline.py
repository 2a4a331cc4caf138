"""A planned pipeline and its state: what runs, inspections and amendments take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from errata.core.diagnostics import Diagnostic, raise_errors
from errata.plan.own_files import ProtectedFiles, check_targets
from errata.plan.plan import Plan
from errata.plan.reached_tables import reach_tables
from errata.plan.restored_nodes import with_returned
from errata.yaml import Document
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.state.location import State, temporary_state


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline that was planned without errors, and its state.

    Attributes:
        plan: Its nodes in order.
        state: Where its tables and its ledger lie.
        diagnostics: Warnings of the plan.
        document: The pipeline's file; None where the plan was derived from another plan and writes elsewhere.
    """

    plan: Plan
    state: State
    diagnostics: Sequence[Diagnostic] = ()
    document: Document | None = None

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.plan.settings.name

    def reached(self) -> LoadedPipeline:
        """The same pipeline, whose state and tables this process reaches now as its connections say. Raises PipelineErrors for a value that is not there (E602)."""
        reach_tables(self.plan, self.state)
        return self

    def open_ledger(self) -> Ledger:
        """The ledger of the state."""
        return Ledger(self.state.ledger)

    def head(self) -> Entry | None:
        """The ledger's last entry, None before the first run."""
        return self.open_ledger().head()

    def prior(self, ledger: Ledger | None = None) -> Entry | None:
        """The last entry as the next run reads it: with what it has to know of restored nodes. `ledger`: the pipeline's, where it is open."""
        known = ledger or self.open_ledger()
        return with_returned(known.head(), self.plan, known.entries)

    def protected_files(self) -> ProtectedFiles:
        """The places where nothing may be written.

        Raises:
            PipelineErrors: The pipeline writes over a file that a source reads. Loading does not look for those.
        """
        protected = ProtectedFiles(self.plan, self.state)
        raise_errors([] if self.document is None else list(check_targets(protected, self.document)))
        return protected

    def with_temporary_state(self) -> LoadedPipeline:
        """The same pipeline with a state that goes with the process."""
        return replace(self, state=temporary_state(self.name))
