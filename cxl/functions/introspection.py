"""Methods that inspect a value, null included."""

import logging
from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.functions.spark_call import Site
from cxl.types.rules import join
from cxl.types.types import ANY, BOOL, STRING, Kind, Type
from cxl.values import text

_LOG = logging.getLogger("cxl.trace")


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, spark: Any, **more: Any) -> None:
    settings = {"receiver": ANY, "category": "Introspection", "section": "Introspection & Debug", "takes_null": True, **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, spark=spark, **settings))


def _type_of_column(site: Site) -> Any:
    if site.receiver_type.is_dynamic:
        return None
    return site.f.when(site.receiver.isNotNull(), site.f.lit(site.kind.value)).otherwise(site.f.lit("Null"))


def _is_empty_column(site: Site) -> Any:
    if site.receiver_type.is_dynamic:
        return None
    return site.receiver.isNull() | (site.f.coalesce(site.receiver, site.f.lit("")) == "") if site.kind is Kind.STRING else site.receiver.isNull()


def _catch_column(site: Site) -> Any:
    types = (site.receiver_type, site.arg_types[0])
    if any(one.is_dynamic for one in types) or join(*types).is_dynamic:
        return None
    columns = (site.receiver, site.args[0])
    if any(one.kind is Kind.DECIMAL for one in types):
        return site.f.coalesce(*columns) if types[0].base == types[1].base else None
    if any(one.kind is Kind.FLOAT for one in types):
        columns = tuple(one.cast("double") for one in columns)
    return site.f.coalesce(*columns)


def _catch_type(receiver: Type, arguments: tuple[Type, ...]) -> Type:
    return arguments[0] if receiver.kind is Kind.NULL else join(receiver.base, arguments[0])


def _debug(value: Any, label: str | None = None) -> Any:
    _LOG.debug("%s: %s", label or "", text.display(value))
    return value


_entry("type_of", "The name of the value's type; `Null` for null.", ("42.type_of()", "Int"), text.type_of, _type_of_column, returns=STRING)
_entry("is_null", "Whether the value is null.", ("null.is_null()", "true"),
       lambda value: value is None, lambda c: c.receiver.isNull(), returns=BOOL)  # fmt: skip
_entry("is_empty", "Whether the value is null, an empty text or an empty array; an empty map is not.", ('"".is_empty()', "true"),
       lambda value: value is None or value in ("", []), _is_empty_column, returns=BOOL)  # fmt: skip
_entry("catch", "The value, or the fallback where it is null; the same as `??`, but the fallback is always evaluated.",
       ('null.catch("default")', "default"), lambda value, fallback: fallback if value is None else value, _catch_column,
       params=(Param("fallback"),), returns=_catch_type, null_arguments=True, unites=True)  # fmt: skip
_entry("debug", "The value itself; writes it to the log with the label.", ('42.debug("check")', "42"), _debug, lambda c: c.receiver,
       params=(Param("label", STRING, optional=True),), returns=lambda receiver, _: receiver, null_arguments=True)  # fmt: skip
