"""Where the rows of an epoch's sources come from: files, or what an amendment puts in their place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from errata.execution.epoch import Epoch
from errata.execution.local_copies import Copies
from errata.execution.rest_sources import fetch_services
from errata.plan.source_inputs import asking
from errata.plan.steps import IngestStep
from errata.state.node_writer import NodeWriter
from errata.state.run_state import Ingested
from errata.state.source_files import SourceFiles, look_at_sources
from storage.files.stores import forget_contents

if TYPE_CHECKING:
    from operators.source.answers import AnswerChanges


class Inputs(ABC):
    """The input of one epoch."""

    reads: ClassVar[bool] = True
    """Whether files or databases are read."""

    @abstractmethod
    def look(self) -> dict[str, SourceFiles]:
        """Compare the files of each source with the last epoch. Raises StorageFailed."""

    @abstractmethod
    def reasons(self, sources: Mapping[str, SourceFiles]) -> Mapping[str, str]:
        """The sources that have something new, each with what it is."""

    @abstractmethod
    def ingest(self, writer: NodeWriter, source: SourceFiles, step: IngestStep) -> Ingested:
        """Store the delta of a source that has something new. Raises Failure."""

    def counters(self) -> dict[str, Any]:
        """The facts about the input for the ledger's entry."""
        return {}


@dataclass(slots=True)
class FileInputs(Inputs):
    """The files that sources match, and the services that they read.

    Attributes:
        copies: Local copies that are read in place of staged files.
        answers: What became of the answers of databases.
    """

    epoch: Epoch
    copies: Copies = field(default_factory=lambda: Copies(None))
    answers: Mapping[str, AnswerChanges] = field(default_factory=dict)

    def look(self) -> dict[str, SourceFiles]:
        """Fetch what services and servers have, and ask databases, then compare all files with the last epoch."""
        epoch, read = self.epoch, list(self.epoch.plan.datasets.values())
        fetch_services(epoch.plan, epoch.warn)
        for one in read:
            one.fetch()
        if asking(epoch.plan):
            from errata.execution.sql_sources import ask_databases  # only sources that ask need it

            self.answers = ask_databases(epoch.plan, epoch.head)
        sources = look_at_sources(epoch.plan, epoch.head.sources if epoch.head else {}, self.answers)
        for one in read:
            one.keep()
        return sources

    def close(self) -> None:
        """Remove the spooled answers of databases, and let go of objects that were read."""
        forget_contents()
        for one in self.answers.values():
            if one.spool is not None:
                one.spool.unlink(missing_ok=True)

    def reasons(self, sources: Mapping[str, SourceFiles]) -> Mapping[str, str]:
        """The sources whose files changed."""
        return {name: one.reason for name, one in sources.items() if one.reason}

    def ingest(self, writer: NodeWriter, source: SourceFiles, step: IngestStep) -> Ingested:
        """Read what is new of a source's files."""
        if step.action == "rebuild":
            source = source.from_nothing(self.epoch.history())
        elif self.epoch.replaced is not None:
            source = replace(source, history=self.epoch.history())
        from errata.execution.ingest import ingest_files  # only runs that read need it

        return ingest_files(self.epoch, writer, source, self.copies)
