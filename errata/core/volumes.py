"""What kind of volume a folder stands on, where the system tells (Linux)."""

import os
from pathlib import Path
from typing import Literal

_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs"})
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "afs"})
_MOUNTS = Path("/proc/self/mounts")


def filesystem(folder: Path) -> Literal["memory", "network", "local"]:
    """The kind of the volume of a folder; `local` where the system does not tell."""
    kind = _kind(folder.resolve())
    if kind in _MEMORY:
        return "memory"
    return "network" if kind in _NETWORK else "local"


def _kind(folder: Path) -> str:
    """The type of the mount whose point is the longest part of the folder's path."""
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
