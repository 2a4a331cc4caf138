"""Delta jars for Spark, and the user's cache folder that holds them.

Ivy, which is part of Spark, fetches the jars once; later runs take them from the cache and need no network. Delta needs only two jars,
so nothing is resolved transitively: that would fetch 33.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from storage.engines.spark.java import Java
from storage.errors import EngineUnavailable

__all__ = ["DELTA_JARS", "DELTA_VERSION", "Jar", "cache_folder", "delta_jars", "found_jars", "spark_home"]

DELTA_VERSION = "4.4.0"
PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of the Maven repository: its module and the SHA-256 of its bytes."""

    module: str
    digest: str

    @property
    def file(self) -> str:
        """File name of the jar."""
        return f"{self.module}-{DELTA_VERSION}.jar"


DELTA_JARS = (
    Jar("delta-spark_4.2_2.13", "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"),
    Jar("delta-storage", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def cache_folder() -> Path:
    """Return the folder for jars and JVM archives that later runs use: ERRATA_CACHE, else `errata` in XDG_CACHE_HOME, else `~/.cache/errata`.

    Does not create the folder.
    """
    named = os.environ.get("ERRATA_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "errata"


def spark_home() -> Path:
    """Return the folder of Spark's own jars and scripts: SPARK_HOME, else the pyspark package."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def delta_jars(java: Java) -> list[Path]:
    """Return the Delta jars; fetch them if they are missing. Raises `EngineUnavailable`."""
    found = found_jars()
    if found:
        return found
    if os.environ.get("ERRATA_DELTA_JARS"):
        raise EngineUnavailable.no_jars(
            f"{os.environ['ERRATA_DELTA_JARS']} (ERRATA_DELTA_JARS) does not hold {DELTA_JARS[0].file} and {DELTA_JARS[1].file}"
        )
    for jar in DELTA_JARS:
        _fetch(jar, java)
    return found_jars()


def found_jars() -> list[Path]:
    """Return the Delta jars on this machine. Empty unless both are there. Does not use the network."""
    paths = [_folder() / jar.file for jar in DELTA_JARS]
    return paths if all(path.is_file() for path in paths) else []


def _folder() -> Path:
    named = os.environ.get("ERRATA_DELTA_JARS")
    return Path(named) if named else cache_folder() / "jars"


def _fetch(jar: Jar, java: Java) -> None:
    _folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_folder()) as place:
        try:
            answer = subprocess.run(_ivy(jar, java, place), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        except subprocess.TimeoutExpired as slow:
            raise EngineUnavailable.no_jars(f"{jar.file} did not arrive in {PATIENCE_SECONDS} seconds") from slow
        fetched = Path(place, jar.file)
        if not fetched.is_file():
            raise EngineUnavailable.no_jars(_complaint(answer.stdout + answer.stderr) or f"{jar.file} was not found")
        if sha256(fetched.read_bytes()).hexdigest() != jar.digest:
            raise EngineUnavailable.no_jars(f"{jar.file} is not the file that was expected (its SHA-256 differs)")
        shutil.move(fetched, _folder() / jar.file)


def _ivy(jar: Jar, java: Java, place: str) -> list[str]:
    settings = os.environ.get("ERRATA_IVY_SETTINGS")
    return [
        str(java.path),
        *("-cp", f"{spark_home()}/jars/*"),
        "org.apache.ivy.Main",
        *(("-settings", settings) if settings else ()),
        *("-cache", f"{place}/cache", "-confs", "default", "-types", "jar", "-notransitive"),
        *("-dependency", "io.delta", jar.module, DELTA_VERSION),
        *("-retrieve", f"{place}/[artifact]-[revision].[ext]"),
    ]


def _complaint(output: str) -> str:
    """Return the line of Ivy's report that names the problem."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    return next(
        (line for line in lines if "UnknownHost" in line or "timed out" in line or "not found" in line or "ERROR" in line.upper()), ""
    )
