"""Values that CXL's system variables have, and the variables that the programs of a node may read.

A variable that no state node writes is a constant. A written variable is a metadata column downstream: `_pipeline:total`, `_source:label`, `_record:score`.
After a merge or combine, source variables carry the name of the input: `_source:left.label`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import F
from cxl.types.types import ANY, STRING, Type
from operators.core.provenance import FileLabels
from operators.core.row_type import RECORD, RowType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PIPELINE, SOURCE = "_pipeline:", "_source:"
"""Prefixes of metadata columns with a pipeline or source variable, as the record's own pass through a state node left it."""
RIDERS: Mapping[str, str] = {"pipeline": PIPELINE, "source": SOURCE, "record": RECORD}
"""Prefix by scope."""


@dataclass(frozen=True, slots=True)
class InvalidRead:
    """Why a node cannot read a declared variable. `labels` are further places for the diagnostic."""

    code: str
    message: str
    help: str
    labels: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeVariables:
    """The variables of the programs of one node.

    `types` by namespace (`vars`, `pipeline`, `source`, `record`); `qualified`: source variables by the input of a merge or
    combine above; `unexposed`: dotted names that a composition did not opt in to; `misreads` by dotted name; `constants`: values
    by dotted name as they are where nothing was written.
    """

    types: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    qualified: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    unexposed: frozenset[str] = frozenset()
    misreads: Mapping[str, InvalidRead] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict)

    def of(self, namespace: str) -> Mapping[str, Type]:
        """The variables of a namespace."""
        return self.types.get(namespace, {})

    def taking(self, namespace: str, names: Iterable[str]) -> NodeVariables:
        """Return the same with further variables of a namespace, of type any."""
        return replace(self, types={**self.types, namespace: {**dict.fromkeys(names, ANY), **self.of(namespace)}})


def rider(scope: str, name: str) -> str:
    """The column in which a written variable rides."""
    return RIDERS[scope] + name


def dotted(column_name: str) -> str | None:
    """Return the dotted name of the variable in a metadata column: `pipeline.total`; None for other columns."""
    found = next((scope for scope, prefix in RIDERS.items() if column_name.startswith(prefix)), None)
    return None if found is None else f"{found}.{column_name.removeprefix(RIDERS[found])}"


def riding(row: RowType) -> dict[str, str]:
    """Return the variables in metadata columns: dotted name to column."""
    return {name: column_name for column_name in row.riders if (name := dotted(column_name)) is not None}


def qualifying(columns: Iterable[str], qualifier: str) -> dict[str, str]:
    """How source variables among the columns are renamed where their row enters a merge or combine as input `qualifier`."""
    own = (name for name in columns if name.startswith(SOURCE) and "." not in name)
    return {name: f"{SOURCE}{qualifier}.{name.removeprefix(SOURCE)}" for name in own}


DOCUMENT = "_doc"
Documents = Mapping[str, Mapping[str, Type]]
"""Type of each field of each section."""


def together(documents: Iterable[Documents]) -> dict[str, dict[str, Type]]:
    """The sections of several sources at once."""
    found: dict[str, dict[str, Type]] = {}
    for document in documents:
        for section, fields in document.items():
            known = found.setdefault(section, {})
            known.update({name: type_ if known.get(name, type_) == type_ else STRING for name, type_ in fields.items()})
    return found


def document_fields(reads: Iterable[str]) -> dict[str, Column]:
    """The text of each `doc.section.field` that is read; null where the document lacks it."""
    return {name: F.get_json_object(DOCUMENT, f"$.{name.removeprefix('doc.')}") for name in reads if name.startswith("doc.")}


def _unchanged(frame: DataFrame) -> DataFrame:
    return frame


@dataclass(frozen=True, slots=True)
class RunValues:
    """The values of system variables in a run: dotted name to Python value (`pipeline.batch_id`, `vars.rate`).

    Attributes:
        labels: Files by the file position in a key.
        own: Values that single nodes see, by node.
        settle: Computes a small frame once, so that the plan built on it stays small.
        epoch: The number of the run's epoch; 0 outside of a run.
        in_tasks: Whether all rows are computed, and tasks of the engine may hold them in Python, because that is near and the rows are not too many.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    labels: FileLabels = field(default_factory=FileLabels)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settle: Callable[[DataFrame], DataFrame] = field(default=_unchanged, compare=False)
    epoch: int = 0
    in_tasks: bool = False

    def of(self, node: str) -> RunValues:
        """The values that a node sees."""
        return replace(self, values={**self.values, **self.own[node]}) if node in self.own else self

    @classmethod
    def none(cls) -> RunValues:
        """No values: every variable is null."""
        return cls()
