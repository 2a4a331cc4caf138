"""The properties of every bound node, source or operator: row types, ports, fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

from changelog.rows import Rows
from operators.core.row_type import OWN_HIDDEN, KeyShape, RowType

if TYPE_CHECKING:
    from pathlib import Path


class BoundNode:
    """A node of the plan, bound to the row types of its inputs.

    `fingerprint` is what decides whether the node's logic changed: canonical configuration, CXL in normal form, input types.
    """

    kind: ClassVar[str]
    explain_class: ClassVar[str]
    deterministic: bool = True
    remembers: bool = False
    """Whether its rows hold results of earlier runs, so that no other run can make them again."""
    takes_counted: bool | None = None
    """Whether it reads rows of records that are rolled back but still count behind relaxed aggregates, as these and what leads to them do; None: no input has any."""
    is_source: ClassVar[bool] = False
    is_output: ClassVar[bool] = False
    joins_inputs: ClassVar[bool] = False
    """Whether rows of several inputs come together here: a merge or a combine."""
    always_stored: ClassVar[bool] = False
    """Whether it has a table of its own, also where linear nodes have none (`persist: boundaries`)."""
    follows_clock: ClassVar[bool] = False
    """Whether its rows may change with the time of the run alone."""
    condenses: ClassVar[bool] = False
    """Whether it is expected to have far fewer rows than its inputs."""

    _frozen = False

    def __init__(self, name: str, inputs: Sequence[RowType], output: RowType, fingerprint: Mapping[str, Any]) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.output = output
        self.fingerprint = fingerprint

    def beside(self) -> Mapping[str, Any]:
        """Return what its logic depends on outside its own configuration, by the name users know."""
        return {}

    @property
    def may_reject(self) -> bool:
        """Whether a record can fail here."""
        return True

    @property
    def keeps_state(self) -> bool:
        """Whether it keeps rows of its own beside its changelog (`own_state`)."""
        return False

    @property
    def reject_shape(self) -> KeyShape:
        """The shape of the keys of its rejects, without the closing byte."""
        return self.inputs[0].key if self.inputs else self.output.key

    @property
    def fatal(self) -> frozenset[str]:
        """Categories of rejects that end a run whatever the error strategy."""
        return frozenset()

    def bound(self, changes: int, live: int) -> int | None:
        """Return an upper bound of the op rows for a number of changed and of live input rows; None: not known."""
        return changes

    @property
    def always_has_rows(self) -> bool:
        """Whether there are rows even over empty inputs (a global aggregate)."""
        return False

    def input_of(self, key: bytes, *, reject: bool) -> tuple[int, bytes]:
        """Return the number of the input that a row of this key (`reject`: a reject) comes from, and its key there."""
        return 0, key

    def port(self, name: str | None) -> RowType:
        """The row type of a port; operators with one port ignore the name."""
        return self.output

    def ports(self) -> tuple[str, ...]:
        """Names of the ports in addition to the main one."""
        return ()

    def port_rows(self, rows: Rows, name: str | None) -> Rows:
        """Return the accepted rows that belong to a port."""
        return rows

    def with_hidden(self, inputs: Sequence[RowType], wanted: frozenset[str]) -> Self:
        """Return the node over the same inputs with their hidden columns, which the planner knows once all nodes are bound.

        Args:
            inputs: The row types of the inputs, hidden columns included.
            wanted: System variables that this node or one downstream reads.
        """
        riders = {name: type_ for row in reversed(inputs) for name, type_ in row.riders.items()}
        hidden = [name for row in inputs for name in row.hidden if name not in OWN_HIDDEN]
        return self.with_attributes(inputs=tuple(inputs), output=self.output.carrying(hidden, riders))

    def with_attributes(self, **attributes: Any) -> Self:
        """Return a copy with other attributes. The copy is frozen."""
        made = copy(self)
        vars(made).update(attributes, _frozen=True)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise AttributeError(f"node '{self.name}' is bound: its '{name}' cannot change")
        super().__setattr__(name, value)

    def previewed(self, records: int, folder: Path) -> Self:
        """This operator in a preview: sources give their first records only, outputs write into a folder."""
        return self

    def describe(self) -> Sequence[str]:
        """Lines for `explain` after name, type and class."""
        return ()

    def reads_source(self) -> frozenset[str]:
        """Members of `$source` and other row-borne variables that the node's programs read."""
        return frozenset()
