"""The Delta jars for Spark: resolved once by Ivy, which comes with Spark, then taken from the user's cache; no network afterwards.

Two jars are all that Delta needs; a transitive resolution would fetch 33.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from storage.engines.errors import EngineUnavailable
from storage.engines.spark.cache import cache_folder
from storage.engines.spark.java import Java

__all__ = ["DELTA_JARS", "DELTA_VERSION", "Jar", "delta_jars", "found_jars", "spark_home"]

DELTA_VERSION = "4.4.0"
PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of the Maven repository, by its module and the SHA-256 of its bytes."""

    module: str
    digest: str

    @property
    def file(self) -> str:
        """Its file name."""
        return f"{self.module}-{DELTA_VERSION}.jar"


DELTA_JARS = (
    Jar("delta-spark_4.2_2.13", "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"),
    Jar("delta-storage", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)


def spark_home() -> Path:
    """Where Spark's own jars and scripts are: SPARK_HOME, else the pyspark package."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def delta_jars(java: Java) -> list[Path]:
    """The jars, fetched where they are not there yet. Raises `EngineUnavailable`."""
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
    """The jars that are there without asking the network; empty unless both are."""
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
    """The line of Ivy's report that says what went wrong."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    return next(
        (line for line in lines if "UnknownHost" in line or "timed out" in line or "not found" in line or "ERROR" in line.upper()), ""
    )
