"""Configuration of an output node. Keys and defaults are in `docs/reference/outputs.md`."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from operators.core.config import Digits, SortOrder, Strict


class Split(Strict):
    """How an output is cut into several files."""

    max_records: Annotated[int | None, Field(ge=1)] = None
    max_bytes: Annotated[int | None, Field(ge=1)] = None
    group_key: str | None = None
    naming: str = "{stem}_{seq:04}.{ext}"
    repeat_header: bool = True
    oversize_group: Literal["warn", "error", "allow"] = "warn"


class ChangelogFile(Strict):
    """A file with the changes of each run."""

    path: str
    form: Literal["two", "retract", "upsert", "single", "debezium", "flink"] = "two"
    format: Literal["jsonl", "json", "csv", "parquet"] = "jsonl"


class History(Strict):
    """What an output writes of the past: what was so, and since when."""

    key: Annotated[list[str], Field(min_length=1, description="The columns that name the thing with a history.")]
    valid_from: Annotated[str | None, Field(description="A column of type date, date_time or int: from when a row holds.")] = None
    recorded: Annotated[
        Literal["run", "epoch"] | None,
        Field(description="Write when rows were recorded: by the begin of the run, or by the number of its epoch. `run` where `valid_from` is absent too."),
    ] = None
    deleted: Annotated[str | None, Field(description="A CXL predicate for rows that say that the thing ended.")] = None


def _without_path(schema: dict[str, Any]) -> None:
    """A table of a database has no path."""
    schema["required"] = [name for name in schema.get("required", ()) if name != "path"]


class OutputColumn(Strict):
    """A decimal column of the file: the value is rounded half to even to `scale`, and has at most `precision` digits (38)."""

    name: str = Field(min_length=1)
    type: str = "decimal"
    scale: Digits = None
    precision: Digits = None


class OutputConfig(Strict):
    """Which fields are written, in which order and form, and where."""

    model_config = ConfigDict(json_schema_extra=_without_path)

    name: str | None = None
    type: str
    description: str | None = None
    path: str
    include_unmapped: bool = True
    include_correlation_keys: bool = False
    include_header: bool = True
    include_metadata: Literal["all", "none"] | list[str] = "none"
    preserve_nulls: bool = False
    mapping: dict[str, str] = Field(default_factory=dict)
    exclude: list[str] = Field(default_factory=list)
    options: dict[str, Any] = Field(default_factory=dict)
    schema_: list[OutputColumn] | dict[str, Any] | str | None = Field(None, alias="schema")
    format_schema: Any = None
    sort_order: SortOrder = Field(default_factory=list)
    split: Split | None = None
    if_exists: Literal["error", "overwrite", "unique_suffix"] = "error"
    unique_suffix_width: Annotated[int, Field(ge=0, le=20)] = 0
    write_meta: bool = False
    correlation_fanout_policy: Literal["any", "all", "primary"] | None = None
    changelog: ChangelogFile | None = None
    history: History | None = None
    connection: Annotated[str | None, Field(description="The name of a connection in errata.toml, of an output of type sql.")] = None
    table: Annotated[str | None, Field(description="The table that an output of type sql writes: table, schema.table, or with double quotes.")] = None
    mode: Annotated[Literal["mirror", "op_rows"] | None, Field(description="Whether the table of a SQL output has the live rows, which is the default, or all op rows.")] = None
    form: Annotated[Literal["two", "retract", "upsert", "single", "debezium", "flink"] | None, Field(description="The form of the op rows of a SQL output.")] = None
    primary_key: Annotated[list[str], Field(description="The columns, as they are written, that are the primary key of the table of a SQL output.")] = Field(default_factory=list)
    key_column: Annotated[Literal["none"] | None, Field(description="none leaves the column _key out of a table without primary_key.")] = None

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, value: Any) -> Any:
        """A table of a database has no path, which every other output needs."""
        return {"path": "", **value} if isinstance(value, dict) and value.get("type") == "sql" else value

    @property
    def declared(self) -> list[OutputColumn]:
        """The columns that `schema` declares; none where it is a layout."""
        return self.schema_ if isinstance(self.schema_, list) else []

    @property
    def wanted_metadata(self) -> Literal["all"] | list[str]:
        """The fields of `$meta` to write."""
        return [] if self.include_metadata == "none" else self.include_metadata if isinstance(self.include_metadata, list) else "all"
