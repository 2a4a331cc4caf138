"""Path methods: the parts of a file path, by the rules of Unix."""

from typing import Any

from cxl.functions.registry import Builtin, register
from cxl.types.types import STRING


def _parts(path: str) -> list[str]:
    """The steps of a path, without `.` steps and doubled slashes. A leading `.` stays."""
    steps = path.split("/")
    named = [step for index, step in enumerate(steps) if step and (step != "." or index == 0)]
    return ["/", *named] if path.startswith("/") else named


def _file_name(path: str) -> str | None:
    steps = _parts(path)
    return None if not steps or steps[-1] in ("/", ".", "..") else steps[-1]


def _file_stem(path: str) -> str | None:
    name = _file_name(path)
    return name if name is None or "." not in name[1:] else name[: name.rindex(".")]


def _extension(path: str) -> str | None:
    name = _file_name(path)
    return None if name is None or "." not in name[1:] else name[name.rindex(".") + 1 :]


def _parent(path: str) -> str | None:
    steps = _parts(path)
    if not steps or steps == ["/"]:
        return None
    if len(steps) == 1:
        return ""
    trimmed = path.rstrip("/")
    while trimmed.endswith("/."):
        trimmed = trimmed[:-2].rstrip("/")
    head = trimmed[: trimmed.rindex("/")].rstrip("/") if "/" in trimmed else ""
    while head.endswith("/."):
        head = head[:-2].rstrip("/")
    return head or "/"


def _parent_name(path: str) -> str | None:
    parent = _parent(path)
    return None if not parent else _file_name(parent)


def _entry(name: str, doc: str, example: tuple[str, str], python: Any) -> None:
    register(Builtin(name=name, receiver=STRING, returns=STRING.or_null, doc=doc, examples=(example,), category="Path",
                     section="Path Methods", python=python))  # fmt: skip


_entry("file_name", "The last step of the path, with its extension.", ('"/data/sales.csv".file_name()', "sales.csv"), _file_name)
_entry("file_stem", "The file name without its extension.", ('"/data/sales.csv".file_stem()', "sales"), _file_stem)
_entry("extension", "The extension without its dot; null when there is none.", ('"/data/sales.csv".extension()', "csv"), _extension)
_entry("parent", "The path of the folder.", ('"/data/reports/sales.csv".parent()', "/data/reports"), _parent)
_entry("parent_name", "The name of the folder.", ('"/data/reports/sales.csv".parent_name()', "reports"), _parent_name)
