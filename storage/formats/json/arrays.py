"""Nested values of parsed records: arrays exploded to a record an element or joined to text, and records whose nested values are of another kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from storage.formats import limits
from storage.formats.base import ArrayPath, Reject
from storage.formats.dotted_members import Members, walked
from storage.formats.values import text_of_value
from storage.values.json_text import canonical


def expanded(records: Iterable[dict[str, Any] | Reject], paths: Sequence[ArrayPath], empty: dict[str, int] | None = None) -> Iterator[dict[str, Any] | Reject]:
    """The records with each path's array exploded or joined.

    A record is a reject where several arrays would make too many records, or where another value is in the place of an array to explode.

    Args:
        records: The records.
        paths: The arrays.
        empty: Counts by path each empty array that makes no record.
    """
    for record in records:
        if isinstance(record, Reject):
            yield record
            continue
        if misfit := next((found for path in paths if path.mode == "explode" and (found := _no_array(record, path.steps, record))), None):
            yield misfit
            continue
        sizes = [len(array) for path in paths if path.mode == "explode" and isinstance(array := walked(record, path.steps), list)]
        if message := limits.explodes_too_much(sizes):
            yield Reject("malformed_record", message, raw=canonical(record))
            continue
        yield from _through(record, paths, empty)


def _through(record: dict[str, Any], paths: Sequence[ArrayPath], empty: dict[str, int] | None) -> Iterable[dict[str, Any] | Reject]:
    """Return the records that all paths make of one. An element of one array may contain the next array, so each element is checked before that is exploded."""
    made: Iterable[dict[str, Any]] = (record,)
    for number, path in enumerate(paths):
        if number and path.mode == "explode":
            made = list(made)
            if misfit := next((found for one in made if (found := _no_array(one, path.steps, record))), None):
                return (misfit,)
        made = _by_one(made, path, empty)
    return made


def with_whole_objects(records: Iterable[dict[str, Any] | Reject], members: Members) -> Iterator[dict[str, Any] | Reject]:
    """The records, as rejects where a declared member of an object is not there because another value is in the place of the object."""
    for record in records:
        misfit = None if isinstance(record, Reject) else members.misfit(record)
        yield record if misfit is None or isinstance(record, Reject) else _reject(record, *misfit, "map")


def _no_array(made: dict[str, Any], steps: Sequence[str], record: dict[str, Any]) -> Reject | None:
    """The reject of a record where a path leads to a value that is no array, or ends early at one that is no object. `made`: what earlier paths made of it."""
    value: Any = made
    for at, step in enumerate(steps):
        if not isinstance(value, dict):
            return None if value is None else _reject(record, ".".join(steps[:at]), value, "map")
        value = value.get(step)
    return None if value is None or isinstance(value, list) else _reject(record, ".".join(steps), value, "array")


def _reject(record: dict[str, Any], name: str, value: Any, kind: str) -> Reject:
    fields = {member: text_of_value(one) for member, one in record.items()}
    return Reject("type_coercion_failure", f"column '{name}': cannot read {text_of_value(value)!r} as {kind}", fields, canonical(record))


def _by_one(records: Iterable[dict[str, Any]], path: ArrayPath, empty: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    for record in records:
        if empty is not None and path.path in empty and walked(record, path.steps) == []:
            empty[path.path] += 1
        yield from _one_path(record, path)


def _one_path(record: dict[str, Any], path: ArrayPath) -> Iterable[dict[str, Any]]:
    *parents, last = path.steps
    owner: Any = record
    for step in parents:
        owner = owner.get(step) if isinstance(owner, dict) else None
    array = owner.get(last) if isinstance(owner, dict) else None
    if not isinstance(array, list):
        return [record]
    if path.mode == "join":
        return [_replaced(record, path.steps, _joined(array, path.separator))]
    return (_exploded(record, path.steps, element) for element in array)


def _joined(array: list[Any], separator: str) -> str:
    return separator.join(text_of_value(element) or "" for element in array)


def _exploded(record: dict[str, Any], steps: Sequence[str], element: Any) -> dict[str, Any]:
    if isinstance(element, dict):
        return {**_removed(record, steps), **element}
    return _replaced(record, steps, element)


def _removed(record: dict[str, Any], steps: Sequence[str]) -> dict[str, Any]:
    """Return the record without the member at the end of the steps, and without the objects that held nothing else."""
    first, rest = steps[0], steps[1:]
    left = _removed(record[first], rest) if rest else {}
    return {key: left if key == first else value for key, value in record.items() if left or key != first}


def _replaced(record: dict[str, Any], steps: Sequence[str], value: Any) -> dict[str, Any]:
    first, rest = steps[0], steps[1:]
    return {**record, first: _replaced(record[first], rest, value) if rest else value}
