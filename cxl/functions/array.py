"""Array methods. A closure is called once for each element, in order."""

from collections.abc import Callable
from typing import Any

from cxl.functions.registry import PREDICATE, PROJECTION, Builtin, Param, register
from cxl.types.types import ANY, ARRAY, BOOL, INT

Closure = Callable[[Any], Any]


def _flat_map(array: list[Any], project: Closure) -> list[Any]:
    flat: list[Any] = []
    for result in map(project, array):
        if isinstance(result, list):
            flat.extend(result)
        elif result is not None:
            flat.append(result)
    return flat


def _remove(array: list[Any], index: int) -> list[Any]:
    return array[:index] + array[index + 1 :] if 0 <= index < len(array) else array


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, **more: Any) -> None:
    settings = {"receiver": ARRAY, "returns": ARRAY, "category": "Array", "section": "Array Methods", **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, **settings))


_entry("filter", "The elements for which the condition is true.", ("nums.filter(it => it > 15)", "[20,30]"),
       lambda array, keep: [element for element in array if keep(element) is True], params=(PREDICATE,))  # fmt: skip
_entry("map", "The result of the expression for each element.", ("nums.map(it => it + 1)", "[11,21,31]"),
       lambda array, project: list(map(project, array)), params=(PROJECTION,))  # fmt: skip
_entry("find", "The first element for which the condition is true, else null.", ("nums.find(it => it > 15)", "20"),
       lambda array, wanted: next((element for element in array if wanted(element) is True), None), params=(PREDICATE,), returns=ANY)  # fmt: skip
_entry("any", "Whether the condition is true for some element.", ("nums.any(it => it > 25)", "true"),
       lambda array, wanted: any(wanted(element) is True for element in array), params=(PREDICATE,), returns=BOOL)  # fmt: skip
_entry("flat_map", "Like map, but arrays are joined into one and null results are left out.",
       ('"a,b c".split(" ").flat_map(it => it.split(","))', '["a","b","c"]'), _flat_map, params=(PROJECTION,))  # fmt: skip
_entry("remove", "The array without the element at the index (from 0); unchanged when there is none.", ("nums.remove(1)", "[10,30]"),
       _remove, params=(Param("index", INT),))  # fmt: skip
_entry("length", "The number of elements.", ("nums.length()", "3"), len, returns=INT)
