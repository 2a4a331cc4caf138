"""Checks of an output node before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from operators.core.binding import Binding, ConfigPath
from operators.core.registry import node_type
from operators.core.row_type import is_reserved
from operators.core.settings import NodeSpec, check_path
from operators.output.booked import BookedOutput
from operators.output.booking import booking_of, closed_program
from operators.output.config import OutputConfig, Split
from operators.output.databases import check_database, check_no_database, keyed_by_written
from operators.output.declared_columns import NOTHING, Declared, declared_columns, laid_out_columns
from operators.output.history import HistoryOutput
from operators.output.operator import Output, Place, PlainOutput, by_source_file, group_column, write_plan
from operators.output.projection import Projection, project, shown_columns
from operators.output.provenance_columns import may_have_provenance
from operators.output.times import may_have_history, times_of
from operators.output.undeclared_columns import takes_undeclared
from storage import formats
from storage.files.path_tokens import PathTemplate
from storage.formats.fixed_width.layout import Layout
from storage.formats.layouts import load_layout
from storage.formats.splitting import SplitPlan
from storage.values.types import base_type


@node_type("output", OutputConfig)
def bind(spec: NodeSpec, binding: Binding) -> Output | None:
    """Check an output and give its operator."""
    config: OutputConfig = spec.config
    if config.type not in formats.names():
        known = ", ".join(formats.names())
        binding.problems.report("E217", f"unknown format '{config.type}'", ("config", "type"), help=binding.problems.similar(config.type, formats.names()) or f"known: {known}")
    formed = config.type in formats.names()
    if config.type == "sql":
        return _in_database(spec, config, binding)
    good = [check_no_database(config, binding), _parsed_path(config.path, ("config", "path"), binding), not formed or _may_stand_there(config, binding), _with_files(config, binding), _changes_placed(config, binding)]
    good += [_sorted_by_known(config, binding), not formed or _may_be_cut(config, binding), _cut_by_known(spec, binding), _named_once(spec, binding)]
    good.append(not formed or may_have_history(config, binding))
    output = _with_layout(spec, binding)
    if output is None or not formed:
        return None
    good += [_written(spec, output, binding), _echoes_known(config, output, binding)]
    good.append(may_have_provenance(config, list(output.projection.data), binding))
    good.append(not all(good) or _changes_fit(spec, output, binding))
    return _with_closed(spec, output, binding) if all(good) else None


def _with_closed(spec: NodeSpec, output: Output, binding: Binding) -> Output | None:
    """The output with what tells its closed periods; None where nothing tells them."""
    config: OutputConfig = spec.config
    if config.closed is None or config.closed.late == "book":
        return output
    if config.closed.into or config.closed.figures:
        binding.problems.report("E477", "'into' and 'figures' belong to late: book", ("config", "closed"), help="write late: book, or remove them", on_key=True)
        return None
    program = closed_program(spec, output.projection.data, binding)
    return None if program is None else output.with_attributes(closed=program)


def _in_database(spec: NodeSpec, config: OutputConfig, binding: Binding) -> Output | None:
    """The operator of a table of a database; None where what is wrong was reported."""
    good = [check_database(config, binding), _changes_placed(config, binding), _named_once(spec, binding), may_have_history(config, binding)]
    good.append(may_have_provenance(config, [], binding))
    output = _with_layout(spec, binding) if all(good) else None
    fits = output is not None and keyed_by_written(config, list(output.projection.data), binding) and _changes_fit(spec, output, binding)
    return _with_closed(spec, output, binding) if fits and output is not None else None


def _parsed_path(path: str, place: ConfigPath, binding: Binding) -> bool:
    """Whether a path has the tokens that there are."""
    try:
        PathTemplate.parse(path)
    except formats.FormatError as error:
        binding.problems.report("E324", str(error), place)
        return False
    return True


def _written(spec: NodeSpec, output: Output, binding: Binding) -> bool:
    """Whether the format takes its options and can hold the columns."""
    config: OutputConfig = spec.config
    try:
        writer = formats.writer(config.type, config.options, write_plan(output, tuple(output.projection.data.items())))
    except formats.OptionError as error:
        binding.problems.report(error.code, str(error), ("config", *error.path), help=error.help_text, on_key=error.unknown)
        return False
    return bool(spec.partial) or _holds(writer, spec, binding)


def _holds(writer: formats.Writer, spec: NodeSpec, binding: Binding) -> bool:
    """Whether the format can hold each column, and all of them together."""
    config: OutputConfig = spec.config
    unfit, clash = writer.unfit(), writer.clash()
    if unfit is not None:
        kind = "an array" if base_type(unfit.type) == "array" else "a map"
        ways = f"exclude: [{config.mapping.get(unfit.name, unfit.name)}], or include_unmapped: false; or emit the members that are wanted, each as a column of its own"
        message = f"column '{unfit.name}' of output '{spec.name}' is {kind}, which {config.type} cannot hold"
        binding.problems.report("E328", message, _place_of(unfit.name, config), help=ways)
    if clash is not None:
        ways = r"exclude one of them, or map it to another name; \. in a name is a point of the name"
        binding.problems.report("E329", f"columns '{clash[0]}' and '{clash[1]}' cannot both be written: names nest at their points", _place_of(clash[1], config), help=ways)
    return unfit is None and clash is None


def _place_of(name: str, config: OutputConfig) -> ConfigPath:
    """Where a column gets its name."""
    return ("config", "mapping", name) if name in config.mapping else ("config", "type")


def _echoes_known(config: OutputConfig, output: Output, binding: Binding) -> bool:
    """Return whether a source has the section from which an interchange's header is made."""
    tag, section = formats.writer_type(config.type).echoes, output.echoed
    if tag is None or section is None or binding.headers.get(section) == tag or binding.input.guessed:
        return True
    known = [name for name, found in binding.headers.items() if found == tag]
    declared = f'a source declares one with envelope: {{sections: {{{section}: {{extract: {{segment: "{tag}"}}}}}}}}'
    help_text = binding.problems.similar(section, known) or (f"its sections of this kind: {', '.join(known)}" if known else declared)
    message = f"no source above this output has a section '{section}' with its {tag} segment"
    binding.problems.report("E325", message, ("config", "options", "interchange_from_doc"), help=help_text)
    return False


def _may_stand_there(config: OutputConfig, binding: Binding) -> bool:
    """Whether the path may stand in a pipeline file; a table may be in an object store."""
    place = ("config", "path")
    if not formats.writer_type(config.type).versioned:
        if config.path.lower().endswith((".gz", ".zst", ".zip", ".bz2", ".xz")):
            binding.problems.report("E327", f"'{config.path}' would hold what is not compressed", place, help="outputs are written plain: leave the last ending out")
            return False
        return check_path(config.path, place, binding.problems.report_help, binding.settings, stored="written")
    if config.write_meta:
        binding.problems.report("E348", "a table has no sidecar file: its log says who wrote it", ("config", "write_meta"), help="remove write_meta")
        return False
    if by_source_file(config):
        binding.problems.report("E324", "a table is one for all source files; {source_file} has no value here", place, help="take {source_file} out of the path; a column may hold $source.file")
        return False
    if config.path.startswith("file:"):
        return check_path(config.path.removeprefix("file:"), place, binding.problems.report_help, binding.settings)
    return "://" in config.path or check_path(config.path, place, binding.problems.report_help, binding.settings)


def _with_files(config: OutputConfig, binding: Binding) -> bool:
    """Whether the rows have the source files that the path asks for."""
    booked = config.closed is not None and config.closed.late == "book"
    if by_source_file(config) and (config.history is not None or booked or not binding.input.key.sources()):
        those = "a history" if config.history is not None else "bookings" if booked else "an aggregate"
        message = f"{{source_file}} in a path needs rows that come from single records; those of {those} do not"
        binding.problems.report("E324", message, ("config", "path"))
        return False
    return True


def _changes_placed(config: OutputConfig, binding: Binding) -> bool:
    """Whether the file of changes may be where it shall be."""
    if config.changelog is None:
        return True
    place = ("config", "changelog", "path")
    good = check_path(config.changelog.path, place, binding.problems.report_help, binding.settings, stored="written")
    return _parsed_path(config.changelog.path, place, binding) and good


def _changes_fit(spec: NodeSpec, output: Output, binding: Binding) -> bool:
    """Whether the format of the file of changes takes the columns."""
    wanted = spec.config.changelog
    if wanted is None or wanted.format != "avro":
        return True
    try:
        formats.writer("avro", {}, write_plan(output, () if spec.partial else tuple(output.projection.data.items())))
    except formats.OptionError as error:
        binding.problems.report(error.code, str(error), ("config", "changelog", "format"), help=error.help_text)
        return False
    return True


def _sorted_by_known(config: OutputConfig, binding: Binding) -> bool:
    if takes_undeclared(config, binding.input):
        return True
    wrong = [(index, key.field) for index, key in enumerate(config.sort_order) if key.field not in binding.input.data]
    for index, name in wrong:
        help_text = binding.problems.similar(name, list(binding.input.data))
        binding.problems.report("E251", f"sort field '{name}' does not reach this output", ("config", "sort_order", index), help=help_text)
    return not wrong


UNCUT = {
    "edifact": ("E323", "an edifact output is one interchange, which cannot be split"),
    "x12": ("E338", "an x12 output is one interchange, which cannot be split"),
}
"""Formats whose files cannot be split, with the code and message for a `split`."""


def _may_be_cut(config: OutputConfig, binding: Binding) -> bool:
    if config.split is None or formats.writer_type(config.type).splittable:
        return True
    code, message = UNCUT.get(config.type, ("E345", f"an output of type {config.type} is not written in parts"))
    binding.problems.report(code, message, ("config", "split"), help="remove split, or write another format")
    return False


def _cut_by_known(spec: NodeSpec, binding: Binding) -> bool:
    """Whether the parts can be named, and the field that holds groups together comes from upstream, written or not."""
    config: OutputConfig = spec.config
    if config.split is None:
        return True
    named, projection = _parts_named(config.split, binding), project(config, binding.input)
    group = config.split.group_key
    if group is None or group_column(config, binding.input, projection) is not None or "mapping" in spec.partial:
        return named
    known = list(dict.fromkeys([*binding.input.data, *projection.data]))
    help_text = binding.problems.similar(group, known)
    binding.problems.report("E251", f"group field '{group}' does not reach this output", ("config", "split", "group_key"), help=help_text)
    return False


def _parts_named(split: Split, binding: Binding) -> bool:
    try:
        SplitPlan(**split.model_dump())
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return False
    return True


def _with_layout(spec: NodeSpec, binding: Binding) -> Output | None:
    """The operator with its layout loaded; None where that was reported."""
    config: OutputConfig = spec.config
    layout_given = config.schema_ is not None and not config.declared
    key = "schema" if layout_given else "format_schema"
    given = config.schema_ if layout_given else config.format_schema
    if isinstance(given, str) and not check_path(given, ("config", key), binding.problems.report_help, binding.settings):
        return None
    try:
        layout = load_layout(given, binding.settings.folder, key, confined=not binding.settings.allow_absolute_paths)
    except formats.OptionError as error:
        binding.problems.report("E218", str(error), ("config", *error.path), on_key=error.unknown)
        return None
    projection = project(config, binding.input)
    declared = _declared(spec, projection, layout, binding, key)
    if declared is None:
        return None
    projection, place = declared.applied(projection), Place(binding.settings.folder, layout, declared)
    if config.closed is not None and config.closed.late == "book":
        booking = booking_of(spec, projection, binding.input, binding)
        return None if booking is None else BookedOutput(spec, binding.input, projection, booking, place)
    if config.history is None:
        return PlainOutput(spec, binding.input, projection, place)
    times = times_of(spec, projection, binding)
    return None if times is None else HistoryOutput(spec, binding.input, projection, times, place)


def _declared(spec: NodeSpec, projection: Projection, layout: Mapping[str, Any] | None, binding: Binding, key: str) -> Declared | None:
    """The columns whose digits the output declares, in its `schema` or in its layout; None where that was reported."""
    config: OutputConfig = spec.config
    laid_out = config.type in formats.names() and formats.writer_type(config.type).laid_out
    if not laid_out:
        return declared_columns(config.declared, projection, binding, partial_names=bool({"mapping", "exclude"} & set(spec.partial)))
    if config.declared:
        binding.problems.report("E226", f"the columns of a {config.type} output are the fields of its layout", ("config", "schema"), help="write scale: n in the layout's field")
        return None
    try:
        return laid_out_columns(Layout.of(layout, key), projection, binding, key)
    except formats.OptionError:
        return NOTHING  # reported where the format takes its options


def _named_once(spec: NodeSpec, binding: Binding) -> bool:
    """Whether no two columns are written under one name."""
    if "exclude" in spec.partial:
        return True
    config: OutputConfig = spec.config
    reserved = [name for name in config.mapping if is_reserved(name)]
    for name in reserved:
        binding.problems.report("E214", f"'{name}' is a name that changelogs use themselves", ("config", "mapping", name), help="write the field by another name", on_key=True)
    first: dict[str, str] = {}
    for shown, source, _ in shown_columns(config, binding.input):
        if first.setdefault(shown, source) != source:
            message = f"two columns would be written as '{shown}': {first[shown]} and {source}"
            binding.problems.report("E326", message, ("config", "mapping", shown), help="exclude one of them, or map it to another name")
            return False
    return not reserved
