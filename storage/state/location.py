"""Where state lives: `<workspace>/.errata/<pipeline>/`, or under the folder or URI that the user names (CONTRACT.md, "Files of a project")."""

import atexit
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from storage import durable
from storage.errors import StorageError
from storage.uris import is_local, settings_refused

__all__ = ["State", "state_of", "temporary_state"]

STATE_FOLDER = ".errata"
REFUSED_BY_DELTA = re.compile(r"[\x00-\x1f\x7f\[\]^|\\]|%[0-9A-Fa-f]{2}")


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
            if setting := settings_refused(self.root):
                raise StorageError(self.root, setting)
            return
        if refused := REFUSED_BY_DELTA.search(self.root):
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
