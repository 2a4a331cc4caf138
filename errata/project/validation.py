"""The errors of a configuration model as diagnostics at the keys.

CFG-001 unknown key, CFG-002 missing key, CFG-003 value of a wrong type, CFG-004 value that is not allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from errata.core.diagnostics import Diagnostic, did_you_mean
from errata.yaml import Document

Path = tuple[str | int, ...]

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "dataclass_type": "a map",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "greater than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_pattern_mismatch": "a text like {pattern}",
    "string_too_short": "a text of at least {min_length} characters",
    "string_too_long": "a text of at most {max_length} characters",
    "too_short": "a {kind} of at least {min_length} entries",
    "too_long": "a {kind} of at most {max_length} entries",
}
_ALIKE = frozenset(_EXPECTED) | {"literal_error", "missing", "extra_forbidden", "union_tag_invalid"}


def model_problems(
    error: ValidationError, document: Document, path: Path, model: type[BaseModel], *, node: str = "", further: Sequence[str] = ()
) -> tuple[Diagnostic, ...]:
    """Return one diagnostic for each place where `model` rejects the value at `path` of the document.

    Args:
        further: Keys that are allowed there too.
    """
    reader = _Reader(document, path, model, node, further)
    by_place: dict[Path, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(reader.place(detail), []).append(detail)
    shown = [place for place in by_place if not _covered(place, by_place)]
    return tuple(reader.diagnostic(place, by_place[place]) for place in shown if not reader.misspelt(place, by_place))


def _covered(place: Path, others: Mapping[Path, Sequence[ErrorDetails]]) -> bool:
    """Whether the other branches of a union only report another type, while one branch read further."""
    deeper = any(len(other) > len(place) and other[: len(place)] == place for other in others)
    return deeper and all(detail["type"] in _ALIKE and detail["type"] != "missing" for detail in others[place])


class _Reader:
    """Turns the errors of one validation into diagnostics."""

    def __init__(self, document: Document, path: Path, model: type[BaseModel], node: str, further: Sequence[str]) -> None:
        self._document = document
        self._path = path
        self._model = model
        self._node = node
        self._further = further
        self._value = _value_at(document.value, path)

    def place(self, detail: ErrorDetails) -> Path:
        """Return the keys and positions of an error that exist in the document. Names of union branches are left out."""
        value: Any = self._value
        steps: list[int | str] = []
        location = detail["loc"]
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
            location = (*location, str(detail["ctx"]["discriminator"]).strip("'"))
        names_absent = detail["type"] in ("missing", "union_tag_not_found")
        for index, step in enumerate(location):
            if _has(value, step):
                value = value[step]
            elif index < len(location) - 1 or not names_absent:
                continue
            steps.append(step)
        return tuple(steps)

    def misspelt(self, place: Path, others: Mapping[Path, Sequence[ErrorDetails]]) -> bool:
        """Whether a missing key exists under a similar name. The unknown key is reported instead."""
        if others[place][0]["type"] != "missing":
            return False
        unknown = [other for other, found in others.items() if other[:-1] == place[:-1] and found[0]["type"] == "extra_forbidden"]
        return any(did_you_mean(str(other[-1]), [str(place[-1])]) for other in unknown)

    def diagnostic(self, place: Path, details: Sequence[ErrorDetails]) -> Diagnostic:
        """Return the diagnostic of one place. The branches of a union together give the allowed values."""
        first = details[0]
        if first["type"] == "extra_forbidden":
            return self._unknown(place)
        if first["type"] in ("missing", "union_tag_not_found"):
            return self._missing(place)
        choices = [choice for detail in details for choice in _expectations(detail)]
        if choices:
            return self._unexpected(place, list(dict.fromkeys(choices)), bounded=first["type"] in _BOUNDS)
        return self._error(place, "CFG-004", f"{self._named(place)}: {_sentence(first)}")

    def _named(self, place: Path) -> str:
        whole = (*self._path, *place)
        names = [step for step in whole if isinstance(step, str)]
        position = f" (item {whole[-1] + 1})" if whole and isinstance(whole[-1], int) else ""
        return f"'{names[-1]}'{position}" if names else "the value"

    def _error(self, place: Path, code: str, message: str, *, key: bool = False, help: str = "") -> Diagnostic:
        return self._document.error((*self._path, *place), code, message, key=key, help=help, node=self._node)

    def _unknown(self, place: Path) -> Diagnostic:
        further = self._further if len(place) == 1 else ()
        known = sorted({*(key for model in _models_at(self._model, place[:-1]) for key in _keys(model)), *further})
        help_line = did_you_mean(str(place[-1]), known) or (f"known keys: {', '.join(known)}" if known else "")
        return self._error(place, "CFG-001", f"unknown key '{place[-1]}'", key=True, help=help_line)

    def _missing(self, place: Path) -> Diagnostic:
        owner = (*self._path, *place[:-1])
        inside = f" in '{owner[-1]}'" if owner and isinstance(owner[-1], str) else ""
        choices = [f"'{word}'" for model in _models_at(self._model, place[:-1]) for word in _choices(model, str(place[-1]))]
        help_line = f"it is {_either(list(dict.fromkeys(choices)))}" if choices else ""
        return self._document.error(owner, "CFG-002", f"missing key '{place[-1]}'{inside}", key=True, help=help_line, node=self._node)

    def _unexpected(self, place: Path, choices: list[str], *, bounded: bool) -> Diagnostic:
        value = _value_at(self._value, place)
        shown = f"{_kind(value)} {_shown(value)}".rstrip()
        words = [choice for choice in choices if choice.startswith("'")]
        help_line = did_you_mean(value, [word.strip("'") for word in words]) if isinstance(value, str) else ""
        code = "CFG-004" if bounded or (words and isinstance(value, str)) else "CFG-003"
        return self._error(place, code, f"{self._named(place)} must be {_either(choices)}, not {shown}", help=help_line)


def _has(value: object, step: int | str) -> bool:
    """Whether a step leads from a value to another."""
    return step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int) and step < len(value)


def _value_at(value: object, path: Path) -> Any:
    """The value at a path, None where there is none."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        else:
            value = value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
    return value


def _expectations(detail: ErrorDetails) -> list[str]:
    """The values that an error allows, in words; empty where its own message is better."""
    kind = detail["type"]
    if kind in _EXPECTED:
        return [_EXPECTED[kind]]
    if kind in _BOUNDS:
        return [_BOUNDS[kind].format(**detail["ctx"], kind="map" if isinstance(detail["input"], dict) else "list")]
    if kind == "literal_error":
        return _quoted(str(detail["ctx"]["expected"]))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _quoted(str(detail["ctx"].get("expected_tags", "")))
    return []


def _quoted(text: str) -> list[str]:
    """The words of pydantic's "'a', 'b' or 'c'"."""
    return [word.strip() for word in text.replace(" or ", ", ").split(",") if word.strip()]


def _either(choices: Sequence[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def _sentence(detail: ErrorDetails) -> str:
    """The message of a validator without pydantic's prefix."""
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message[:1].lower() + message[1:]


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    if value in ([], {}):
        return "an empty list" if isinstance(value, list) else "an empty map"
    kinds = ((bool, "the constant"), ((int, float), "the number"), (str, "the text"), (list, "a list"))
    return next((words for types, words in kinds if isinstance(value, types)), "a map")


def _shown(value: object) -> str:
    """A value as YAML shows it, cut to a readable length. Lists and maps are empty."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        shown = repr(value)
        return shown if len(shown) <= 40 else f"{shown[:37]}..."
    return str(value) if isinstance(value, (int, float)) else ""


def _keys(model: type[BaseModel]) -> Iterator[str]:
    """The keys of a model as written."""
    for name, field in model.model_fields.items():
        yield field.alias or name


def _choices(model: type[BaseModel], key: str) -> Iterator[Any]:
    """The words that a key of a model allows, where it allows only some."""
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            yield from _words(field.annotation)


def _words(annotation: Any) -> Iterator[Any]:
    """The words of an annotation: through optionals and Annotated."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
        return
    for argument in get_args(annotation):
        yield from _words(argument)


def _models_at(model: type[BaseModel], place: Path) -> list[type[BaseModel]]:
    """The models that a value at a place inside `model` may have: several in a union."""
    models = [model]
    for step in place:
        if isinstance(step, int):
            continue
        fields = [field for one in models for name, field in one.model_fields.items() if step in (name, field.alias)]
        inner = [found for field in fields for found in _models_of(field.annotation)]
        models = inner or (models if not fields else [])
    return models


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside an annotation: through optionals, unions, lists, maps and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_of(argument)
