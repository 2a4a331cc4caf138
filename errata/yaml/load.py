"""Reading a YAML file into a `Document`, within limits."""

import os
import re
import stat
from collections.abc import Mapping as MappingType
from pathlib import Path as FilePath

import yaml

from errata.core.diagnostics import Diagnostic, did_you_mean, raise_errors
from errata.core.env_references import masked, references
from errata.yaml.compose import Composer, Refused
from errata.yaml.document import Document
from errata.yaml.events import events
from errata.yaml.nodes import Node, Scalar
from errata.yaml.source import SourceText

LARGEST = 1_000_000
"""How many bytes a file may have."""

_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def load_yaml(path: str | os.PathLike[str], *, env: MappingType[str, str] | None = None) -> Document:
    """Return the document of a file. `env` holds the variables, by default the process's.

    Raises PipelineErrors: unreadable file, wrong syntax, duplicate keys, unset variables, a limit exceeded.
    """
    document = read_yaml(path, env=env)
    raise_errors(document.diagnostics)
    return document


def read_yaml(path: str | os.PathLike[str], *, env: MappingType[str, str] | None = None) -> Document:
    """Return the document of a file. Errors that leave a usable document are in its `diagnostics`, to be reported with later ones."""
    name = os.fspath(path)
    try:
        data = _content(FilePath(name))
    except OSError as error:
        reason = error.strerror or "cannot be read"
        return _failed(SourceText("", name), [Diagnostic("FILE-001", f"cannot read {name}: {reason}", file=name, help=_way_out(FilePath(name)))])
    return parse_yaml(data, file=name, env=env)


def _content(path: FilePath) -> bytes:
    """At most one byte more than the limit. Only regular files are read."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, "not a regular file")
    with path.open("rb") as handle:
        return handle.read(LARGEST + 1)


def parse_yaml(text: str | bytes, *, file: str = "", env: MappingType[str, str] | None = None) -> Document:
    """Return the document of a text. Raises nothing: see `Document.diagnostics`.

    A text that is no YAML has the value None and one error.
    """
    if len(text) > LARGEST:
        return _failed(SourceText("", file), [_too_large(file)])
    decoded = text if isinstance(text, str) else _decoded(text)
    if decoded is None:
        return _failed(SourceText("", file), [Diagnostic("YAML-005", "the file is not UTF-8 text", file=file)])
    source = SourceText(decoded.removeprefix("\ufeff"), file)
    wrong = _FORBIDDEN.search(source.text)
    if wrong:
        shown = f"U+{ord(wrong.group()):04X}"
        place = source.span(wrong.start(), wrong.end())
        return _failed(source, [Diagnostic.at(place, "YAML-005", f"the character {shown} is not allowed in YAML", lines=source)])
    return _compose(source, os.environ if env is None else env)


def _too_large(file: str) -> Diagnostic:
    return Diagnostic("YAML-004", f"the file is larger than {LARGEST:,} bytes", file=file)


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _compose(source: SourceText, env: MappingType[str, str]) -> Document:
    found = references(source.text)
    text = masked(source.text, found) if found else source.text
    composer = Composer(source, text, found, env)
    try:
        root = composer.compose(events(text))
    except yaml.MarkedYAMLError as error:
        return _failed(source, [*composer.found, _syntax(source, error)])
    except Refused as refused:
        return _failed(source, [*composer.found, refused.diagnostic])
    return Document(source, text, root, tuple(composer.found), frozenset(composer.secrets))


def _failed(source: SourceText, diagnostics: list[Diagnostic]) -> Document:
    nothing: Node = Scalar(0, 0, None, None, "", "")
    return Document(source, source.text, nothing, tuple(diagnostics))


def _syntax(source: SourceText, error: yaml.MarkedYAMLError) -> Diagnostic:
    """The parser's error with its place and words."""
    mark = error.problem_mark or error.context_mark
    offset = min(mark.index, len(source.text)) if mark else 0
    problem = error.problem or "not valid YAML"
    if "\t" in source.line_text(source.locate(offset).line)[: source.locate(offset).column]:
        help = "indent with blanks; YAML allows no tabs there"
    else:
        help = _SYNTAX_HELP.get(problem, "")
    message = f"{problem}{f' ({error.context})' if error.context else ''}"
    return Diagnostic.at(source.span(offset, offset + 1), "YAML-001", message, help=help, lines=source)


_SYNTAX_HELP = {
    "mapping values are not allowed in this context": "quote a text that holds ': '",
    "could not find expected ':'": "an entry of a map is written 'key: value'",
    "did not find expected key": "check the indentation: entries of one map begin in one column",
    "did not find expected '-' indicator": "check the indentation: items of one list begin in one column",
    "found character that cannot start any token": "quote a text that begins with @, ` or %",
}


def _way_out(path: FilePath) -> str:
    """The help for a file that cannot be read."""
    if path.is_dir():
        return "name a file in this folder"
    if path.exists():
        return "change its permissions"
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    beside = sorted(one.name for one in folder.glob("*.yaml"))
    return did_you_mean(path.name, beside) or (f"in its folder there {'is' if len(beside) == 1 else 'are'} {', '.join(beside[:5])}" if beside else "errata init makes a pipeline")
