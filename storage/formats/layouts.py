"""Layout files: the format schemas that `format_schema:` of a source and `schema:` of an output name by path.

A layout file is YAML and not trusted: its size is limited, and aliases and repeated keys are errors. Its scalars stay text, so that `pad: 0` is the
character.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from storage.formats.options import OptionError

LARGEST = 1_000_000
"""Bytes of the largest layout file."""


def load_layout(given: Any, folder: Path, key: str, *, confined: bool = True) -> Mapping[str, Any] | None:
    """The content of a layout. Raises OptionError with the key of the configuration.

    Args:
        given: a map, which is the content, or the path of a layout file; None for no layout
        folder: the folder of the pipeline
        key: the key of the configuration
        confined: whether links that lead out of the folder are refused
    """
    if given is None or isinstance(given, Mapping):
        return given
    if not isinstance(given, str):
        raise OptionError(f"{key}: a layout is a map or the path of a file", (key,))
    path = folder / given
    try:
        if confined and not path.resolve().is_relative_to(folder.resolve()):
            raise OptionError(f"{key}: '{given}' leads out of the pipeline's folder", (key,))
        if not path.is_file():
            raise OptionError(f"{key}: there is no file '{given}'", (key,))
        with path.open("rb") as handle:
            data = handle.read(LARGEST + 1)
    except OSError as error:
        raise OptionError(f"{key}: cannot read '{given}': {error.strerror}", (key,)) from error
    return _parsed(data, given, key)


def _parsed(data: bytes, name: str, key: str) -> Mapping[str, Any]:
    if len(data) > LARGEST:
        raise OptionError(f"{key}: '{name}' is larger than {LARGEST:,} bytes", (key,))
    try:
        root = yaml.compose(data, Loader=yaml.CSafeLoader)
        content = _value(root, name, key)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{key}: '{name}' is no YAML: {' '.join(str(error).split())}", (key,)) from error
    if not isinstance(content, dict):
        raise OptionError(f"{key}: '{name}' holds no map", (key,))
    return content


def _value(root: Any, name: str, key: str) -> Any:
    """A YAML node as maps, lists and texts; a null scalar is None. A node that occurs twice is an alias."""
    seen: set[int] = set()

    def wrong(node: Any, text: str) -> OptionError:
        return OptionError(f"{key}: {name}:{node.start_mark.line + 1}: {text}", (key,))

    def of(node: Any) -> Any:
        if id(node) in seen:
            raise wrong(node, "aliases have no place in a layout")
        seen.add(id(node))
        if isinstance(node.value, str):
            return None if node.tag.endswith(":null") else node.value
        if node.tag.endswith(":seq"):
            return [of(item) for item in node.value]
        made: dict[str, Any] = {}
        for left, right in node.value:
            if left.value in made:
                raise wrong(left, f"the key '{left.value}' comes twice")
            made[left.value] = of(right)
        return made

    return None if root is None else of(root)
