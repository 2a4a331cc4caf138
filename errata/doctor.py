"""`errata doctor`: what Errata needs of the machine, what is there, and how to repair what is not."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

Row = Mapping[str, str]

_OLDEST_JAVA = 17
_PACKAGES = ("pyspark", "delta-spark", "pysail", "deltalake", "pyarrow", "polars", "pandas", "google-re2")
_JAVA_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_MIN_FREE = 2 * 1024**3


def examine() -> Iterator[Row]:
    """One row a thing: what, verdict (`ok`, `warning` or `missing`), what was found, how to repair it. Starts no engine."""
    yield _row("python", "ok" if sys.version_info >= (3, 11) else "missing", platform.python_version(), "install Python 3.11 or later")
    packages = [_package(name) for name in _PACKAGES]
    yield from packages
    java = _java()
    yield java
    yield _engine(java, packages)
    yield from _folders()


def _row(what: str, verdict: str, found: str, repair: str = "") -> Row:
    return {"what": what, "verdict": verdict, "found": found, "repair": "" if verdict == "ok" else repair}


def _package(name: str) -> Row:
    try:
        return _row(name, "ok", version(name))
    except PackageNotFoundError:
        return _row(name, "missing", "", f"pip install {name}, at the version that Errata's requirements name")


def _java() -> Row:
    """The Java that Spark would start. Without one there is still the sail engine."""
    repair = f"install Java {_OLDEST_JAVA} or 21, or use --engine sail"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program or not Path(program).is_file():
        return _row("java", "warning", "not found", repair)
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return _row("java", "warning", f"{program}: {error}", repair)
    match = _JAVA_VERSION.search(answer)
    if not match:
        return _row("java", "warning", f"{program} does not tell its version", repair)
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])
    return _row("java", "ok" if major >= _OLDEST_JAVA else "warning", f"{major} ({program})", repair)


def _engine(java: Row, packages: list[Row]) -> Row:
    """What `--engine auto` would take."""
    there = {row["what"] for row in packages if row["verdict"] == "ok"}
    if java["verdict"] == "ok" and {"pyspark", "delta-spark"} <= there:
        return _row("engine", "ok", "auto means spark")
    if {"pyspark", "pysail"} <= there:
        return _row("engine", "ok", "auto means sail")
    return _row("engine", "missing", "none", f"install Java {_OLDEST_JAVA} and pyspark, or pysail")


def _folders() -> Iterator[Row]:
    """Places that are written to: the working directory, the temporary folder, the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for what, folder in (("folder", Path.cwd()), ("temporary folder", Path(tempfile.gettempdir())), ("cache", cache)):
        place = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        free = shutil.disk_usage(place).free
        writable = os.access(place, os.W_OK)
        verdict = "missing" if not writable else "ok" if free >= _MIN_FREE else "warning"
        found = f"{folder}: {free / 1024**3:,.1f} GiB free" if writable else f"{folder} cannot be written"
        yield _row(what, verdict, found, "make room" if writable else "change its permissions, or work in another folder")
