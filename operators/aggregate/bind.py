"""Checks of an aggregate node, and the choice of its operator.

Plain aggregates are in `operators.aggregate.operator`, those over windows of time in `operators.aggregate.time_window.operator`.
"""

from collections.abc import Sequence

from cxl.types.types import ANY, Schema
from operators.aggregate.config import AggregateConfig
from operators.aggregate.operator import Aggregate, correlation_fields
from operators.core.binding import Binding
from operators.core.provisional import emitted
from operators.core.registry import node_type
from operators.core.row_type import RowType
from operators.core.settings import NodeSpec


def _provisional(config: AggregateConfig, inputs: Sequence[RowType]) -> Schema | None:
    found, data = emitted(config.cxl), inputs[0].data
    if found is None or not all(name in data for name in config.group_by):
        return None
    return Schema({**{name: data[name] for name in config.group_by}, **found}.items())


@node_type("aggregate", AggregateConfig, provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> Aggregate | None:
    """Check an aggregate and give its operator."""
    config: AggregateConfig = spec.config
    row = binding.input
    problem = _problem_of(spec.name, config, row)
    unknown = [name for name in config.group_by if name not in row.data]
    for name in unknown:
        place = ("config", "group_by", config.group_by.index(name))
        binding.problems.report("E240", f"group_by field '{name}' is not in the input", place, help=binding.problems.similar(name, list(row.data)))
    if problem is not None:
        code, message, key, help_text = problem
        binding.problems.report(code, message, ("config", key), help=help_text)
    fields = (*config.group_by, *(row.data if unknown else ()))  # an unknown field may be any field
    schema = row.data.with_fields(dict.fromkeys(unknown, ANY))
    program = binding.compile(spec, ("config", "cxl"), config.cxl, "aggregate", schema=schema, group_by=fields, window_bounds=config.time_window is not None)
    if program is None or unknown or problem is not None:
        return None
    if config.time_window is None:
        return Aggregate(spec, row, program)
    from operators.aggregate.time_window.operator import bind_windowed

    return bind_windowed(spec, binding, program)


def _problem_of(name: str, config: AggregateConfig, row: RowType) -> tuple[str, str, str, str] | None:
    """The problem where the input does not fit strategy or lateness: code, message, key and help."""
    omitted = ", ".join(f"'{field}'" for field in correlation_fields(row) if field not in config.group_by)
    if config.strategy == "streaming" and omitted:
        message = f"aggregate '{name}' leaves out the correlation key {omitted}, so its rows may be retracted; strategy 'streaming' cannot"
        return "E15Y", message, "strategy", "use strategy: hash or auto, or group by the whole key"
    if config.strategy == "streaming" and not row.guessed and not set(config.group_by) <= set(row.sorted_by[: len(set(config.group_by))]):
        message = "strategy 'streaming' needs an input that is sorted by the group fields"
        return "E241", message, "strategy", "declare sort_order on the source, or use strategy: auto"
    if config.allowed_lateness is not None and config.time_window is None:
        return "E243", "allowed_lateness needs a time_window", "allowed_lateness", "add time_window, or remove allowed_lateness"
    return None
