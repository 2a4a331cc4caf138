"""Configuration of a combine node."""

from typing import Literal

from operators.core.config import Strict


class NamedKeys(Strict):
    """The correlation keys that an output carries, by name."""

    named: list[str]


class CombineConfig(Strict):
    """Predicate, cardinality, what becomes of a driver without match, body, driver, strategy hint, correlation keys."""

    where: str
    match: Literal["first", "all", "collect"] = "first"
    on_miss: Literal["null_fields", "skip", "error"] = "null_fields"
    cxl: str = ""
    drive: str | None = None
    strategy: Literal["auto", "grace_hash"] = "auto"
    propagate_ck: Literal["driver", "all"] | NamedKeys
    correlation_fanout_policy: Literal["any", "all", "primary"] | None = None
