"""Where state lives: `<workspace>/.errata/<pipeline>/`, or under the folder or URI that the user names (CONTRACT.md, "Files of a project")."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from storage.errors import StorageError
from storage.files.object_stores import require_settings
from storage.state import durable

__all__ = ["State", "engine_uri", "is_local", "state_of", "temporary_state"]

STATE_FOLDER = ".errata"
REFUSED_BY_DELTA = re.compile(r"[\x00-\x1f\x7f\[\]^|\\]|%[0-9A-Fa-f]{2}")
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./-]+")


def is_local(uri: str) -> bool:
    """Whether a path or URI names a place in the local file system."""
    return "://" not in uri or uri.startswith("file://")


@dataclass(frozen=True, slots=True)
class State:
    """The tables and files of one pipeline's state. `root` is an absolute path or a URI."""

    root: str

    @property
    def local(self) -> bool:
        """Whether the state is a local folder."""
        return is_local(self.root)

    @property
    def ledger(self) -> str:
        """Where the ledger is."""
        return f"{self.root}/ledger"

    @property
    def claim(self) -> str:
        """Where the claim is kept: a file locally, else a Delta table."""
        return f"{self.root}/claim"

    def changelog(self, port: str) -> str:
        """The changelog table of a node's port (`orders`, `orders.errors`)."""
        return f"{self.root}/changelog/{port}"

    def accumulators(self, node: str) -> str:
        """The table of an operator's own state, or of an arrangement of its rows."""
        return f"{self.root}/state/{node}"

    def table(self, path: str) -> str:
        """The table that the ledger names by its path inside the state folder (`changelog/orders`)."""
        return f"{self.root}/{path}"

    def exists(self) -> bool:
        """Whether a local state folder is there; an object store is asked for its ledger instead."""
        return Path(self.root).is_dir() if self.local else True

    def prepare(self) -> None:
        """Make the local folder, for its owner only, and keep it out of version control. Raises StorageError, also where an object store cannot be reached as things are."""
        if not self.local:
            require_settings(self.root)
            return
        refused = REFUSED_BY_DELTA.search(self.root)
        if refused:
            raise StorageError(self.root, f"Delta Lake cannot use a path with {refused[0]!r} in it; name another place with --state")
        if not Path(self.root, ".gitignore").exists():
            durable.step("prepare:state", self._make)

    def _make(self) -> None:
        try:
            Path(self.root).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            Path(self.root).mkdir(exist_ok=True, mode=0o700)
            Path(self.root, ".gitignore").write_text("*\n")
        except OSError as problem:
            raise StorageError(self.root, problem.strerror or str(problem)) from problem

    def forget(self) -> None:
        """Remove the tables and files of a local state (`--ephemeral`), all but the claim, which its holder lets go."""
        if self.local and Path(self.root).exists():
            durable.step("forget:state", self._remove)

    def _remove(self) -> None:
        for one in Path(self.root).iterdir():
            if one.is_dir():
                shutil.rmtree(one)
            elif str(one) != self.claim:
                one.unlink()


def state_of(pipeline: str, workspace: Path, *, named: str | None = None, configured: str | None = None) -> State:
    """The state of a pipeline, in a folder of its own.

    It is under `named` (`--state`, ERRATA_STATE; relative to where one stands), else under `configured` (`[state] path` of the
    workspace file; relative to it), else in the workspace's `.errata`.
    """
    if named is not None:
        return State(_under(named, Path.cwd(), pipeline))
    return State(_under(configured or STATE_FOLDER, workspace, pipeline))


def _under(place: str, base: Path, pipeline: str) -> str:
    if not is_local(place):
        return f"{place.rstrip('/')}/{pipeline}"
    return str((base / place.removeprefix("file://")).resolve() / pipeline)


def temporary_state(pipeline: str) -> State:
    """A state folder of a new temporary place, removed by `forget` or at the end of the process."""
    folder = tempfile.mkdtemp(prefix="errata-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return State(f"{folder}/{pipeline}")


Born: TypeAlias = tuple[int, int]
"""When and as what file the first entry of a table's log was written: another table at the same place has another one."""

_aliases: dict[str, str] = {}
_shown: dict[str, tuple[Born, str]] = {}
"""The tables that engines were shown, by their places, and where."""


def engine_uri(uri: str) -> str:
    """A table's place as engines take it: local ones may be links, which last as long as the process.

    Sail misreads blanks, brackets and non-ASCII letters in local paths (it writes beside the table), so such a folder has a link with a plain name.
    It keeps what it knows of a version of a table by the place, so a table that takes the place of one that was deleted has a link of its own.
    """
    if not is_local(uri):
        return uri
    born, (before, place) = _born(uri), _shown.get(uri, (None, ""))
    if born is None or born == before:
        return place or _plain(uri)
    place = _plain(uri) if before is None else _beside(uri, _linked)
    _shown[uri] = born, place
    return place


def _born(uri: str) -> Born | None:
    """Of the table that is at a place; None where its log does not begin with its first entry."""
    try:
        first = Path(uri.removeprefix("file://"), "_delta_log", f"{0:020}.json").stat()
    except OSError:
        return None
    return first.st_ino, first.st_mtime_ns


def _plain(uri: str) -> str:
    """A place whose name engines read."""
    return uri if PLAIN_PATH.fullmatch(uri) else _beside(uri, _alias)


def _beside(uri: str, link: Callable[[str], str]) -> str:
    """A place by way of a link to its folder."""
    folder, _, name = uri.removeprefix("file://").rpartition("/")
    return f"{link(folder)}/{name}"


def _alias(folder: str) -> str:
    if folder not in _aliases:
        _aliases[folder] = _linked(folder)
    return _aliases[folder]


def _linked(folder: str) -> str:
    place = tempfile.mkdtemp(prefix="errata-links-", dir=_links())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    link = Path(place, blake2b(folder.encode(), digest_size=8).hexdigest())
    link.symlink_to(folder, target_is_directory=True)
    return str(link)


def _links() -> str:
    """The folder for links: the one for temporary files, or one that there is on every Unix where engines do not read that one's name."""
    given = tempfile.gettempdir()
    return given if PLAIN_PATH.fullmatch(given) or not os.access("/tmp", os.W_OK) else "/tmp"  # noqa: S108  # a folder of one's own is made in it
