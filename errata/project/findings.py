"""The diagnostics of a pipeline while it is planned."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cxl import CxlErrors, Target
from errata.core.diagnostics import Diagnostic, Label, did_you_mean, from_cxl
from errata.yaml import Document
from operators.core.binding import ConfigPath

SECRETIVE = frozenset({"E601"})
"""Codes of errors whose line may have a secret, so that it is not shown."""


@dataclass(frozen=True, slots=True)
class CxlText:
    """A CXL text of a node, its place in the file, and what it is compiled against."""

    document: Document
    path: ConfigPath
    node: str
    text: str
    target: Target


@dataclass(slots=True)
class Findings:
    """All diagnostics of one planning, and the CXL texts that were compiled."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    programs: list[CxlText] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(one.is_error for one in self.diagnostics)

    def program(self, text: CxlText) -> None:
        """Keep a CXL text."""
        self.programs.append(text)

    def node(self, document: Document, path: ConfigPath, name: str) -> "NodeReporter":
        """Return a reporter for the node at `path`."""
        return NodeReporter(self, document, path, name)


@dataclass(frozen=True, slots=True)
class NodeReporter:
    """Reports the problems of one node. Implements `operators.core.binding.Problems`."""

    findings: Findings
    document: Document
    path: ConfigPath
    name: str

    def report(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None, on_key: bool = False) -> None:
        """Report an error at a place in the node's YAML."""
        found = self.document.error((*self.path, *path), code, message, key=on_key, help=help or "", node=self.name)
        self.findings.diagnostics.append(replace(found, lines=None) if code in SECRETIVE else found)

    def report_help(self, code: str, message: str, path: ConfigPath, help_text: str | None = None) -> None:
        """Report an error, with help as a positional argument."""
        self.report(code, message, path, help=help_text)

    def warn(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None) -> None:
        """Report a warning at a place in the node's YAML."""
        self.findings.diagnostics.append(self.document.warning((*self.path, *path), code, message, help=help or "", node=self.name))

    def cxl(self, errors: CxlErrors, path: ConfigPath, labels: Sequence[Label] = ()) -> None:
        """Report the diagnostics of a CXL text. Their origin has the place.

        Args:
            labels: Further places to point at.
        """
        found = (from_cxl(one, node=self.name) for one in errors.diagnostics)
        self.findings.diagnostics.extend(replace(one, labels=(*one.labels, *labels)) if labels else one for one in found)

    def program(self, path: ConfigPath, text: str, target: Target) -> None:
        """Keep a CXL text, with its place in the file."""
        self.findings.program(CxlText(self.document, (*self.path, *path), self.name, text, target))

    def similar(self, name: str, known: Sequence[str]) -> str | None:
        """Return a did-you-mean line for a name, or None."""
        return did_you_mean(name, known) or None
