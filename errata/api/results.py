"""The rows behind a result: read from the state that the run left, when they are asked for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from errata.core.node_rows import NodeRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.inspect import snapshot
    from errata.inspect.snapshot import Snapshot
    from errata.plan.pipeline import LoadedPipeline
else:
    from changelog.lazy_imports import Lazy

    snapshot = Lazy("errata.inspect.snapshot")


class CommittedRows:
    """Reads rows of the committed epochs of a pipeline."""

    def __init__(self, pipeline: LoadedPipeline) -> None:
        self._pipeline = pipeline

    @cached_property
    def _snapshot(self) -> Snapshot:
        return snapshot.Snapshot(self._pipeline.name, self._pipeline.state, self._pipeline.plan)

    @property
    def nodes(self) -> Collection[str]:
        """The nodes of the pipeline."""
        return self._pipeline.plan.nodes

    def live(self, node: str, epoch: int | None) -> NodeRows:
        """The live rows of a node at an epoch, by default the last, in their order. They hold these rows, which keep the state of an ephemeral run."""
        description = f"live rows of '{node}'" if epoch is None else f"live rows of '{node}' at epoch {epoch}"
        return NodeRows(node, lambda: self._snapshot.ordered(node, epoch), self._snapshot.engine.to_arrow, description)

    def changes(self, node: str, epoch: int | None) -> NodeRows:
        """The op rows of a node in an epoch (0: in none), by default in all, in changelog order."""
        description = f"op rows of '{node}'" if epoch is None else f"op rows of '{node}' in epoch {epoch}" if epoch else f"no op rows of '{node}'"
        epochs = None if epoch is None else (epoch or 1, epoch)
        return NodeRows(node, lambda: _in_order(self._snapshot.changelog(node, epochs)), self._snapshot.engine.to_arrow, description)


def _in_order(rows: DataFrame) -> DataFrame:
    return rows.orderBy("_epoch", "_key", "_op")


