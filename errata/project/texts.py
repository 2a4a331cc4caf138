"""The project's own files as text: from the disk, or from an editor that has not saved them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cxl.typed.modules import ModuleMissing, Modules, read_file
from errata.yaml import Document, parse_yaml, read_yaml


@dataclass(frozen=True, slots=True)
class Texts:
    """Reads pipeline, composition and channel files, and modules.

    Args:
        unsaved: Texts that go before the files, by absolute path.
    """

    unsaved: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str | Path) -> str | None:
        """Return the text of a file that is not saved; None where the file on the disk counts."""
        return self.unsaved.get(os.path.abspath(path)) if self.unsaved else None  # noqa: PTH100 - links are not followed

    def exists(self, path: Path) -> bool:
        """Whether there is a file, on the disk or in the editor."""
        return self.text(path) is not None or path.is_file()

    def yaml(self, path: str | Path, env: Mapping[str, str] | None = None) -> Document:
        """Return the document of a YAML file, its errors in `diagnostics`."""
        text = self.text(path)
        return read_yaml(path, env=env) if text is None else parse_yaml(text, file=os.fspath(path), env=env)

    def modules(self, folder: Path) -> Modules:
        """Return the modules below a rules folder."""
        return Modules.under(folder) if not self.unsaved else Modules(lambda path: self._module(folder.joinpath(*path).with_suffix(".cxl")))

    def _module(self, file: Path) -> tuple[str, str]:
        """The text and the file of a module. Raises ModuleMissing."""
        text = self.text(file)
        return read_file(file) if text is None else (text, str(file))


SAVED = Texts()
"""The files as they are on the disk."""
__all__ = ["SAVED", "ModuleMissing", "Texts"]
