"""The kinds of files for the editor: a pipeline, a composition, a channel, CXL, or nothing of ours."""

import re
from pathlib import PurePath
from typing import Literal

from errata.project.channels.files import COMPOSITION, SUFFIX
from errata.project.compositions.signature import HEADERS

FileKind = Literal["pipeline", "composition", "channel", "cxl", "other"]
_YAML = (".yaml", ".yml")
_PIPELINE = re.compile(r"^(?:pipeline|nodes)[ \t]*:|^\{[ \t]*[\"']?(?:pipeline|nodes)\b", re.MULTILINE)
_HEADER = re.compile(rf"^(?:{'|'.join(HEADERS)})[ \t]*:|^\{{[ \t]*[\"']?(?:{'|'.join(HEADERS)})\b", re.MULTILINE)


def kind_of(file: str, text: str) -> FileKind:
    """Return what a file is, by its name and what its text begins lines with; a broken one is still what it was."""
    if file.endswith(".cxl"):
        return "cxl"
    if file.endswith(SUFFIX):
        return "channel"
    if PurePath(file).suffix not in _YAML:
        return "other"
    if file.endswith(COMPOSITION) or _HEADER.search(text):
        return "composition"
    return "pipeline" if _PIPELINE.search(text) else "other"
