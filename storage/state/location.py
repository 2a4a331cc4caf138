"""Where the state of a pipeline is: `<workspace>/.errata/<pipeline>/`, or below the folder or URI that the user names."""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from storage import durable
from storage.errors import ConnectionFault, StorageError
from storage.process_folders import temporary_folder
from storage.stores.client import Bucket, bucket_of
from storage.stores.connections import StoreConnection, Stores, of_environment
from storage.uris import is_local, settings_refused

__all__ = ["State", "state_of", "temporary_state"]

STATE_FOLDER = ".errata"
REFUSED_BY_DELTA = re.compile(r"[\x00-\x1f\x7f\[\]^|\\]|%[0-9A-Fa-f]{2}")


@dataclass(frozen=True, slots=True)
class State:
    """The tables and files of one pipeline's state.

    Attributes:
        root: An absolute path or a URI.
        connection: The connection of `errata.toml` that covers it; None where the environment has the settings.
    """

    root: str
    connection: StoreConnection | None = field(default=None, compare=False, repr=False)

    @property
    def local(self) -> bool:
        """Whether the state is a local folder."""
        return is_local(self.root)

    @property
    def ledger(self) -> str:
        """Place of the ledger."""
        return f"{self.root}/ledger"

    @property
    def claim(self) -> str:
        """Place of the claim: a file, or an object."""
        return f"{self.root}/claim"

    def claim_object(self) -> tuple[Bucket, str]:
        """Return the bucket and the key of the claim in an object store."""
        return bucket_of(self.claim, self.connection or of_environment(self.root))

    def changelog(self, port: str) -> str:
        """Return the place of the changelog table of a node's port (`orders`, `orders.errors`)."""
        return f"{self.root}/changelog/{port}"

    def accumulators(self, node: str) -> str:
        """Return the place of the table with an operator's own state, or an arrangement of its rows."""
        return f"{self.root}/state/{node}"

    def table(self, path: str) -> str:
        """Return the place of a table by its path inside the state folder (`changelog/orders`), as the ledger names it."""
        return f"{self.root}/{path}"

    def exists(self) -> bool:
        """Return whether a local state folder exists. True for an object store, where only the ledger can tell."""
        return Path(self.root).is_dir() if self.local else True

    def prepare(self) -> None:
        """Create the local folder for its owner only, and exclude it from version control. Raises StorageError, also where settings keep an object store out of reach."""
        if not self.local:
            if setting := settings_refused(self.root):
                raise StorageError(self.root, setting)
            try:
                (self.connection or of_environment(self.root)).require_library()
            except ConnectionFault as fault:
                raise StorageError(self.root, str(fault)) from None
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
        """Remove the tables and files of a local state (`--ephemeral`), except the claim, which its holder releases."""
        if self.local and Path(self.root).exists():
            durable.step("forget:state", self._remove)

    def _remove(self) -> None:
        for one in Path(self.root).iterdir():
            if one.is_dir():
                shutil.rmtree(one)
            elif str(one) != self.claim:
                one.unlink()


def state_of(pipeline: str, workspace: Path, *, named: str | None = None, configured: str | None = None, stores: Stores | None = None) -> State:
    """Return the state of a pipeline, in a folder of its own.

    Args:
        pipeline: Name of the pipeline.
        workspace: Folder of the workspace. Its `.errata` holds the state unless another place is given.
        named: Place of `--state` or ERRATA_STATE, relative to the working directory. Comes first.
        configured: `[state] path` of the workspace file, relative to the workspace.
        stores: The object stores of the workspace.
    """
    root = _under(configured or STATE_FOLDER, workspace, pipeline) if named is None else _under(named, Path.cwd(), pipeline)
    return State(root, None if is_local(root) or stores is None else stores.covering(root))


def _under(place: str, base: Path, pipeline: str) -> str:
    if not is_local(place):
        return f"{place.rstrip('/')}/{pipeline}"
    return str((base / place.removeprefix("file://")).resolve() / pipeline)


def temporary_state(pipeline: str) -> State:
    """Return a state in a new temporary folder, removed by `forget` or at the end of the process."""
    return State(f"{temporary_folder('state')}/{pipeline}")
