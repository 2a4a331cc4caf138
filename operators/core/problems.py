"""How operators report what is wrong with a pipeline: the planner supplies the reporter and turns paths into spans."""

from collections.abc import Sequence
from typing import Any, Protocol

from cxl import CxlErrors

ConfigPath = tuple[str | int, ...]
"""A place in the node's YAML: keys and list positions from the node down."""


class Problems(Protocol):
    """Collects diagnostics of one node; all independent ones are reported at once."""

    def report(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None, on_key: bool = False) -> None:
        """An error at a place of this node's YAML (`on_key`: at the key, not its value)."""

    def report_help(self, code: str, message: str, path: ConfigPath, help_text: str | None = None) -> None:
        """`report` for checkers that hand the help on."""

    def warn(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None) -> None:
        """A warning at a place of this node's YAML; it does not stop the pipeline."""

    def cxl(self, errors: CxlErrors, path: ConfigPath, labels: Sequence[Any] = ()) -> None:
        """The diagnostics of a CXL text that stands at `path`. `labels`: further places to point at."""

    def similar(self, name: str, known: Sequence[str]) -> str | None:
        """A did-you-mean line for a name, or None."""
