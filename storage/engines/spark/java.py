"""The Java on this machine: that of JAVA_HOME, else the one on PATH."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["OLDEST_JAVA", "Java", "any_java", "find_java"]

OLDEST_JAVA = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its executable, major version, and the line with its version."""

    path: Path
    major: int
    banner: str

    @property
    def suits(self) -> bool:
        """Whether Spark runs on this Java."""
        return self.major >= OLDEST_JAVA


def find_java() -> Java | None:
    """Return the Java for Spark. None where there is none, or where it is too old."""
    java = any_java()
    return java if java is not None and java.suits else None


def any_java() -> Java | None:
    """Return the first Java found, whatever its version."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    return _examined(found) if found else None


@lru_cache
def _examined(path: str) -> Java | None:
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return Java(Path(path), int(match[1]), answer.stderr.splitlines()[0]) if match else None
