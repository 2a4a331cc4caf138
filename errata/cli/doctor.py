"""`errata doctor`: what Errata needs from the machine, what is there, and how to repair the rest."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from errata.core.options import EngineKind
from storage.engines.choice import MEMORY_OF_WORK, shown_bytes
from storage.engines.machine import machine_memory
from storage.engines.private_port import filters_work, others_logged_on
from storage.engines.spark.jars import DELTA_VERSION, cache_folder, found_jars
from storage.engines.spark.java import OLDEST_JAVA, any_java
from storage.engines.spark.user_jars import NEEDED_BY_S3, RECIPE, jars_missing
from storage.uris import on_s3, settings_missing, settings_refused

Row = Mapping[str, str]

_PACKAGES = ("pyspark", "delta-spark", "pysail", "deltalake", "pyarrow", "polars", "pandas", "google-re2")
_MIN_FREE = 2 * 1024**3


def examine(engine: EngineKind = "auto") -> Iterator[Row]:
    """Yield a row for each thing that is needed, without starting an engine.

    Columns: what, verdict (`ok`, `warning` or `missing`), found, repair.
    """
    yield _row("python", "ok" if sys.version_info >= (3, 11) else "missing", platform.python_version(), "install Python 3.11 or later")
    packages = [_package(name) for name in _PACKAGES]
    yield from packages
    yield from _extras()
    java = _java()
    yield java
    if java["verdict"] == "ok":
        yield _delta_jars()
        yield _class_archive()
    yield _engine(engine, java, packages)
    yield _engine_port()
    yield from _s3(java)
    yield from _folders()


def _row(what: str, verdict: str, found: str, repair: str = "") -> Row:
    return {"what": what, "verdict": verdict, "found": found, "repair": "" if verdict == "ok" else repair}


def _package(name: str) -> Row:
    try:
        return _row(name, "ok", version(name))
    except PackageNotFoundError:
        return _row(name, "missing", "", f"pip install {name}, at the version that Errata's requirements name")


_EXTRAS: Mapping[str, tuple[str, ...]] = {
    "postgresql": ("adbc-driver-postgresql", "adbc-driver-manager"), "duckdb": ("duckdb",), "databases": ("connectorx",), "excel": ("fastexcel", "XlsxWriter"), "avro": ("fastavro",), "objects": ("obstore",), "odf": ("cryptography", "flatbuffers"),
    "ui": ("starlette", "uvicorn", "Jinja2", "graphlay"), "lsp": ("pygls", "lsprotocol"),
}  # fmt: skip
"""The packages of each extra of pyproject.toml."""


def _extras() -> Iterator[Row]:
    """Extras that only some pipelines and commands ask for. None is needed."""
    for extra, names in _EXTRAS.items():
        rows = [_package(name) for name in names]
        lacking = [row["what"] for row in rows if row["verdict"] != "ok"]
        found = f"not there; pip install 'errata[{extra}]' where you need it" if lacking else ", ".join(f"{row['what']} {row['found']}" for row in rows)
        yield _row(f"extra {extra}", "ok", found)


def _java() -> Row:
    """The Java that Spark would start. Without one the sail engine still works."""
    java = any_java()
    repair = f"install Java {OLDEST_JAVA} or 21 and put it on PATH or in JAVA_HOME, or use --engine sail"
    if java is None:
        return _row("java", "warning", "not found", repair)
    return _row("java", "ok" if java.suits else "warning", f"{java.major} ({java.path})", repair)


def _delta_jars() -> Row:
    """The jars for Delta tables in Spark: cached, or fetched by the first run."""
    found = found_jars()
    repair = "run once with --engine spark while connected, or name a folder that holds them in ERRATA_DELTA_JARS"
    if not found:
        return _row("delta jars", "warning", f"{DELTA_VERSION} is not in the cache yet", repair)
    return _row("delta jars", "ok", f"{DELTA_VERSION} ({found[0].parent})")


def _class_archive() -> Row:
    """The class archive, which halves the start of Spark. The first session of a machine writes it."""
    written = sorted((cache_folder() / "jvm").glob("*.jsa"))
    if not written:
        return _row("class archive", "ok", "none yet: the first session of Spark writes it as it ends")
    return _row("class archive", "ok", f"{sum(one.stat().st_size for one in written) / 1024**2:,.0f} MiB ({written[0].parent})")


_NEEDED = {"spark": "Java 17, pyspark and delta-spark", "sail": "pyspark and pysail"}


def _engine(asked: EngineKind, java: Row, packages: list[Row]) -> Row:
    """The engine that a run would take."""
    there = {row["what"] for row in packages if row["verdict"] == "ok"}
    spark = java["verdict"] == "ok" and {"pyspark", "delta-spark"} <= there
    found = [engine for engine, works in (("spark", spark), ("sail", {"pyspark", "pysail"} <= there)) if works]
    if asked == "auto":
        return _row("engine", "ok" if "sail" in found else "missing", _auto(spark=spark) if found else "none", f"install {_NEEDED['sail']}")
    return _row("engine", "ok" if asked in found else "missing", f"{asked}, as --engine or ERRATA_ENGINE says", f"install {_NEEDED[asked]}, or choose another engine")


def _auto(*, spark: bool) -> str:
    """The engine that `auto` takes on this machine."""
    return f"auto means sail, and spark for more than {shown_bytes(machine_memory() // MEMORY_OF_WORK)} of work" if spark else "auto means sail"


def _engine_port() -> Row:
    """Whether other users of this machine can use the engine of a run."""
    if filters_work():
        return _row("engine's port", "ok", "closed to other users")
    others = ", ".join(others_logged_on()) or "nobody"
    repair = "use --engine spark on machines that others use; docs/reference/security.md tells more"
    return _row("engine's port", "warning", f"open to other users of this machine, of whom {others} is logged on", repair)


def _s3(java: Row) -> Iterator[Row]:
    """The settings for S3, where the environment has some or names a state there."""
    state = os.environ.get("ERRATA_STATE", "")
    if not on_s3(state) and not any(name.startswith("AWS_") for name in os.environ):
        return
    missing, _, repair = settings_missing("s3://").partition(": ")
    verdict = "missing" if settings_refused("s3://") else "warning" if missing else "ok"
    yield _row("s3 settings", verdict, missing or "AWS_…", repair)
    if on_s3(state) and find_spec("obstore") is None:
        yield _row("s3 claim", "missing", "obstore is not installed", "pip install 'errata[objects]'")
    if java["verdict"] == "ok":
        lacking = jars_missing()
        yield _row("s3 for spark", "warning" if lacking else "ok", lacking or ", ".join(NEEDED_BY_S3), f"see {RECIPE}; or use --engine sail, which needs no jar")


def _folders() -> Iterator[Row]:
    """The folders that Errata writes to: the working directory, the temporary folder, the user's cache."""
    for what, folder in (("folder", Path.cwd()), ("temporary folder", Path(tempfile.gettempdir())), ("cache", cache_folder())):
        place = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        free = shutil.disk_usage(place).free
        writable = os.access(place, os.W_OK)
        verdict = "missing" if not writable else "ok" if free >= _MIN_FREE else "warning"
        found = f"{folder}: {free / 1024**3:,.1f} GiB free" if writable else f"{folder} cannot be written"
        yield _row(what, verdict, found, "make room" if writable else "change its permissions, or work in another folder")
