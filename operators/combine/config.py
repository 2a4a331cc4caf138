"""Configuration of a combine node."""

from typing import Literal

from pydantic import Field

from operators.core.config import Strict


class NamedKeys(Strict):
    """The correlation keys that an output carries, by name."""

    named: list[str] = Field(description="The fields of correlation keys that joined rows carry.", examples=[["order_id"]])


class CombineConfig(Strict):
    """Predicate, cardinality, what becomes of a driver without match, body, driver, strategy hint, correlation keys."""

    where: str = Field(description="The CXL predicate over inputs, such as orders.id == items.order_id; comparisons are joined by and (E305).")
    match: Literal["first", "all", "collect"] = Field(default="first", description="Which matches of a driving row count: the first, all of them, or all of them in one array (E313).")
    on_miss: Literal["null_fields", "skip", "error"] = Field(
        default="null_fields", description="What becomes of a driving row without a match: null_fields keeps it with nulls, skip drops it, error ends the run with exit code 3."
    )
    cxl: str = Field(default="", description="The CXL program over each match. Only what it emits comes out; match: collect takes none (E309, E311, E312).", examples=["emit total = orders.pieces * items.price"])
    drive: str | None = Field(default=None, description="The input whose rows drive; by default the first one (E306).", examples=["orders"])
    strategy: Literal["auto", "grace_hash"] = Field(default="auto", description="Accepted; it has no effect on results.")
    propagate_ck: Literal["driver", "all"] | NamedKeys = Field(description="Which correlation keys joined rows carry: the driver's, all, or named ones.")
    correlation_fanout_policy: Literal["any", "all", "primary"] | None = Field(default=None, description="Overrides the policy of error_handling for failures behind this node.")
