"""The text of a guessed pipeline file, with comments that say what was guessed and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from errata.core.column_names import names_identity
from errata.scaffold.model import ColumnGuess, Link, SourceGuess
from errata.scaffold.names import unique

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"))
_FEW = 20
_LINE = re.compile(r"(line|pos|seq|zeile|item|nr$|no$|number)", re.IGNORECASE)
_WIDTH = 118
_BRANCH = "\n          else "


def quoted(text: str) -> str:
    """Return a text as a YAML scalar: bare where it can be, else in double quotes. A dollar sign is doubled, since one begins a reference."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    escaped = json.dumps(text.replace("$", "$$"), ensure_ascii=False)
    return re.sub("[\\x7f-\\x9f\\u2028\\u2029\\ufeff\\ud800-\\udfff\\ufffe\\uffff]", lambda found: f"\\u{ord(found.group()):04x}", escaped)


def _flow(value: Any) -> str:
    """A value as YAML in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else str(value)


def pipeline_text(name: str, sources: Sequence[SourceGuess], links: Sequence[Link], date_formats: Sequence[str], *, out: str, command: str) -> str:
    """Return the text of the pipeline file.

    Args:
        name: The name of the pipeline.
        sources: Its sources.
        links: Where values of a source are keys of another.
        date_formats: Formats of dates that are no built-in ones.
        out: The folder of outputs.
        command: What the comment at the top calls the file.
    """
    lines = [*_head(sources, command), "pipeline:", f"  name: {quoted(name)}"]
    if date_formats:
        lines.append(f"  date_formats: {_flow(list(date_formats))}  # tried ahead of 2026-03-01, 03/01/2026 and their like")
    lines += ["", "nodes:"]
    taken = [source.name for source in sources]
    ends = {}
    for source in sources:
        lines += [*_source(source), ""]
        ends[source.name] = source.name
        if source.converted:
            ends[source.name] = unique(f"{source.name}_typed", taken)
            taken.append(ends[source.name])
            lines += [*_transform(source, ends[source.name]), ""]
    for source in sources:
        node = unique(f"{source.name}_out", taken)
        taken.append(node)
        lines += [*_output(node, ends[source.name], out, source.name, form=output_form(source)), ""]
    for source in sources:
        lines += _sums(source, ends[source.name], taken, out)
    lines += _merges(sources, ends, taken, out)
    for link in links:
        lines += _combine(link, sources, ends, taken, out)
    lines += [
        "error_handling:", "  strategy: continue  # a record that cannot be read goes to the file below, the others go on; fail_fast stops at the first", "  dlq:",
        f"    path: {out}/rejected.csv",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _head(sources: Sequence[SourceGuess], file: str) -> Iterator[str]:
    command = _printable(file)
    yield "# Guessed from data by `errata init`. Check the types, the keys and the comments, then run:"
    yield f"#   errata run {command}            the first time everything, afterwards only what changed"
    yield f"#   errata log {command} {sources[0].name}_out --limit 10"
    yield "# Change a file and run again: only the rows that follow from the change are written."


def _comment(text: str, indent: str) -> Iterator[str]:
    """A comment in lines of bounded width."""
    line = f"{indent}#"
    for word in " ".join(_printable(text).split()).split(" "):
        if len(line) + len(word) + 1 > _WIDTH and line != f"{indent}#":
            yield line
            line = f"{indent}#"
        line += f" {word}"
    yield line


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)


def _doubts(source: SourceGuess) -> Iterator[str]:
    """The doubts about a source, but for its declared columns, as comments."""
    names = {f"{source.name}.{column.name}" for column in source.columns}
    for doubt in source.doubts:
        if doubt.place not in names:
            field = doubt.place.removeprefix(source.name).removeprefix(".")
            yield from _comment(f"Unsure: {field}{': ' if field else ''}{doubt.text}.", "  ")


def _source(source: SourceGuess) -> Iterator[str]:
    yield from _doubts(source)
    yield "  - type: source"
    yield f"    name: {source.name}"
    yield "    config:"
    yield f"      name: {source.name}"
    yield f"      type: {source.samples[0].format}"
    kind, value = source.matcher
    yield f"      {kind}: {_flow(value)}"
    options = source.samples[0].options
    if options:
        yield f"      options: {_flow(options)}"
    arrays = [{"path": one, "mode": "explode"} for one in source.samples[0].explode] + [{"path": one, "mode": "join"} for one in source.samples[0].join]
    if arrays:
        yield f"      array_paths: {_flow(arrays)}"
    if any(sample.dropped for sample in source.samples):
        yield "      on_unmapped: drop"
    if source.key:
        yield f"      merge: {_flow({'strategy': source.strategy, 'primary_key': list(source.key)})}"
    else:
        yield "      # merge: {strategy: snapshot, primary_key: [COLUMN]}  # with a key, a changed record is a correction of the one it was"
    if len(source.key) == 2 and source.strategy == "snapshot" and (whole := _whole_of_lines(source)):
        yield f"      # correlation_key: {whole}  # where one line of it cannot be read, all of its lines wait: docs/how-to/groups.md"
    yield "      schema:"
    for column in source.columns:
        for doubt in source.doubts:
            if doubt.place == f"{source.name}.{column.name}":
                yield from _comment(f"Unsure: {doubt.text}.", "        ")
        yield _column(column)


def _whole_of_lines(source: SourceGuess) -> str:
    """The column of a key that names an invoice or the like, where the other one numbers its lines; empty where there is none."""
    first, second = (source.column(name) for name in source.key)
    for whole, line in ((first, second), (second, first)):
        if names_identity(whole.name) and _LINE.search(line.name) and line.guess.final == "int":
            return whole.name
    return ""


def _column(column: ColumnGuess) -> str:
    guess = column.guess
    parts: dict[str, Any] = {"name": column.name}
    if column.source_name != column.name:
        parts["source_name"] = column.source_name
    parts["type"] = guess.type
    if guess.scale is not None and guess.conversion is None:
        parts["scale"] = guess.scale
    if column.optional:
        parts["optional"] = True
    notes = [guess.note] if guess.note else []
    if guess.conversion is not None:
        notes.append(f"the transform makes it {'an' if guess.final == 'int' else 'a'} {guess.final}")
    comment = f"  # {_printable('; '.join(notes))}" if notes else ""
    return f"        - {_flow(parts)}{comment}"


def _transform(source: SourceGuess, node: str) -> Iterator[str]:
    yield "  - type: transform  # other columns go on as they are"
    yield f"    name: {node}"
    yield f"    input: {source.name}"
    yield "    config:"
    yield "      cxl: |"
    for column in source.converted:
        yield f"        emit {column.name} = {(column.guess.conversion or '').replace('{}', column.name).replace(' else ', _BRANCH)}"


def output_form(source: SourceGuess) -> str:
    """Return the format of a source's output: JSON where values may be objects, which CSV cannot hold."""
    maps = any("map" in cells.kinds or cells.declared == "any" for cells in source.cells.values())
    return "json" if maps else "csv"


def _output(node: str, input_name: str, out: str, file: str, *, form: str = "csv") -> list[str]:
    return ["  - type: output", f"    name: {node}", f"    input: {input_name}", "    config:", f"      name: {node}", f"      type: {form}", f"      path: {out}/{file}.{form}"]


def _commented(lines: Sequence[str]) -> list[str]:
    return [f"  # {line.removeprefix('  ')}" for line in lines]


def _sums(source: SourceGuess, end: str, taken: list[str], out: str) -> list[str]:
    """A sum of the amounts by a column with few values, as a comment; nothing where there are no such columns."""
    amounts = [one for one in source.columns if (one.guess.final.startswith("decimal") or one.guess.money) and not source.repeats(one)]
    by = next((one for one in source.columns if one.guess.final == "string" and one.name not in source.key and _has_few(source, one)), None)
    if not amounts or by is None:
        return []
    node, output = unique(f"{source.name}_by_{by.name}", taken), unique(f"{source.name}_by_{by.name}_out", taken)
    taken += [node, output]
    lines = [
        "  - type: aggregate", f"    name: {node}", f"    input: {end}", "    config:", f"      group_by: [{by.name}]", "      cxl: |",
        "        emit records = count(*)", *(f"        emit {one.name} = sum({one.name})" for one in amounts[:3]),
        *_output(output, node, out, node),
    ]  # fmt: skip
    return ["  # To sum up, remove the signs in front of these lines:", *_commented(lines), ""]


def _merges(sources: Sequence[SourceGuess], ends: Mapping[str, str], taken: list[str], out: str) -> Iterator[str]:
    """A merge of the sources that have the same columns, as a comment."""
    alike: dict[tuple[tuple[str, str], ...], list[SourceGuess]] = {}
    for source in sources:
        alike.setdefault(tuple((one.name, one.guess.final) for one in source.columns), []).append(source)
    for group in (one for one in alike.values() if len(one) > 1):
        node = unique(f"{group[0].name}_and_{group[1].name if len(group) == 2 else 'others'}", taken)
        output = unique(f"{node}_out", [*taken, node])
        taken += [node, output]
        form = "json" if "json" in map(output_form, group) else "csv"
        lines = ["  - type: merge", f"    name: {node}", f"    inputs: [{', '.join(ends[one.name] for one in group)}]", *_output(output, node, out, node, form=form)]
        text = f"{', '.join(one.name for one in group)} have the same columns. To have their rows as one, remove the signs in front of these lines:"
        yield from (*_comment(text, "  "), *_commented(lines), "")


def _has_few(source: SourceGuess, column: ColumnGuess) -> bool:
    texts = source.cells[column.source_name].texts.drop_nulls()
    return 1 < texts.n_unique() <= max(min(_FEW, len(texts) // 2), 1)


def _combine(link: Link, sources: Sequence[SourceGuess], ends: Mapping[str, str], taken: list[str], out: str) -> list[str]:
    """A combine of two sources, as a comment."""
    source, target = (next(one for one in sources if one.name == name) for name in (link.source, link.target))
    node = unique(f"{link.source}_with_{link.target}", taken)
    output = unique(f"{node}_out", [*taken, node])
    taken += [node, output]
    form = "json" if "json" in (output_form(source), output_form(target)) else "csv"
    mine = {one.name for one in source.columns}
    others = [one for one in target.columns if one.name != link.key]
    emits = [f"        emit {one.name if one.name not in mine else f'{link.target}_{one.name}'} = {link.target}.{one.name}" for one in others]
    lines = [
        "  - type: combine", f"    name: {node}", "    input:", f"      {link.source}: {ends[link.source]}", f"      {link.target}: {ends[link.target]}", "    config:",
        f"      where: {link.source}.{link.column} == {link.target}.{link.key}", "      match: first", "      on_miss: null_fields", "      propagate_ck: driver", "      cxl: |",
        f"        emit {link.source}.*", *emits, *_output(output, node, out, node, form=form),
    ]  # fmt: skip
    text = f"{link.found:,} of the {link.values:,} values of {link.source}.{link.column} are keys of {link.target} ({link.key}). To combine both, remove the signs in front of these lines:"
    return [*_comment(text, "  "), *_commented(lines), ""]


def state_exists(folder: Path, name: str) -> bool:
    """Return whether a pipeline of this name has a state in the folder's workspace."""
    return any((place / ".errata" / name).exists() for place in (folder, *folder.parents))
