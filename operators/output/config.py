"""Configuration of an output node. Keys and defaults are in `docs/reference/outputs.md`."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from operators.core.config import Digits, SortOrder, Strict


class Split(Strict):
    """How an output is cut into several files."""

    max_records: Annotated[int | None, Field(ge=1)] = Field(default=None, description="The most records of a file.")
    max_bytes: Annotated[int | None, Field(ge=1)] = Field(default=None, description="The size in bytes from which a file is full; the record that passes it is completed.", examples=[100_000_000])
    group_key: str | None = Field(default=None, description="A field: a new file begins only where its value changes.")
    naming: str = Field(default="{stem}_{seq:04}.{ext}", description="The name of each file; {seq} counts from 1.")
    repeat_header: bool = Field(default=True, description="Whether every file has the header, or the first one alone.")
    oversize_group: Literal["warn", "error", "allow"] = Field(default="warn", description="What happens where one group alone exceeds the limit: a warning, exit code 4, or nothing.")


class ChangelogFile(Strict):
    """A file with the changes of each run."""

    path: str = Field(description="The path of the file; {epoch} or {epoch:6} belongs in it.")
    form: Literal["two", "retract", "upsert", "single", "debezium", "flink"] = Field(default="two", description="How op rows are written.")
    format: Literal["jsonl", "json", "csv", "parquet", "avro"] = Field(default="jsonl", description="The format of the file.")


class History(Strict):
    """What an output writes of the past: what was so, and since when."""

    key: Annotated[list[str], Field(min_length=1, description="The columns that name the thing with a history (E471).", examples=[["customer_id"]])]
    valid_from: Annotated[str | None, Field(description="A column of type date, date_time or int: from when a row holds (E473).", examples=["valid_on"])] = None
    recorded: Annotated[
        Literal["run", "epoch"] | None,
        Field(description="Write when rows were recorded: by the begin of the run, or by the number of its epoch. `run` where `valid_from` is absent too."),
    ] = None
    deleted: Annotated[str | None, Field(description="A CXL predicate for rows that say that the thing ended.", examples=["is_closed"])] = None


class Closed(Strict):
    """Rows that were published for good, and what becomes of later changes of them."""

    when: str = Field(min_length=1, description='A CXL predicate over the written columns, such as month < "2026-10": rows of closed periods (E476).', examples=["month < '2026-01'"])
    late: Literal["stop", "book"] = Field(
        default="stop", description="What a later change of a closed period does: stop ends the run with exit code 3, book writes its difference as rows of the open period."
    )
    into: dict[str, str | int | bool] = Field(
        default_factory=dict, description='The open period that late: book writes into, as a value for each column that names it: { month: "2026-10" } (E477).', examples=[{"month": "2026-02"}]
    )
    figures: list[str] = Field(default_factory=list, description="The columns that add up, of type int or decimal; a booked row has their differences (E477).", examples=[["amount"]])


def _closed(value: Any) -> Any:
    return {"when": value} if isinstance(value, str) else value


def _without_path(schema: dict[str, Any]) -> None:
    """A table of a database has no path."""
    schema["required"] = [name for name in schema.get("required", ()) if name != "path"]


class OutputColumn(Strict):
    """A decimal column of the file: the value is rounded half to even to `scale`, and has at most `precision` digits (38)."""

    name: str = Field(min_length=1, description="The column, by the name that is written.", examples=["amount"])
    type: str = Field(default="decimal", description="decimal, or decimal(precision,scale) (E226).", examples=["decimal"])
    scale: Digits = Field(default=None, description="The digits behind the point; the value is rounded half to even (E225).", examples=[2])
    precision: Digits = Field(default=None, description="The most digits in all; by default 38. A value with more ends the run with exit code 4 (E225).", examples=[12])


class OutputConfig(Strict):
    """Which fields are written, in which order and form, and where."""

    model_config = ConfigDict(json_schema_extra=_without_path)

    name: str | None = Field(default=None, description="Text for people; the node's own name is what commands use.")
    type: str = Field(description="The format, such as csv, json or parquet; delta is a Delta table, sql a table of a database (E217).")
    description: str | None = Field(default=None, description="Text for people; it has no effect.", examples=["Revenue for the accounts"])
    path: str = Field(description="The file or table, relative to the pipeline's folder; tokens such as {channel} are filled in (E230, E231, E232, E322, E324).")
    include_unmapped: bool = Field(default=True, description="Whether all columns are written, or only what the nearest transform upstream emits.")
    include_correlation_keys: bool = Field(default=False, description="Whether the columns $ck.FIELD are written.")
    include_header: bool = Field(default=True, description="Whether a CSV file begins with the names of its columns.")
    include_metadata: Literal["all", "none"] | list[str] = Field(default="none", description="Which $meta values are written, as columns meta.NAME behind all others.")
    with_provenance: bool = Field(default=False, description="Whether columns say when and why each row last changed: provenance.epoch, changed_at, cause, reason (E475).")
    preserve_nulls: bool = Field(default=False, description="Whether a missing value is null in JSON and left out in XML; without it, it is empty text.")
    mapping: dict[str, str] = Field(default_factory=dict, description="Columns to rename in place: new name to field (E251, E326).")
    exclude: list[str] = Field(default_factory=list, description="Fields that are not written, by their names upstream (E251).")
    options: dict[str, Any] = Field(default_factory=dict, description="The options of the format (E218).")
    schema_: list[OutputColumn] | dict[str, Any] | str | None = Field(
        default=None, alias="schema", description="Decimal columns with scale and precision; of a fixed-width file its layout, as a map or a path (E225, E226).", examples=[[{"name": "amount", "scale": 2}]]
    )
    format_schema: Any = Field(default=None, description="The layout of a fixed-width file, as a map or the path of a YAML file; schema takes it too.", examples=["layouts/orders.yaml"])
    sort_order: SortOrder = Field(default_factory=list, description="The order of the rows; by default that of the input (E251).")
    split: Split | None = Field(default=None, description="How the output is cut into several files (E323, E338, E345).", examples=[{"max_records": 10_000}])
    if_exists: Literal["error", "overwrite", "unique_suffix"] = Field(
        default="error", description="What happens to a file that this pipeline did not write: error stops with exit code 4, overwrite replaces it, unique_suffix writes beside it."
    )
    unique_suffix_width: Annotated[int, Field(ge=0, le=20)] = Field(default=0, description="The digits of the suffix, with zeros before the number: with 3 it is out-001.csv.", examples=[3])
    write_meta: bool = Field(default=False, description="Whether a file OUTPUT.meta.json with counts is written beside the output (E348).")
    correlation_fanout_policy: Literal["any", "all", "primary"] | None = Field(default=None, description="Overrides the policy of error_handling for failures at this node.")
    changelog: ChangelogFile | None = Field(default=None, description="A file with the changes of each epoch.")
    history: History | None = Field(default=None, description="Writes versions with their times in place of the rows of today (E470, E471, E472, E473).", examples=[{"key": ["customer_id"], "valid_from": "valid_on"}])
    closed: Annotated[Closed | None, BeforeValidator(_closed, json_schema_input_type=str | Closed)] = Field(
        default=None,
        description='A CXL predicate over the written columns, such as month < "2026-10": its published rows change with --reopen alone. A map says what else becomes of late changes (E476).',
    )
    connection: Annotated[str | None, Field(description="The name of a connection in errata.toml, of an output of type sql (E600, E607).")] = None
    table: Annotated[str | None, Field(description="The table that an output of type sql writes: table, schema.table, or with double quotes (E610, E612).")] = None
    mode: Annotated[Literal["mirror", "op_rows"] | None, Field(description="Whether the table of a SQL output has the live rows, which is the default, or all op rows.")] = None
    form: Annotated[Literal["two", "retract", "upsert", "single", "debezium", "flink"] | None, Field(description="The form of the op rows of a SQL output.")] = None
    primary_key: Annotated[list[str], Field(description="The columns, as they are written, that are the primary key of the table of a SQL output (E611).")] = Field(default_factory=list)
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
