"""Columns of JSON text, the form of dynamic values, in an engine.

Python writes the text, a batch at a time: engines write numbers differently and omit nulls.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import orjson

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa
from cxl.spark.worker import decoded
from cxl.types.types import Type
from cxl.values.dynamic import dumps
from storage.values.json_text import canonical

if TYPE_CHECKING:
    from pyspark.sql import Column


def json_text(value: "Column", type_: Type) -> "Column":
    """The JSON text of a column of a static type; null for null. A column of a dynamic type has it already and is returned."""
    return value if type_.is_dynamic else _computed(partial(_texts, type_), value)


def maps_text(rows: "Column", members: Mapping[str, Type]) -> "Column":
    """The JSON text of an array of maps; null for null. `rows` is an array of structs with the members, in order, in its fields `m0`, `m1`, ..."""
    return _computed(partial(_map_texts, dict(members)), rows)


def member_keys(maps: "Column", name: str) -> "Column":
    """A member of maps in JSON text as bytes that sort like its values: numbers by value, then texts by code point; null where it is null or absent."""
    return _computed(partial(_member_keys, name), maps, "binary")


def members_shown(maps: "Column", shown: Callable[[str, Collection[str]], Sequence[str]]) -> "Column":
    """Maps in JSON text with renamed members; null for null and where no member remains.

    Args:
        maps: the maps
        shown: returns the new names of a member, given its name and all names of its map
    """
    return _computed(partial(_members_shown, shown), maps)


def _computed(work: Callable[[Any], Any], value: "Column", type_: str = "string") -> "Column":
    """A column that Python computes from Arrow arrays."""
    from pyspark.sql.pandas.functions import arrow_udf

    def run(batch: pa.Array) -> pa.Array:
        return work(batch)

    made: Column = cast("Any", arrow_udf)(run, type_)(value)
    return made


def _member_keys(name: str, texts: Any) -> Any:
    found = (None if text is None else orjson.loads(text).get(name) for text in texts.to_pylist())
    return pa.array([None if value is None else _value_key(value) for value in found], pa.binary())


def _members_shown(shown: Callable[[str, Collection[str]], Sequence[str]], texts: Any) -> Any:
    names = cache(shown)
    maps = (None if text is None else orjson.loads(text) for text in texts.to_pylist())
    written = (one and {to: value for name, value in one.items() for to in names(name, tuple(one))} for one in maps)
    return pa.array([canonical(fields) if fields else None for fields in written], pa.string())


def _value_key(value: Any) -> bytes:
    """A number by its value, and by its text where a float is too coarse; anything else by its text."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    text = value if isinstance(value, str) else str(dumps(value)).removesuffix(".0")
    return encode_key([number, text], ("float", "string"))


def _texts(type_: Type, values: Any) -> Any:
    return pa.array(map(dumps, decoded(values, type_)), pa.string())


def _map_texts(members: Mapping[str, Type], rows: Any) -> Any:
    flat = rows.flatten()
    columns = [decoded(flat.field(f"m{index}"), type_) for index, type_ in enumerate(members.values())]
    maps = [dict(zip(members, values, strict=True)) for values in zip(*columns, strict=True)]
    ends = rows.value_lengths().to_pylist()
    starts = [0]
    for length in ends:
        starts.append(starts[-1] + (length or 0))
    texts = [None if length is None else dumps(maps[start:end]) for length, (start, end) in zip(ends, pairwise(starts), strict=True)]
    return pa.array(texts, pa.string())
