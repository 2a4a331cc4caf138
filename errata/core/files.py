"""Files that appear whole or not at all: written beside their target and renamed over it (QUALITY.md, "Files")."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a text file, UTF-8 with LF. Raises OSError; the old file stands until the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask; it can only be read by setting it."""
    current = os.umask(0o077)
    os.umask(current)
    return current
