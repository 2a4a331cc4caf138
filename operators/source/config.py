"""Configuration of a source node. Keys and defaults are in `docs/reference/sources.md`."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

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
    `path` leads to a member of a message's envelope, where `options.cdc` reads a change feed. `long_unique` is a storage hint without effect here.
    """

    name: str = Field(min_length=1, description="The name of the column in the pipeline (E213, E214).")
    type: Annotated[str, BeforeValidator(_as_type, json_schema_input_type=str | dict[Literal["nullable"], str])] = Field(
        description="The CXL type: string, int, float, decimal, numeric, bool, date, date_time, array, map or any; nullable(T) is T."
    )
    scale: Digits = Field(default=None, description="The digits behind the point of a decimal (E225).")
    precision: Digits = Field(default=None, description="The most digits of a decimal in all; by default 38 (E225).", examples=[12])
    source_name: str | None = Field(default=None, min_length=1, description="The name of the column in the files, where it differs.", examples=["Order No."])
    optional: bool = Field(default=False, description="Whether files may lack the column, which is null then (E238).")
    path: str | None = Field(default=None, min_length=1, description="Members of the message's envelope that lead to the value, with dots between them. Only with options.cdc (E461).")
    long_unique: bool = Field(default=False, description="Accepted; it has no effect.")

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

    sort_by: Literal["name", "created", "modified"] | None = Field(default=None, description="What orders the files; by default their names, and under paths the order of the list.")
    sort_order: Literal["asc", "desc"] = Field(default="asc", description="Ascending or descending.")
    take_first: Annotated[int | None, Field(ge=0)] = Field(default=None, description="How many files from the beginning of the order are read (E212).", examples=[10])
    take_last: Annotated[int | None, Field(ge=0)] = Field(default=None, description="How many files from the end of the order are read (E212).", examples=[3])
    recursive: bool = Field(default=True, description="Whether folders below are searched.")
    on_no_match: Literal["error", "warn", "skip"] = Field(
        default="error", description="What happens where no file is found: error ends the run with exit code 4, warn warns, skip goes on."
    )


class OnUnmapped(Strict):
    """The treatment of undeclared input fields."""

    mode: Literal["auto_widen", "drop", "reject"] = Field(
        default="auto_widen", description="auto_widen lets undeclared fields flow through, drop forgets them, reject rejects records that have some."
    )


def _policy(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


class ArrayPath(Strict):
    """How a nested array of JSON or XML is handled."""

    path: str = Field(description="The field with the array, such as lines or order.lines.", examples=["items"])
    mode: Literal["explode", "join"] = Field(default="explode", description="explode makes a record of each element; join makes a text.")
    separator: str = Field(default=",", description="The text between the elements of a join.", examples=[";"])


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


GROUPS: Final = ("append", "correct", "patch", "retract", "ignore")
"""The groups of `ops`: what a record with one of their values does."""


def word_of(value: Any) -> str | None:
    """The text by which a value of an operation is looked up; None for null and for blanks."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    return text or None


def _groups(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    listed = {group: words if isinstance(words, list) else [] if words is None else [words] for group, words in value.items()}
    return {group: [word_of(word) if word is None or isinstance(word, str | int | float) else word for word in words] for group, words in listed.items()}


_Words = dict[str, list[str | None]]


class OnUnknown(Strict):
    """What becomes of records that refer to a key without a live row."""

    correct: Literal["append", "reject"] = Field(default="append", description="A correction of an unknown key is appended, with a warning, or rejected.")
    retract: Literal["reject", "ignore"] = Field(default="reject", description="A retraction of an unknown key is rejected or passed over.")


def _on_unknown(value: Any) -> Any:
    return {"correct": value} if isinstance(value, str) else value


class ScopePath(Strict):
    """The scope of a delivery by its path."""

    path: str = Field(min_length=1, description="The last parts of the path. `{name}` takes one or more characters without a slash.")

    @property
    def names(self) -> list[str]:
        """The names of the parts of the scope, in their order."""
        return re.findall(r"\{([^{}]*)\}", self.path)


def _scope(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Fields = Annotated[list[str], AfterValidator(_once), AfterValidator(_some)]


class Merge(Strict):
    """How a new version of the input becomes changes."""

    strategy: Literal["snapshot", "append", "ledger", "changelog", "upsert"] = Field(
        default="snapshot", description="What a file is: the truth as of now, or a delivery of records, of first or last versions, or of operations."
    )
    primary_key: Annotated[list[str], AfterValidator(_once), AfterValidator(_some)] = Field(
        default_factory=list, description="The columns that identify a record; ledger, upsert and changelog need them (E215)."
    )
    compare: Annotated[list[str], AfterValidator(_once)] | None = Field(
        default=None, description="The columns whose change counts as a correction, under snapshot with a primary key; by default all (E215).", examples=[["amount", "region"]]
    )
    op: str | None = Field(default=None, description="The column with the operation of each record, under changelog; with ops it may be a CXL expression (E222).")
    deleted: str | None = Field(default=None, description="A CXL condition for records that remove their key, under upsert.", examples=["is_deleted"])
    cursor: Annotated[str | None, Field(description="The column of a SQL source from whose greatest value the next run reads on (E605, W601).", examples=["updated_at"])] = None
    overlap: Annotated[str | int | float | None, Field(description="How far ahead of that value the next run begins: a duration, or a number for a column of numbers (E605).", examples=["1h"])] = None
    ops: Annotated[_Words, BeforeValidator(_groups, json_schema_input_type=dict[Literal["append", "correct", "patch", "retract", "ignore"], list[str | float | bool | None]])] | None = Field(
        default=None, description="The values of op in groups: what a record with one of them does. A null stands for null and for empty text (E464, E469)."
    )
    on_unknown: Annotated[OnUnknown, BeforeValidator(_on_unknown, json_schema_input_type=Literal["append", "reject"] | OnUnknown)] | None = Field(
        default=None, description="What becomes of corrections and retractions of keys without a live row (W460)."
    )
    of: dict[str, str] | None = Field(default=None, min_length=1, description="The record that is meant: a column for each key column whose value names another record (E465).")
    version_field: Annotated[_Fields, BeforeValidator(_scope, json_schema_input_type=str | list[str])] | None = Field(
        default=None, description="Columns, or members of the envelope of a change feed: the event with the highest version decides, whatever the order of arrival (E466)."
    )
    scope: Annotated[_Fields | ScopePath, BeforeValidator(_scope, json_schema_input_type=str | list[str] | ScopePath)] | None = Field(
        default=None, description="Fields, or a pattern of paths, that say which part of the source a delivery covers. A delivery is the whole truth for that part only (E468)."
    )

    @property
    def unknown(self) -> OnUnknown:
        """The treatment of records that refer to an unknown key."""
        return self.on_unknown or OnUnknown()

    def misfits(self, *, of_answers: bool = False, feed: bool = False) -> Iterator[str]:
        """Yield what does not go together; reported with all other problems of the source.

        Args:
            of_answers: Whether the source asks a database.
            feed: Whether the records are messages of a change feed.
        """
        yield from self._incomplete(feed=feed)
        yield from self._misplaced()
        if self.strategy == "append" and self.primary_key and not of_answers:
            yield "strategy 'append' takes no primary_key"

    def _incomplete(self, *, feed: bool) -> Iterator[str]:
        if self.strategy in ("ledger", "changelog", "upsert") and not self.primary_key and not feed:
            yield f"strategy '{self.strategy}' needs primary_key"
        if self.strategy == "changelog" and not self.op and not feed:
            yield "strategy 'changelog' needs op, the field that holds the operation"
        for name in ("on_unknown", "of"):
            if getattr(self, name) is not None and self.ops is None and self.strategy == "changelog" and not feed:
                yield f"'{name}' needs ops"

    def _misplaced(self) -> Iterator[str]:
        belongs = {"compare": "snapshot", "op": "changelog", "deleted": "upsert", "ops": "changelog", "on_unknown": "changelog", "of": "changelog"}
        for name, strategy in belongs.items():
            if getattr(self, name) is not None and self.strategy != strategy:
                yield f"'{name}' belongs to strategy '{strategy}', not '{self.strategy}'"
        if self.strategy == "snapshot" and self.compare is not None and not self.primary_key:
            yield "'compare' needs primary_key: without a key whole records are compared"


def _of_dataset(value: Any) -> Any:
    """The settings of a source of type odf, with the defaults of a dataset: op rows, their column `op`, and only declared columns."""
    if not isinstance(value, dict) or value.get("type") != DATASET:
        return value
    merge = _merge(value.get("merge", {}))
    if isinstance(merge, dict):
        merge = {"strategy": "changelog", **merge}
        merge |= {"op": "op"} if merge["strategy"] == "changelog" and merge.get("op") is None else {}
    columns, op = value.get("schema", value.get("schema_")), merge.get("op") if isinstance(merge, dict) and merge.get("ops") is None else None
    if op is not None and isinstance(columns, list) and op not in (one.get("name") if isinstance(one, dict) else getattr(one, "name", None) for one in columns):
        columns = [*columns, {"name": op, "type": "int"}]
    settings = {name: one for name, one in value.items() if name != "schema_"}
    return {"on_unmapped": "drop", **settings, "merge": merge, "schema": columns}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _transport(value: Any) -> Any:
    """Return the model of a service, so that its errors are reported alone; `kind: file` is the same as `file`."""
    if not isinstance(value, dict):
        return value
    if value.get("kind", "rest") not in ("file", "rest"):
        raise ValueError(f"kind must be 'file' or 'rest', not {value['kind']!r}")
    return "file" if value == {"kind": "file"} else Rest.model_validate(value)


DATASET: Final = "odf"
"""The type of sources that read a dataset of Open Data Fabric."""


class SourceCorrections(Strict):
    """The files that correct cells as they are read, and the columns that name a record in them."""

    path: str = Field(min_length=1, description="The file of the corrections, or a pattern such as corrections/*.yaml; YAML, CSV or a workbook (E480).")
    key: list[str] = Field(default_factory=list, description="The columns whose values name a record in the files; by default the primary key, else all (E481).")


class SourceConfig(Strict):
    """Where records come from, how they are read, and what a new version of them means."""

    _complete = model_validator(mode="before")(_of_dataset)

    name: str = Field(description="Text for people; the node's own name is what other nodes and commands use.")
    type: str = Field(description="The format, such as csv, json or parquet; delta is a Delta table, sql a database, odf a dataset of Open Data Fabric (E217, E664).")
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Orders of the shop"])
    transport: Annotated[Literal["file"] | Rest, BeforeValidator(_transport, json_schema_input_type=Literal["file"] | dict[Literal["kind"], Literal["file"]] | Rest)] = Field(
        default="file", description="Where records come from: files, or a REST service (E219, E220).", examples=[{"kind": "rest", "url": "https://api.example/orders", "max_pages": 100}]
    )
    path: str | None = Field(
        default=None, description="One file, relative to the pipeline's folder; of type delta a table; a missing file ends the run with exit code 4 (E210, E211, E230, E231, E232)."
    )
    glob: str | None = Field(default=None, description="A pattern of paths: * within a folder, ** across folders (E210, E223).")
    regex: str | None = Field(default=None, description="A regular expression that is searched in the paths below the pipeline's folder (E210, E223).", examples=[r"orders_[0-9]{8}\.csv"])
    paths: list[str] | None = Field(default=None, description="A list of files (E210).", examples=[["orders.csv", "late.csv"]])
    exclude: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])] = Field(
        default_factory=list, description="Patterns of files to leave out, tested against path and name (E223).", examples=["*.tmp"]
    )
    modified_after: str | None = Field(default=None, description="Only files modified after this time: RFC 3339, or an age such as 7d (E223).", examples=["2026-01-01"])
    modified_before: str | None = Field(default=None, description="Only files modified before this time: RFC 3339, or an age such as 15m (E223).", examples=["2026-02-01"])
    min_size: int | str | None = Field(default=None, description="Only files of at least this size: bytes, or a decimal size such as 10MB (E223).", examples=[1])
    max_size: int | str | None = Field(default=None, description="Only files of at most this size: bytes, or a decimal size such as 10MB (E223).", examples=["100M"])
    files: Files = Field(default=Files(), description="The order of the files, and which of them are read.", examples=[{"sort_by": "name", "take_last": 3}])
    schema_: list[Column] = Field(alias="schema", min_length=1, description="The declared columns, in the order of the output (E213, E214).", examples=[[{"name": "order_id", "type": "int"}]])
    options: dict[str, Any] = Field(default_factory=dict, description="The options of the format (E218).")
    on_unmapped: Annotated[OnUnmapped, BeforeValidator(_policy, json_schema_input_type=str | OnUnmapped)] = Field(
        default=OnUnmapped(), description="What becomes of fields that schema does not name; by default auto_widen."
    )
    sort_order: SortOrder = Field(default_factory=list, description="The order that the files promise; a streaming aggregate needs it (E215).", examples=[["ordered_on"]])
    watermark: Watermark | Literal["none"] | None = Field(default=None, description="The event time of the records, for time windows; none says that they have none (E154, E155, E157).")
    correlation_key: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), AfterValidator(_once)] = Field(
        default_factory=list, description="The fields, one or a list, of records that fail together (E153)."
    )
    array_paths: list[ArrayPath] = Field(default_factory=list, description="Nested arrays of JSON and XML that become records or text.", examples=[[{"path": "items", "mode": "explode"}]])
    format_schema: Any = Field(default=None, description="The layout of a fixed-width file, as a map or the path of a YAML file.", examples=["layouts/orders.yaml"])
    envelope: Any = Field(default=None, description="Sections of the document around the records, which CXL reads as $doc.", examples=[{"sections": {"head": {"extract": {"json_pointer": "/h"}}}}])
    merge: Annotated[Merge, BeforeValidator(_merge, json_schema_input_type=str | Merge)] = Field(
        default=Merge(), description="What a new version of the input means: a strategy, alone or with its keys; by default snapshot (E347)."
    )
    corrections: SourceCorrections | None = Field(default=None, description="Files that correct cells as they are read, also cells that do not convert (E480, E481, E482, E483).")
    connection: Annotated[str | None, Field(description="The name of a connection in errata.toml, of a SQL source (E600).")] = None
    table: Annotated[str | None, Field(description="The table or view that a SQL source reads: table, schema.table, or with double quotes (E603).")] = None
    query: Annotated[str | None, Field(description="The query that a SQL source asks: one statement that begins with SELECT, WITH, VALUES or TABLE (E603, E604).", examples=["SELECT * FROM orders"])] = None
    change_token: Annotated[str | None, Field(description="A query whose first row says whether the answer can have changed; the same row means that it has not.", examples=["SELECT max(updated_at) FROM orders"])] = None

    @property
    def dataset(self) -> bool:
        """Whether the source reads a dataset of Open Data Fabric."""
        return self.type == DATASET

    @property
    def format(self) -> str:
        """The format of the source's files."""
        return "parquet" if self.dataset else self.type

    @property
    def asks(self) -> bool:
        """Whether the source asks a database."""
        return self.type == "sql"

    @property
    def answer_name(self) -> str:
        """The file of records of a database: the connection, and the table or the source's name."""
        return f"{self.connection}:{self.name if self.table is None else TableName.parse(self.table).shown}"

    @property
    def service(self) -> Rest | None:
        """The service whose records the source reads; None for files."""
        return self.transport if isinstance(self.transport, Rest) and not self.dataset else None

    @property
    def publisher(self) -> Rest | None:
        """The server that has the dataset of the source; None for a directory."""
        return self.transport if isinstance(self.transport, Rest) and self.dataset else None

    @property
    def event_time(self) -> Watermark | None:
        """The watermark of a source whose records have an event time; None for the others."""
        return self.watermark if isinstance(self.watermark, Watermark) else None

    @property
    def feed(self) -> str | None:
        """The format of the change feed whose messages the records are; None for plain records."""
        cdc = self.options.get("cdc") if self.type == "json" else None
        return cdc if isinstance(cdc, str) else cdc.get("format") if isinstance(cdc, dict) else None

    @property
    def marks(self) -> bool:
        """Whether the column `op` holds operations in known words, and is no data."""
        return self.merge.op is not None and self.merge.ops is None

    @property
    def remembers(self) -> bool:
        """Whether the source keeps what it knows of earlier deliveries beside its rows: events, versions or scopes."""
        merge = self.merge
        return merge.version_field is not None or merge.ops is not None or self.feed is not None or merge.scope is not None

    def matchers(self) -> list[str]:
        """Which of path, glob, regex and paths are given."""
        return [name for name in ("path", "glob", "regex", "paths") if getattr(self, name) is not None]
