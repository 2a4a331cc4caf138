"""Files that are replaced in one step, sizes as text, and kinds of file systems."""

import os
import re
import tempfile
from pathlib import Path
from typing import Literal

_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs"})
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "afs"})
_MOUNTS = Path("/proc/self/mounts")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_SIZE = re.compile(r"([0-9]+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8 with LF, and rename it over the old one once it is complete. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    written = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        written.chmod(0o666 & ~_umask())
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask. It can only be read by setting it."""
    current = os.umask(0o077)
    os.umask(current)
    return current


def binary_size(text: str | int) -> int | None:
    """Return the bytes of a size such as `512M`, in powers of 1024. None for no size, and for zero bytes."""
    match = _SIZE.fullmatch(str(text).strip())
    return (int(match[1]) * _UNITS[match[2].upper()] or None) if match else None


def filesystem(folder: Path) -> Literal["memory", "network", "local"]:
    """Return the kind of the file system that holds a folder, as Linux reports it; `local` where the system does not report one."""
    kind = _mounted(folder.resolve())
    if kind in _MEMORY:
        return "memory"
    return "network" if kind in _NETWORK else "local"


def _mounted(folder: Path) -> str:
    """The file system's type at the longest mount point above the folder."""
    best, kind = "", ""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, point, type_, *_ = line.split(" ")
        place = point.encode().decode("unicode_escape")
        inside = os.path.commonpath([place, folder]) == place.rstrip("/") or place == "/"
        if inside and len(place) >= len(best):
            best, kind = place, type_
    return kind
