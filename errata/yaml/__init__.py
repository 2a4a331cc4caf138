"""YAML documents whose every value knows its place (user guide: Pipeline YAML Structure; QUALITY.md: Security).

Read by `load_yaml` (a file) or `parse_yaml` (a text): YAML 1.2 scalars, keys as text, `${NAME}` interpolation, and
budgets against hostile files. Unknown tags, duplicate keys and merge keys are diagnostics.
"""

from errata.yaml.document import Document, ScalarOrigin
from errata.yaml.load import load_yaml, parse_yaml, read_yaml
from errata.yaml.source import SourceText, Span

__all__ = ["Document", "ScalarOrigin", "SourceText", "Span", "load_yaml", "parse_yaml", "read_yaml"]
