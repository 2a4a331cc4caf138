"""YAML documents with the place of every value.

`load_yaml` reads a file, `parse_yaml` a text: scalars of YAML 1.2, keys as text, `${NAME}` references, and limits against
hostile files. Unknown tags, duplicate keys and merge keys are errors.
"""

from errata.yaml.document import Document, ScalarOrigin
from errata.yaml.load import load_yaml, parse_yaml, read_yaml
from errata.yaml.source import SourceText, Span

__all__ = ["Document", "ScalarOrigin", "SourceText", "Span", "load_yaml", "parse_yaml", "read_yaml"]
