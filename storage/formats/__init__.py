"""File formats by the names that `type:` has for them. A format is a package of this folder, which registers its reader and its writer.

    reader = formats.reader("csv", {"delimiter": ";"}, ReadPlan(columns))
    for batch in reader.read(data, "orders.csv"): ...

To add a format, add a package: no other module names it, only the import contract in `pyproject.toml`. Its `options` has the option models, its `__init__`
the reader and the writer. `read` turns bytes into records, `write` records into bytes.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, TypeVar

from pydantic import ValidationError

from storage.files.errors import Buffer, FormatError, InputError, OutputError
from storage.formats.base import (
    CHUNK_BYTES,
    DOCUMENT,
    ERROR,
    ROW,
    ArrayPath,
    Column,
    Range,
    Reader,
    ReadPlan,
    Reject,
    Section,
    Session,
    WritePlan,
    Writer,
)
from storage.formats.options import OptionError, Options

__all__ = [
    "CHUNK_BYTES", "DOCUMENT", "ERROR", "ROW", "ArrayPath", "Buffer", "Column", "FormatError", "InputError", "OptionError", "Options",
    "OutputError", "Range", "ReadPlan", "Reader", "Reject", "Section", "Session", "WritePlan", "Writer", "names", "reader", "reader_type",
    "register_reader", "register_writer", "writer", "writer_type",
]  # fmt: skip

_readers: dict[str, type[Reader]] = {}
_writers: dict[str, type[Writer]] = {}
_R = TypeVar("_R", bound=type[Reader])
_W = TypeVar("_W", bound=type[Writer])


def register_reader(name: str) -> Callable[[_R], _R]:
    """Class decorator that registers the reader of `type: name`."""

    def add(cls: _R) -> _R:
        _readers[name] = cls
        return cls

    return add


def register_writer(name: str) -> Callable[[_W], _W]:
    """Class decorator that registers the writer of `type: name`."""

    def add(cls: _W) -> _W:
        _writers[name] = cls
        return cls

    return add


_SHARED = {"typed", "edi"}
"""Packages that several formats share; no formats themselves."""


@cache
def names() -> tuple[str, ...]:
    """Every format, in alphabetical order."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if module.ispkg and module.name not in _SHARED))


def reader_type(name: str) -> type[Reader]:
    """The reader class of a format. Raises KeyError for an unknown name."""
    _load(name)
    return _readers[name]


def writer_type(name: str) -> type[Writer]:
    """The writer class of a format. Raises KeyError for an unknown name."""
    _load(name)
    return _writers[name]


def reader(name: str, options: Mapping[str, Any], plan: ReadPlan) -> Reader:
    """A reader with checked options. Raises OptionError for unknown options, and for array paths or layouts that the format does not take."""
    cls = reader_type(name)
    _require(name, cls)
    _refuse(name, "array_paths", given=bool(plan.array_paths) and not cls.nested, why="its records have no nested arrays, as those of json and xml have")
    _refuse(name, "format_schema", given=plan.layout is not None and not cls.laid_out, why="only fixed_width files are laid out by one")
    return cls(_checked(cls.Options, options), plan)


def writer(name: str, options: Mapping[str, Any], plan: WritePlan) -> Writer:
    """A writer with checked options. Raises OptionError for unknown options, and for a layout that the format does not take."""
    cls = writer_type(name)
    _require(name, cls)
    _refuse(name, "schema", given=plan.layout is not None and not cls.laid_out, why="only fixed_width files are laid out by one")
    return cls(_checked(cls.Options, options), plan)


def _require(name: str, cls: type[Reader] | type[Writer]) -> None:
    """Raise OptionError (E606) where the library of a format is not installed."""
    if cls.library and find_spec(cls.library) is None:
        message = f"type '{name}' needs the library {cls.library}, which is not installed"
        raise OptionError(message, ("type",), code="E606", help_text=f"pip install 'errata[{cls.extra}]'")


def _refuse(name: str, key: str, *, given: bool, why: str) -> None:
    """Raise OptionError for a key that the format does not take."""
    if given:
        raise OptionError(f"{key}: type '{name}' takes none, {why}; leave it out", (key,), unknown=True)


def _checked(model: type[Options], options: Mapping[str, Any]) -> Options:
    try:
        return model.model_validate(dict(options))
    except ValidationError as wrong:
        raise OptionError.of(wrong, "options") from wrong


def _load(name: str) -> None:
    if name not in names():
        raise KeyError(name)
    import_module(f"{__name__}.{name}")
