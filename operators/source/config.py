"""Configuration of a source node. Keys and defaults are in `docs/reference/sources.md`."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from cxl.types.types import Type, parse_type, type_name
from operators.core.config import Digits, SortOrder, Strict, Watermark, decimal_spelling, is_decimal
from storage.rest.config import Rest
from storage.sql.names import TableName


def _as_type(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"nullable"}:
        value = f"nullable({value['nullable']})"
    return value


class Column(Strict):
    """One declared column: its name and CXL type.

    `scale` and `precision` are the digits of a decimal: behind the point, and in all (38). `source_name` is the name that files have for it, where that is another. `optional`: files may lack the column, which is null then.
    `long_unique` is a storage hint without effect here.
    """

    name: str = Field(min_length=1)
    type: Annotated[str, BeforeValidator(_as_type, json_schema_input_type=str | dict[Literal["nullable"], str])]
    scale: Digits = None
    precision: Digits = None
    source_name: str | None = Field(None, min_length=1)
    optional: bool = False
    long_unique: bool = False

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str) -> str:
        """The word that everything behind knows, of a type that has two: `datetime` is `date_time`."""
        return value if is_decimal(value) else type_name(parse_type(value))

    @property
    def declared(self) -> str:
        """The declared type in one spelling, with the digits of a decimal: `decimal(38,2)`. Raises ValueError where these are missing or cannot be."""
        return decimal_spelling(self.type, self.scale, self.precision)

    @property
    def cxl_type(self) -> Type:
        """The declared type; every column may be null. Raises ValueError as `declared` does."""
        return parse_type(self.declared).or_null


class Files(Strict):
    """Order and choice of the files that a matcher found."""

    sort_by: Literal["name", "created", "modified"] | None = None
    sort_order: Literal["asc", "desc"] = "asc"
    take_first: Annotated[int | None, Field(ge=0)] = None
    take_last: Annotated[int | None, Field(ge=0)] = None
    recursive: bool = True
    on_no_match: Literal["error", "warn", "skip"] = "error"


class OnUnmapped(Strict):
    """What becomes of undeclared input fields."""

    mode: Literal["auto_widen", "drop", "reject"] = "auto_widen"


def _policy(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


class ArrayPath(Strict):
    """How a nested array of JSON or XML is handled."""

    path: str
    mode: Literal["explode", "join"] = "explode"
    separator: str = ","


def _merge(value: Any) -> Any:
    return {"strategy": value} if isinstance(value, str) else value


def _once(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("a field stands twice")
    return names


def _some(names: list[str]) -> list[str]:
    if not names:
        raise ValueError("a key needs a field")
    return names


class Merge(Strict):
    """How a new version of the input becomes changes."""

    strategy: Literal["snapshot", "append", "ledger", "changelog", "upsert"] = "snapshot"
    primary_key: Annotated[list[str], AfterValidator(_once), AfterValidator(_some)] = Field(default_factory=list)
    compare: Annotated[list[str], AfterValidator(_once)] | None = None
    op: str | None = None
    deleted: str | None = None
    cursor: Annotated[str | None, Field(description="The column of a SQL source from whose greatest value the next run reads on.")] = None
    overlap: Annotated[str | int | float | None, Field(description="How far ahead of that value the next run begins: a duration, or a number for a column of numbers.")] = None

    def misfits(self, *, of_answers: bool = False) -> Iterator[str]:
        """Yield what does not go together; reported with all other problems of the source. `of_answers`: whether the source asks a database."""
        yield from self._incomplete()
        yield from self._misplaced()
        if self.strategy == "append" and self.primary_key and not of_answers:
            yield "strategy 'append' takes no primary_key"

    def _incomplete(self) -> Iterator[str]:
        if self.strategy in ("ledger", "changelog", "upsert") and not self.primary_key:
            yield f"strategy '{self.strategy}' needs primary_key"
        if self.strategy == "changelog" and not self.op:
            yield "strategy 'changelog' needs op, the field that holds the operation"

    def _misplaced(self) -> Iterator[str]:
        for name, strategy in (("compare", "snapshot"), ("op", "changelog"), ("deleted", "upsert")):
            if getattr(self, name) is not None and self.strategy != strategy:
                yield f"'{name}' belongs to strategy '{strategy}', not '{self.strategy}'"
        if self.strategy == "snapshot" and self.compare is not None and not self.primary_key:
            yield "'compare' needs primary_key: without a key whole records are compared"


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _transport(value: Any) -> Any:
    """Return the model of a service, so that its errors are reported alone; `kind: file` is the same as `file`."""
    if not isinstance(value, dict):
        return value
    if value.get("kind", "rest") not in ("file", "rest"):
        raise ValueError(f"kind must be 'file' or 'rest', not {value['kind']!r}")
    return "file" if value == {"kind": "file"} else Rest.model_validate(value)


class SourceConfig(Strict):
    """Where records come from, how they are read, and what a new version of them means."""

    name: str
    type: str
    description: str | None = None
    transport: Annotated[Literal["file"] | Rest, BeforeValidator(_transport, json_schema_input_type=Literal["file"] | dict[Literal["kind"], Literal["file"]] | Rest)] = "file"
    path: str | None = None
    glob: str | None = None
    regex: str | None = None
    paths: list[str] | None = None
    exclude: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])] = Field(default_factory=list)
    modified_after: str | None = None
    modified_before: str | None = None
    min_size: int | str | None = None
    max_size: int | str | None = None
    files: Files = Files()
    schema_: list[Column] = Field(alias="schema", min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)
    on_unmapped: Annotated[OnUnmapped, BeforeValidator(_policy, json_schema_input_type=str | OnUnmapped)] = OnUnmapped()
    sort_order: SortOrder = Field(default_factory=list)
    watermark: Watermark | Literal["none"] | None = None
    correlation_key: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), AfterValidator(_once)] = Field(default_factory=list)
    array_paths: list[ArrayPath] = Field(default_factory=list)
    format_schema: Any = None
    envelope: Any = None
    merge: Annotated[Merge, BeforeValidator(_merge, json_schema_input_type=str | Merge)] = Merge()
    connection: Annotated[str | None, Field(description="The name of a connection in errata.toml, of a SQL source.")] = None
    table: Annotated[str | None, Field(description="The table or view that a SQL source reads: table, schema.table, or with double quotes.")] = None
    query: Annotated[str | None, Field(description="The query that a SQL source asks: one statement that begins with SELECT, WITH, VALUES or TABLE.")] = None
    change_token: Annotated[str | None, Field(description="A query whose first row says whether the answer can have changed; the same row means that it has not.")] = None

    @property
    def asks(self) -> bool:
        """Whether the source asks a database."""
        return self.type == "sql"

    @property
    def answer_name(self) -> str:
        """What records of a database have as their file: the connection, and the table or the source's name."""
        return f"{self.connection}:{self.name if self.table is None else TableName.parse(self.table).shown}"

    @property
    def service(self) -> Rest | None:
        """The service that the source reads; None for files."""
        return self.transport if isinstance(self.transport, Rest) else None

    @property
    def event_time(self) -> Watermark | None:
        """The watermark of a source whose records have an event time; None for the others."""
        return self.watermark if isinstance(self.watermark, Watermark) else None

    def matchers(self) -> list[str]:
        """Which of path, glob, regex and paths are given."""
        return [name for name in ("path", "glob", "regex", "paths") if getattr(self, name) is not None]
