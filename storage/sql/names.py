"""Names of tables and columns, as pipelines write them and as statements quote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

_PART = re.compile(r'"(?:[^"\x00]|"")+"|[^".\s\x00][^".\x00]*')


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table, and of its schema where it has one."""

    schema: str | None
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read `table`, `schema.table`, or either with double quotes. Raises ValueError for another form."""
        parts, at = [], 0
        while True:
            found = _PART.match(text, at)
            if found is None:
                raise ValueError(f"'{text}' is no name of a table; write table, schema.table or schema.\"my.table\"")
            parts.append(_plain(found[0]))
            at = found.end()
            if at == len(text):
                break
            if text[at] != ".":
                raise ValueError(f"'{text}' is no name of a table; write table, schema.table or schema.\"my.table\"")
            at += 1
        if len(parts) > 2:
            raise ValueError(f"'{text}' has more parts than a schema and a table")
        return cls(parts[0] if len(parts) == 2 else None, parts[-1])

    @property
    def quoted(self) -> str:
        """The name as statements have it."""
        return self.quoted_by(quoted)

    def quoted_by(self, quote: Callable[[str], str]) -> str:
        """The name as a database has it that quotes in its own way."""
        return quote(self.table) if self.schema is None else f"{quote(self.schema)}.{quote(self.table)}"

    @property
    def shown(self) -> str:
        """The name without quotes, as messages have it."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    def beside(self, table: str) -> TableName:
        """Another table of the same schema."""
        return TableName(self.schema, table)


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.rstrip()


def quoted(name: str) -> str:
    """A name in double quotes, which no name can end."""
    return '"' + name.replace('"', '""') + '"'


def temporary(table: str, content: str) -> str:
    """The name of something temporary that is used beside a table. It has a hash of the table's name, so that no table has it itself."""
    return f"errata_{content}_{blake2b(table.encode(), digest_size=16).hexdigest()}"


def listed(names: Sequence[str]) -> str:
    """Names in double quotes, with commas between them."""
    return ", ".join(map(quoted, names))
