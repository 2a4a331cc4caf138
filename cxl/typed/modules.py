"""Modules: files of functions and constants that programs `use`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cxl.diagnostics.diagnostics import Diagnostic, Findings
from cxl.diagnostics.source import Origin, TextOrigin
from cxl.syntax import ast
from cxl.syntax.canonical import statement_text
from cxl.syntax.parse import Parsed, parse_program

MAX_BYTES = 1_048_576
"""The largest module that is read."""


class ModuleMissing(Exception):
    """A module that does not exist or cannot be read. The message names the place."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its functions and constants by name, and the errors of its text."""

    name: str
    origin: Origin
    functions: dict[str, ast.Fn]
    constants: dict[str, ast.Let]
    statements: tuple[ast.Statement, ...]
    errors: tuple[Diagnostic, ...]
    file: str = ""
    text: str = ""

    @property
    def names(self) -> list[str]:
        """Every name that may follow `::`."""
        return [*self.functions, *self.constants]

    def normal_text(self) -> str:
        """Return its statements in one spelling, for fingerprints."""
        return "\n".join(statement_text(statement) for statement in self.statements)


def read_module(name: str, text: str, file: str = "") -> Module:
    """Parse the text of a module, which holds only fn and let."""
    text = text.removeprefix("\ufeff")
    parsed = parse_program(text)
    origin = TextOrigin(text, file)
    findings = Findings()
    functions, constants = _definitions(parsed, findings)
    return Module(name, origin, functions, constants, parsed.statements, findings.located(text, origin), file, text)


def _definitions(parsed: Parsed, findings: Findings) -> tuple[dict[str, ast.Fn], dict[str, ast.Let]]:
    findings.add(parsed.errors)
    functions: dict[str, ast.Fn] = {}
    constants: dict[str, ast.Let] = {}
    for statement in parsed.statements:
        if not isinstance(statement, ast.Fn | ast.Let):
            findings.error("CXL-R007", "only fn and let may stand in a module", statement.span, help="statements belong to programs")
        elif statement.name in functions or statement.name in constants:
            findings.error("CXL-R009", f"'{statement.name}' is defined twice in this module", statement.name_span)
        elif isinstance(statement, ast.Fn):
            functions[statement.name] = statement
        else:
            constants[statement.name] = statement
    return functions, constants


@dataclass(frozen=True)
class Modules:
    """Finds modules by their path. Each is read once.

    Args:
        read: Returns the text and the file of a module, or raises ModuleMissing.
    """

    read: Callable[[tuple[str, ...]], tuple[str, str]]

    @classmethod
    def under(cls, folder: Path) -> "Modules":
        """Return the modules below a rules folder: `use shared.dates` is `<folder>/shared/dates.cxl`."""
        return cls(lambda path: read_file(folder.joinpath(*path).with_suffix(".cxl")))

    @classmethod
    def of(cls, texts: dict[str, str]) -> "Modules":
        """Return modules from memory, by dotted name."""
        return cls(lambda path: _read_text(texts, ".".join(path)))

    @cached_property
    def _loaded(self) -> dict[tuple[str, ...], Module]:
        return {}

    @property
    def loaded(self) -> tuple[Module, ...]:
        """The modules that were read."""
        return tuple(self._loaded.values())

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the modules that were read."""
        return tuple(module.file for module in self._loaded.values() if module.file)

    def load(self, path: tuple[str, ...]) -> Module:
        """Return the module of a path. Raises ModuleMissing."""
        if path not in self._loaded:
            text, file = self.read(path)
            self._loaded[path] = read_module(".".join(path), text, file)
        return self._loaded[path]


def read_file(file: Path) -> tuple[str, str]:
    """Return the text of a module's file, and the file. Raises ModuleMissing."""
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise ModuleMissing(f"{file} is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8"), str(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ModuleMissing(f"looked for {file}: {reason}") from error


def _read_text(texts: dict[str, str], name: str) -> tuple[str, str]:
    if name not in texts:
        raise ModuleMissing(f"there is no module {name}")
    return texts[name], f"{name}.cxl"


NO_MODULES = Modules.of({})
