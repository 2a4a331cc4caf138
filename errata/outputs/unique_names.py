"""Free names beside files that another program wrote (`if_exists: unique_suffix`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from storage.stores.places import Place


def alternatives(path: Place, width: int) -> Iterator[Place]:
    """A path and its alternatives: `-1`, `-2` and so on before the extension, in at least `width` digits."""
    yield path
    for number in count(1):
        yield path.with_name(f"{path.stem}-{str(number).zfill(width)}{path.suffix}")


@dataclass(slots=True)
class FreeNames:
    """The file names of one output in a run: the last epoch's names, else names that are neither foreign nor another output's."""

    width: int
    is_foreign: Callable[[Place], bool]
    before: dict[Place, Place]
    """The files of the last epoch, by the path that was wanted."""
    reserved: frozenset[Place]
    """Places at which files of this run are wanted: none takes the place of another."""
    _taken: set[Place] = field(init=False)

    def __post_init__(self) -> None:
        self._taken = set(self.before.values())

    def __call__(self, wanted: Place) -> Place:
        """Where to write what is wanted at a path."""
        found = self.before.pop(wanted, None) or next(one for one in alternatives(wanted, self.width) if self._is_free(one, wanted))
        self._taken.add(found)
        return found

    def _is_free(self, path: Place, wanted: Place) -> bool:
        return path not in self._taken and (path == wanted or path not in self.reserved) and not self.is_foreign(path)
