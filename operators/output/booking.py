"""The `late: book` of an output's closed periods, and the checks of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changelog.lazy_imports import pa
from cxl import CxlFailure, Program
from cxl.runtime.context import Context
from cxl.runtime.interpret import evaluate
from cxl.types.types import INT, STRING, Kind, Schema, Type, type_name
from operators.core.binding import Binding, ConfigPath
from operators.core.settings import NodeSpec
from operators.output.config import Closed, OutputConfig
from operators.output.projection import Projection
from storage import formats
from storage.values.coerce import coerce
from storage.values.json_text import canonical

if TYPE_CHECKING:
    from operators.core.row_type import RowType

PREFIX: Final = "booked."
KIND, EPOCH = f"{PREFIX}as", f"{PREFIX}epoch"
"""The columns that say how a row was booked, and in which epoch; null in rows that were not booked."""
ADDITIVE = frozenset({Kind.INT, Kind.DECIMAL})
UNNAMING = frozenset({Kind.FLOAT, Kind.ARRAY, Kind.MAP})
"""Kinds of columns whose values name no period."""


@dataclass(frozen=True, slots=True)
class Booking:
    """How changes of closed periods are booked.

    Attributes:
        closed: Tells the rows of closed periods.
        into: The open period: a value for each column that names it.
        figures: The columns that add up.
    """

    closed: Program
    into: Mapping[str, Any]
    figures: tuple[str, ...]

    @property
    def originals(self) -> dict[str, str]:
        """The columns with the period that a booked row corrects, by the columns that name its own."""
        return {name: PREFIX + name for name in self.into}

    def types(self, shown: Mapping[str, Type]) -> dict[str, Type]:
        """The columns that booking adds behind the shown ones."""
        return {KIND: STRING.or_null, **{original: shown[name].or_null for name, original in self.originals.items()}, EPOCH: INT.or_null}

    def extended(self, projection: Projection) -> Projection:
        """The columns of a projection, and behind them the columns of booked rows."""
        return Projection((*projection.written, *((name, "", type_) for name, type_ in self.types(projection.data).items())))

    def fingerprint(self) -> Mapping[str, Any]:
        """The settings of the booked rows, for the node's fingerprint."""
        return {"closed": {"when": self.closed.normal_text(), "into": {name: repr(value) for name, value in self.into.items()}, "figures": list(self.figures)}}


def place_of(spec: NodeSpec) -> ConfigPath:
    """Where the predicate for closed periods stands."""
    written = None if spec.document is None else spec.document.node_at((*spec.path, "config", "closed"))
    return ("config", "closed") if getattr(written, "entries", None) is None else ("config", "closed", "when")


def closed_program(spec: NodeSpec, schema: Schema, binding: Binding) -> Program | None:
    """The predicate for rows of closed periods; None where a problem was reported."""
    config: OutputConfig = spec.config
    place = place_of(spec)
    assert config.closed is not None  # the callers looked
    if config.history is not None or config.mode == "op_rows":
        binding.problems.report("E476", f"{'a history' if config.history is not None else 'a table of op rows'} has no closed periods: it keeps what was published", place, help="remove closed, or declare it at an output of live rows")
        return None
    program = binding.compile(spec, place, config.closed.when, "predicate", schema=binding.input.data if binding.input.guessed else schema)
    if program is not None and not program.deterministic:
        binding.problems.report("E476", "'closed' reads the clock or the run: a period would close by itself", place, help="name the period, and move it on by an edit")
        return None
    return program


def booking_of(spec: NodeSpec, projection: Projection, row: RowType, binding: Binding) -> Booking | None:
    """How an output books changes of closed periods; None where a problem was reported."""
    program = closed_program(spec, projection.data, binding)
    closed = spec.config.closed
    if binding.input.guessed:
        return None  # what is wrong above was reported
    good = [_may_book(spec.config, projection, row, binding), _figures_known(closed, projection, program, binding), _written_order(spec.config, projection, row, binding)]
    into = _into(closed, projection, binding)
    if program is None or into is None or not all(good):
        return None
    booking = Booking(program, into, tuple(dict.fromkeys(closed.figures)))
    return booking if _stays_open(booking, binding) and _free(booking, projection, binding) else None


def _report(binding: Binding, message: str, place: ConfigPath, help_text: str | None = None) -> bool:
    binding.problems.report("E477", message, place, help=help_text)
    return False


def _may_book(config: OutputConfig, projection: Projection, row: RowType, binding: Binding) -> bool:
    """Whether the output has a place for booked rows."""
    if config.primary_key:
        message = "a booked row has the key of the row that it corrects, so the two cannot share a primary key"
        return _report(binding, message, ("config", "primary_key"), "leave primary_key out: the table has a column _key of its own")
    if formats.writer_type(config.type).echoes is not None and "interchange_from_doc" in config.options:
        return _report(binding, "a booked row belongs to no interchange", ("config", "options", "interchange_from_doc"), "write the interchange header out")
    return True


def _figures_known(closed: Closed, projection: Projection, program: Program | None, binding: Binding) -> bool:
    """Whether figures are named, are written, add up exactly, and tell no period."""
    shown, good = projection.data, True
    additive = [name for name, type_ in shown.items() if type_.kind in ADDITIVE]
    if not closed.figures:
        help_text = f"of type int or decimal: {', '.join(additive)}" if additive else "no column is an int or a decimal"
        return _report(binding, "a difference is booked of columns that add up, and 'figures' names none", ("config", "closed", "late"), help_text)
    for at, name in enumerate(closed.figures):
        place = ("config", "closed", "figures", at)
        if name not in shown:
            good = _report(binding, f"figure '{name}' is not written", place, binding.problems.similar(name, additive) or f"known: {', '.join(additive)}")
        elif shown[name].kind not in ADDITIVE:
            message = f"figure '{name}' is of type {type_name(shown[name].base)}, whose differences do not add up exactly"
            good = _report(binding, message, place, "make it a decimal: type: decimal in the source, or .to_decimal(2) in CXL")
        elif name in closed.into or (program is not None and name in program.reads):
            good = _report(binding, f"'{name}' names the period and is a figure", place, "a booked row has a difference there, which names no period")
    return good


def _written_order(config: OutputConfig, projection: Projection, row: RowType, binding: Binding) -> bool:
    """Whether booked rows have what the output is sorted by."""
    written = {source for _, source, _ in projection.written}
    wrong = [(at, key.field) for at, key in enumerate(config.sort_order) if key.field in row.data and key.field not in written]
    for at, name in wrong:
        _report(binding, f"the rows are sorted by '{name}', which is not written, so booked rows have no place", ("config", "sort_order", at), "write it, or sort by a written column")
    return not wrong


def _into(closed: Closed, projection: Projection, binding: Binding) -> dict[str, Any] | None:
    """The values of the open period by column; None where a problem was reported."""
    if not closed.into:
        _report(binding, "late: book needs 'into', the period that is open", ("config", "closed", "late"), 'such as into: { month: "2026-10" }')
        return None
    found = {name: _value(name, value, projection.data, binding) for name, value in closed.into.items()}
    return None if any(value is None for value in found.values()) else found


def _value(name: str, value: str | int | bool, shown: Schema, binding: Binding) -> Any:
    """The value of one column of the open period; None where a problem was reported."""
    place = ("config", "closed", "into", name)
    type_ = shown.get(name)
    if type_ is None:
        _report(binding, f"'{name}', which names the period, is not written", place, binding.problems.similar(name, list(shown)) or f"known: {', '.join(shown)}")
        return None
    if type_.kind in UNNAMING:
        _report(binding, f"'{name}' is of type {type_name(type_.base)}, which names no period", place)
        return None
    if type_.is_dynamic:
        return canonical(value)
    text = value if isinstance(value, str) else canonical(value)
    made = coerce(pa.array([text], pa.string()), type_name(type_)).values[0].as_py()
    if made is None:
        _report(binding, f"'{text}' is no {type_name(type_.base)}, as column '{name}' is", place)
    return made


def _stays_open(booking: Booking, binding: Binding) -> bool:
    """Whether the period that is booked into is open, as far as its own columns tell."""
    if not booking.closed.reads & {*booking.into}:
        names = ", ".join(sorted(booking.closed.reads))
        return _report(binding, "'into' names no column that 'when' looks at", ("config", "closed", "into"), f"it looks at {names}" if names else "")
    if booking.closed.reads_system or not booking.closed.reads <= {*booking.into}:
        return True  # the rows tell
    try:
        is_closed = evaluate(booking.closed, dict(booking.into), Context())
    except CxlFailure:
        return True
    period = ", ".join(f"{name} {value}" for name, value in booking.into.items())
    return is_closed is not True or _report(binding, f"'into' names a closed period: {period}", ("config", "closed", "into"), "name the period that is open now")


def _free(booking: Booking, projection: Projection, binding: Binding) -> bool:
    """Whether no column has a name that booked rows need."""
    taken = [name for name in booking.types(projection.data) if name in projection.data]
    return not taken or _report(binding, f"a column is written as '{taken[0]}', which is a column of booked rows", ("config", "closed"), "exclude it, or map it to another name")
