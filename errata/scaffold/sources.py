"""Sources guessed from samples: files of one shape are one source."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from changelog.lazy_imports import np, pl
from errata.core.failures import StorageFailed
from errata.scaffold.columns import guess_of
from errata.scaffold.keys import Key, keys_of
from errata.scaffold.model import Cells, ColumnGuess, Doubt, Guess, Link, Sample, SourceGuess
from errata.scaffold.names import column_names, common_name, common_prefix, plain_name, unique
from storage import formats
from storage.files.errors import FormatError
from storage.formats import ArrayPath, Column, ReadPlan
from storage.formats.tasks import read_task, tasks_of
from storage.values.coerce import coerce

_ALIKE = 0.8
"""The share of common fields from which documents are of one shape."""
_MOST_CHECKED = 4 << 30
"""Bytes of files in which a key is checked to the last record."""
_MOST_KEYS = 100_000_000
_LINKED = 0.9
_NUMBERS = ("int", "float", "decimal")


def grouped(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Return the samples by their shape, in the order in which they came."""
    groups: list[list[Sample]] = []
    for sample in samples:
        found = next((group for group in groups if _is_alike(group, sample)), None)
        if found is None:
            groups.append([sample])
        else:
            found.append(sample)
    return groups


def _is_alike(group: Sequence[Sample], sample: Sample) -> bool:
    first = group[0]
    if (first.format, tuple(first.explode), tuple(first.join)) != (sample.format, tuple(sample.explode), tuple(sample.join)):
        return False
    known = next((one for one in group if not one.plain), first)
    if _compared(known, without_encoding=known.plain or sample.plain) != _compared(sample, without_encoding=known.plain or sample.plain):
        return False
    mine, other = set(first.cells), set(sample.cells)
    if first.format in ("json", "xml"):
        return len(mine & other) >= _ALIKE * len(mine | other)
    return mine == other


def _compared(sample: Sample, *, without_encoding: bool) -> dict[str, Any]:
    return {name: value for name, value in sample.options.items() if not (without_encoding and name == "encoding")}


def source_of(group: Sequence[Sample], folder: Path, taken: Sequence[str]) -> SourceGuess:
    """Return the guessed source of files of one shape.

    Args:
        group: The samples.
        folder: The folder of the pipeline.
        taken: The names of other nodes.
    """
    known = next((one for one in group if not one.plain), group[0])
    group = [replace(one, options=known.options) for one in group]
    name = unique(_name(group), taken)
    cells = _together(group)
    day_first = group[0].options.get("delimiter") == ";"
    guesses = _guesses(cells, day_first=day_first)
    names = column_names(list(cells))
    columns = [ColumnGuess(names[field], field, guesses[field], optional=_is_optional(group, field, one)) for field, one in cells.items()]
    found = SourceGuess(name, group, columns, cells, _matcher([one.path for one in group], folder))
    found.doubts.extend(_doubts(found))
    _choose_key(found)
    return found


def _guesses(cells: Mapping[str, Cells], *, day_first: bool) -> dict[str, Guess]:
    """The guess of each field. The sign before decimals that some fields show decides where others leave it open; without one, dates such as 31.01.2026 do."""
    found = {field: guess_of(field, one, day_first=day_first) for field, one in cells.items()}
    marks = {one.mark for one in found.values() if one.mark}
    mark = marks.pop() if len(marks) == 1 else ""
    leans = day_first or any(one.form.startswith("%d.%m.") for one in found.values())
    if not mark and leans == day_first:
        return found
    unsure = [field for field, one in found.items() if not one.mark and one.final in _NUMBERS and cells[field].kinds == {"text"}]
    return {**found, **{field: guess_of(field, cells[field], day_first=leans, mark=mark) for field in unsure}}


def _name(group: Sequence[Sample]) -> str:
    """The name of the source: that of the files, or that of the records in files with several kinds of them."""
    first = group[0]
    default = plain_name(first.kind or first.path.parent.name, "records")
    return common_name([one.path.name for one in group], default) if first.alone else default


def _together(group: Sequence[Sample]) -> dict[str, Cells]:
    """The values of all samples by field."""
    if len(group) == 1:
        return dict(group[0].cells)
    made = {}
    for field in dict.fromkeys(field for sample in group for field in sample.cells):
        parts = [sample.cells.get(field) or Cells(pl.Series("", [None] * sample.records, dtype=pl.String), frozenset()) for sample in group]
        declared = {one.declared for sample in group if (one := sample.cells.get(field)) is not None}
        kinds = frozenset().union(*(one.kinds for one in parts))
        made[field] = Cells(pl.concat([one.texts for one in parts]), kinds, declared.pop() if len(declared) == 1 else None, sum(one.occurs for one in parts))
    return made


def _is_optional(group: Sequence[Sample], field: str, cells: Cells) -> bool:
    """Whether files may lack a field: some do, or some records of a document do."""
    if group[0].format in ("json", "xml"):
        return cells.occurs < sum(one.records for one in group) or any(field not in one.cells for one in group)
    return any(field not in one.cells for one in group)


def _doubts(source: SourceGuess) -> Iterator[Doubt]:
    yield from _of_files(source)
    yield from _of_bad_records(source)
    if not source.whole:
        yield Doubt(source.name, f"only the first {source.records:,} records were looked at: later ones may have other values")
    elif source.records == 0:
        yield Doubt(source.name, "no file has a record, so that all columns are strings and there is no key")
    for column in source.columns if source.records else ():
        yield from (Doubt(f"{source.name}.{column.name}", text) for text in column.guess.doubts)


def _of_files(source: SourceGuess) -> Iterator[Doubt]:
    """The doubts that the files leave, each once, with the number of its files."""
    found = Counter((one.place, one.text) for sample in source.samples for one in sample.doubts)
    for (place, text), count in found.items():
        where = f"{count} of {len(source.samples)} files: " if count > 1 and len(source.samples) > 1 else ""
        yield Doubt(f"{source.name}.{place}" if place else source.name, f"{where}{text}")


def _of_bad_records(source: SourceGuess) -> Iterator[Doubt]:
    """The records of each file that cannot be read."""
    for sample in source.samples:
        where = f"{sample.path.name}: " if len(source.samples) > 1 else ""
        bad, reason = sample.malformed
        if bad:
            yield Doubt(source.name, f"{where}{bad:,} of {sample.records + bad:,} records cannot be read ({reason}): {'it is' if bad == 1 else 'they are'} rejected")


# -- files


def _matcher(paths: Sequence[Path], folder: Path) -> tuple[str, Any]:
    """`path` for one file; `glob` where a pattern matches several files and no others; else `paths`."""
    names = [path.relative_to(folder).as_posix() for path in paths]
    if len(names) == 1:
        return "path", names[0]
    pattern = pattern_of(names)
    parent = paths[0].parent
    if pattern is not None and len({path.parent for path in paths}) == 1:
        found = sorted(entry.name for entry in os.scandir(parent) if fnmatch.fnmatchcase(entry.name, pattern.rsplit("/", 1)[-1]) and entry.is_file())
        if found == sorted(path.name for path in paths):
            return "glob", pattern
    return "paths", names


def pattern_of(names: Sequence[str]) -> str | None:
    """Return the pattern that names have in common: it is cut at words and numbers, not inside of them. None where they have nothing in common."""
    prefix = common_prefix(names)
    suffix = common_prefix([name[len(prefix) :][::-1] for name in names])[::-1]
    for kind in (str.isdigit, str.isalpha):
        while kind(prefix[-1:]) and any(kind(name[len(prefix) : len(prefix) + 1]) for name in names):
            prefix = prefix[:-1]
        while kind(suffix[:1]) and any(kind(name[len(name) - len(suffix) - 1 :][:1]) for name in names):
            suffix = suffix[1:]
    return None if not suffix or any(sign in prefix + suffix for sign in "*?[]{}") else f"{prefix}*{suffix}"


# -- keys


def _choose_key(source: SourceGuess) -> None:
    """Give the source the likeliest key that holds in all of its records, and say what is unsure about it."""
    if not source.records:
        return
    across = "" if len(source.samples) == 1 else _across_files(source)
    if across:
        source.doubts.append(Doubt(source.name, across))
        return
    for key in keys_of(source.columns, source.cells):
        if _holds(source, key):
            source.key = key.columns
            if key.doubt:
                source.doubts.append(Doubt(source.name, key.doubt))
            return
    source.doubts.append(Doubt(source.name, "no likely column or pair of columns (identities, dates; in 20 records or more also texts) is unique and never null: the source has no primary key, and a corrected record is one that goes and one that comes"))


def _across_files(source: SourceGuess) -> str:
    """Make the source one of deliveries where each file has a key that other files repeat; return what is said about it, empty where it is not so."""
    if next(iter(keys_of(source.columns, source.cells)), None) is not None:
        return ""
    inside = [{key.columns for key in keys_of(source.columns, sample.cells)} if set(sample.cells) == set(source.cells) else set() for sample in source.samples if sample.records]
    shared = set.intersection(*inside) if inside else set()
    chosen = next((key for key in keys_of(source.columns, source.samples[0].cells) if key.columns in shared and len(key.columns) == 1 and not key.doubt), None)
    over_time = len({re.sub(r"[0-9]+", "", sample.path.name) for sample in source.samples}) == 1
    if chosen is None or not source.whole or not over_time:
        return ""
    source.key, source.strategy = chosen.columns, "upsert"
    return f"{chosen.columns[0]} is unique in each file but comes again in others: each file is taken as a delivery whose records replace earlier ones (strategy upsert), in the order of the names"


def _holds(source: SourceGuess, key: Key) -> bool:
    """Whether a key holds in all records, also in those behind the samples."""
    if source.whole:
        return True
    if sum(sample.path.stat().st_size for sample in source.samples) > _MOST_CHECKED:
        source.doubts.append(Doubt(source.name, f"the files are too large to check the key ({', '.join(key.columns)}) to their last record: a run ends where it comes twice"))
        return True
    wanted = [source.column(name) for name in key.columns]
    seen = []
    for sample in source.samples:
        for block in _hashes(sample, wanted):
            if block is None:
                return False
            seen.append(block)
    every = np.concatenate(seen) if seen else np.array([], np.uint64)
    return len(np.unique(every)) == len(every) and len(every) <= _MOST_KEYS


def _hashes(sample: Sample, columns: Sequence[ColumnGuess]) -> Iterator[Any]:
    """Yield the hashes of the key of all records of a file, in pieces; None where a part of it is null."""
    plan = ReadPlan(tuple(Column(one.source_name, "any" if sample.format not in ("csv", "xml") else "string") for one in columns), on_unmapped="drop", array_paths=_paths(sample))
    reader = formats.reader(sample.format, sample.options, plan)
    names = [one.source_name for one in columns]
    try:
        for task in tasks_of(reader, sample.path, sample.path.name):
            for batch in read_task(reader, task):
                frame = pl.DataFrame({str(place): pl.from_arrow(batch.column(name)) for place, name in enumerate(names)})
                empty = frame.select(pl.any_horizontal(pl.all().is_null() | (pl.all() == "")).any()).item() if frame.height else False
                yield None if empty else frame.hash_rows().to_numpy()
    except FormatError as wrong:
        raise StorageFailed(str(wrong)) from None


def _paths(sample: Sample) -> tuple[ArrayPath, ...]:
    return tuple([ArrayPath(one, "explode") for one in sample.explode] + [ArrayPath(one, "join") for one in sample.join])


# -- several sources


def with_date_formats(sources: Sequence[SourceGuess]) -> list[str]:
    """Return the formats of dates for the pipeline. A column of dates that would be read differently under all of them is converted by a transform."""
    chosen = list(dict.fromkeys(one.guess.date_format for source in sources for one in source.columns if one.guess.conversion is None and one.guess.date_format is not None))
    for source in sources:
        source.columns = [one if _is_read_alike(one, source.cells[one.source_name], chosen) else replace(one, guess=_by_transform(one.guess)) for one in source.columns]
    used = {one.guess.date_format for source in sources for one in source.columns if one.guess.conversion is None}
    return [form for form in chosen if form in used]


def _is_read_alike(column: ColumnGuess, cells: Cells, formats_: Sequence[str]) -> bool:
    """Whether a source reads a column the same with all formats of the pipeline as with its own."""
    guess = column.guess
    if guess.conversion is not None or guess.type not in ("date", "date_time") or not formats_:
        return True
    texts = cells.texts.to_arrow().cast("string")
    own = () if guess.date_format is None else (guess.date_format,)
    return bool(coerce(texts, guess.type, own).values.equals(coerce(texts, guess.type, tuple(formats_)).values))


def _by_transform(guess: Guess) -> Guess:
    """The guess of a column of dates that a transform reads."""
    form = f'"{guess.form}"' if guess.form else ""
    call = f"to_date({form})" if guess.type == "date" else f"to_datetime({form})"
    return replace(guess, type="string", becomes=guess.type, conversion=f'if {{}}.trim() == "" then null else {{}}.trim().{call}')


def links_of(sources: Sequence[SourceGuess]) -> Iterator[Link]:
    """Yield the columns whose values are keys of another source, for sources with a key of one column."""
    for target in sources:
        if len(target.key) != 1:
            continue
        key = target.column(target.key[0])
        known = target.cells[key.source_name].texts.drop_nulls().unique()
        for source in sources:
            if source is not target and (link := _link(source, target, key, known)) is not None:
                yield link


def _link(source: SourceGuess, target: SourceGuess, key: ColumnGuess, known: pl.Series) -> Link | None:
    found = []
    for column in source.columns:
        if column.guess.final != key.guess.final or (list(source.key) == [column.name] and column.name != key.name):
            continue
        values = source.cells[column.source_name].texts.drop_nulls().unique()
        values = values.filter(values != "")
        hits = int(values.is_in(known.to_list()).sum())
        named = _is_named_like(column.name, target.name, key.name)
        if len(values) and hits >= _LINKED * len(values) and (named or (len(values) >= 2 and key.guess.final == "string")):
            found.append((named, hits, Link(source.name, column.name, target.name, key.name, hits, len(values))))
    return max(found, key=lambda one: one[:2])[2] if found else None


def _is_named_like(column: str, target: str, key: str) -> bool:
    """Whether a column is called like the key of the other source, or like that source."""
    name, stem = column.lower(), target.lower().rstrip("s")
    return name == key.lower() or (len(stem) > 2 and stem in name)


def checked_folder(paths: Mapping[Path, str], folder: Path) -> None:
    """Raise StorageFailed where a file is not below the folder of the pipeline, or a pipeline cannot name it."""
    strange = next((name for path, name in paths.items() if not str(path).isprintable()), None)
    if strange is not None:
        raise StorageFailed(f"{strange!r}: the name has characters that a pipeline file cannot hold", help="rename the file")
    outside = next((path for path in paths if not path.is_relative_to(folder)), None)
    if outside is not None:
        common = Path(os.path.commonpath([folder, *(path.parent for path in paths)]))
        raise StorageFailed(f"{paths[outside]} is outside of the folder of the pipeline, {folder}", help=f"a pipeline reads files below its own folder; make it in a folder above the data: errata init {common} --from …")
