"""Discovery of the files of a source.

Paths and patterns are relative to a base folder. A pattern that is absolute, starts with `~`, contains NUL or has a `..` step is refused before any folder
is read (`PathRefused`, exit 1). A file that matches and whose real path is outside the base is refused. Only regular files are read.
"""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from errno import ELOOP, ENOENT, ENOTDIR
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import re2

from storage.errors import StorageError
from storage.files.errors import FormatError, InputError, NothingFound
from storage.files.stores import store_of
from storage.stores.client import Facts
from storage.stores.places import ObjectPath, Place, Places
from storage.uris import is_object

SortBy: TypeAlias = Literal["name", "created", "modified"]
_UNITS = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_TOGETHER = 2000
"""Characters of the globs that are matched at once, about: RE2 has a limit for what it compiles."""
_LITERAL = re.compile(r"[^*?\[]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class PathRefused(FormatError):
    """A path, pattern or bound of the configuration that is not allowed or invalid (exit 1)."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file of a source. `name` is its path below the base folder, with `/`, or its URI. Times are nanoseconds since 1970.

    `tag`: what a store has to tell versions of an object apart; empty for files of this machine.
    `identity`: device and number of a file of this machine, a link followed; None where nobody looked.
    `linked`: whether the path is that of a link.
    """

    at: Place | str
    name: str
    size: int
    mtime_ns: int
    created_ns: int
    tag: str = ""
    identity: tuple[int, int] | None = None
    linked: bool = False

    @property
    def path(self) -> Place:
        """Where the file is. Most files are only looked at and need no path: to make one takes as long as to ask the system for the size."""
        return Path(self.at) if isinstance(self.at, str) else self.at


@dataclass(frozen=True)
class FileQuery:
    """The keys of a source's configuration that select files: one matcher, filters, order, choice."""

    path: str | None = None
    glob: str | None = None
    regex: str | None = None
    paths: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    modified_after: str | None = None
    modified_before: str | None = None
    min_size: int | str | None = None
    max_size: int | str | None = None
    sort_by: SortBy | None = None
    sort_order: Literal["asc", "desc"] = "asc"
    take_first: int | None = None
    take_last: int | None = None
    recursive: bool = True
    on_no_match: Literal["error", "warn", "skip"] = "error"

    @property
    def searches(self) -> bool:
        """Whether a folder of this machine is searched, for a glob or a regular expression."""
        return self.regex is not None if self.glob is None else not is_object(self.glob)

    @cached_property
    def pattern(self) -> str:
        """The text of the matcher, for messages."""
        return self.path or self.glob or self.regex or ", ".join(self.paths or ())

    def check(self, *, allow_absolute: bool = False) -> None:
        """Raise PathRefused for errors that can be found without reading a folder."""
        if self.take_first is not None and self.take_last is not None:
            raise PathRefused("files: take_first and take_last exclude each other")
        for text in (self.path, self.glob, *(self.paths or ())):
            check_path(text, allow_absolute=allow_absolute)
        check_path(self.regex, allow_absolute=allow_absolute, steps=False)
        pattern_of(self.regex or "")
        size_bound(self.min_size)
        size_bound(self.max_size)
        now = datetime.now(UTC)
        time_bound(self.modified_after, now)
        time_bound(self.modified_before, now)


def check_path(text: str | None, *, allow_absolute: bool = False, steps: bool = True) -> None:
    """Raise PathRefused for a path of the configuration that could lead out of its folder. With `steps` a `..` between slashes is one."""
    if text is None or is_object(text):
        return
    if "\0" in text:
        raise PathRefused(f"path {text!r} holds a NUL character")
    if text.startswith("~"):
        raise PathRefused(f"path '{text}' starts with '~': write it relative to the pipeline's folder")
    if not allow_absolute and text.removeprefix("^").startswith("/"):
        raise PathRefused(f"path '{text}' is absolute: write it relative to the pipeline's folder, or run with --allow-absolute-paths")
    if steps and ".." in re.split(r"[/\\]", text):
        raise PathRefused(f"path '{text}' has a '..' step")


def size_bound(value: int | str | None) -> int | None:
    """The bytes of a size: a number, or a number with a decimal unit (`7B`, `10KB`, `1.5MB`, `1GB`). Raises PathRefused."""
    if value is None or isinstance(value, int):
        return value
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?B)?\s*", value)
    if not found:
        raise PathRefused(f"'{value}' is no size: write bytes, or a number with B, KB, MB or GB")
    return int(Decimal(found[1]) * _UNITS[found[2] or "B"])


def time_bound(value: str | None, now: datetime) -> datetime | None:
    """The instant of a bound: RFC 3339 text, or an age before `now` (`30s 15m 2h 7d`), at most that of year 1. Raises PathRefused."""
    if value is None:
        return None
    age = re.fullmatch(r"\s*([0-9]+)\s*([smhd])\s*", value)
    if age:
        try:
            return now - timedelta(**{_AGES[age[2]]: int(age[1])})
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise PathRefused(f"'{value}' is no time: write an RFC 3339 instant, or an age such as 30s, 15m, 2h or 7d") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def discover(query: FileQuery, base: Path | Places, *, allow_absolute: bool = False, now: datetime | None = None) -> list[FileStat]:
    """The files that a source reads, in order.

    Args:
        query: What is looked for.
        base: Where relative paths start, and which stores there are.
        allow_absolute: Whether absolute paths are allowed.
        now: The time from which ages count; by default the present.

    Raises:
        PathRefused: a path or pattern is not allowed
        InputError: `path` or `paths` name a file that does not exist, a store fails, or nothing matches and `on_no_match` is error
    """
    query.check(allow_absolute=allow_absolute)
    places = base if isinstance(base, Places) else Places(base)
    places = Places(places.folder.resolve(), places.stores)
    try:
        found = {file.name: file for file in _candidates(query, places) if file}  # `paths` may name one twice
    except StorageError as wrong:
        raise InputError(wrong.place, wrong.reason) from None
    matching = _filtered(query, found.values(), now or datetime.now(UTC))
    _refuse_other_names(matching)
    if not allow_absolute:
        _refuse_ways_out(matching, places.folder)
    kept = _chosen(query, _ordered(query, matching))
    if not kept and query.on_no_match == "error":
        raise NothingFound(query.pattern, "no file matches")
    return kept


def _candidates(query: FileQuery, places: Places) -> Iterator[FileStat | None]:
    root = _slashed(places.folder)
    if query.path is not None:
        yield _named(query.path, places)
    elif query.paths is not None:
        yield from (_named(path, places) for path in query.paths)
    elif query.glob is not None and is_object(query.glob):
        yield from _objects(query.glob, places)
    elif query.searches:
        listing = _Listing.of(query, root)
        yield from (_stat(listing.top + name, root, linked=linked) for name, linked in listing.names())


@dataclass(frozen=True, slots=True)
class Reach:
    """The files of this machine that `discover` may return, by their real paths. Folders are listed, and no file is asked for its facts. Hard links are not seen.

    Attributes:
        folder: The folder that is searched; None where there is none.
        links: Whether there may be links that lead elsewhere.
    """

    folder: Path | None
    links: bool = False

    @classmethod
    def of(cls, query: FileQuery, places: Places) -> Reach:
        """The reach of a query.

        Raises:
            PathRefused: a pattern is invalid
            OSError: a folder cannot be read
        """
        if query.path is not None or query.paths is not None:
            return cls(None, links=True)
        if query.glob is not None and is_object(query.glob):
            return cls(None)
        listing = _Listing.of(query, _slashed(places.folder.resolve()))
        folder = Path(listing.top + listing.folder)
        return cls(folder if folder.exists() else None, listing.has_links())

    def may_have(self, path: Path) -> bool:
        """Whether it may have the file with a real path. Letter case hides none."""
        return self.links or (self.folder is not None and any(map(self.folder.samefile, path.parents)))


def looks_for(query: FileQuery, folder: Path, file: Path) -> bool:
    """Whether a query finds a file of this machine by its glob or regular expression, once the file is there. One that also asks for sizes, times or a number of files finds none.

    Args:
        query: What is looked for.
        folder: The base folder.
        file: The file, by its real path.

    Raises:
        PathRefused: a pattern is invalid
    """
    asks = (query.modified_after, query.modified_before, query.min_size, query.max_size, query.take_first, query.take_last)
    if not query.searches or any(one is not None for one in asks):
        return False
    root = _slashed(folder.resolve())
    listing = _Listing.of(query, root)
    name = listing.name_of(file)
    return name is not None and not path_matcher(query.exclude)((listing.top + name).removeprefix(root))


@dataclass(frozen=True, slots=True)
class _Listing:
    """The search of a glob or of a regular expression: what fits below `folder`, which is relative to `top`. `top` ends with a slash."""

    top: str
    folder: str
    recursive: bool
    fits: Callable[[str], object]

    @classmethod
    def of(cls, query: FileQuery, root: str) -> _Listing:
        """The search of a query. `root`: the base folder, with a slash at its end."""
        if query.glob is None:
            search = pattern_of(query.regex or "").search
            return cls(root, "", query.recursive, lambda name: search(_utf8(name)))
        *folders, last = query.glob.lstrip("/").split("/")
        steps = [*(step for step in folders if step not in ("", ".")), *([last] if last != "." else [])]
        plain = [step for step, _ in zip(steps[:-1], _until_special(steps), strict=False)]
        deep = len(steps) > len(plain) + 1 or "**" in steps[-1]
        return cls("/" if query.glob.startswith("/") else root, "/".join(plain), deep, _matcher(["/".join(steps)]))

    def names(self) -> Iterator[tuple[str, bool]]:
        """What fits, relative to `top`, and whether each is a link. Only the folder before the first special character of a glob is read."""
        fits = self.fits
        return (found for found in _below(self.top, self.folder, recursive=self.recursive) if fits(found[0]))

    def name_of(self, file: Path) -> str | None:
        """The name under which a file with a real path fits, whether it is there or not; None where it does not."""
        real, folder = file.as_posix(), _slashed(Path(self.top + self.folder).resolve())
        rest = real.removeprefix(folder)
        if rest == real or ("/" in rest and not self.recursive):
            return None
        name = f"{self.folder}/{rest}".removeprefix("/")
        return name if self.fits(name) else None

    def has_links(self) -> bool:
        """Whether something that fits is a link."""
        return any(linked and self.fits(name) for name, linked in _below(self.top, self.folder, recursive=self.recursive))


def _objects(pattern: str, places: Places) -> Iterator[FileStat]:
    """The objects whose URIs match a glob. The store lists those below the longest part of the glob without special characters."""
    literal = _LITERAL.match(pattern)
    assert literal is not None  # it matches all texts
    top = places / literal[0]
    assert isinstance(top, ObjectPath)  # the glob is a URI
    match = object_matcher(pattern)
    for path, facts in top.find(top.key):
        if match(str(path)) and not path.uri.endswith("/"):
            yield _of_object(path, facts)


def object_matcher(pattern: str) -> Callable[[str], object]:
    """A function that returns whether a URI matches a glob. Raises PathRefused for an invalid glob."""
    return _matcher([pattern])


def _of_object(path: ObjectPath, facts: Facts) -> FileStat:
    moment = int(facts.modified * 1e9)
    return FileStat(path.at(facts.identity, facts.size), str(path), facts.size, moment, moment, facts.identity)


def _named(text: str, places: Places) -> FileStat | None:
    path = places / text
    if isinstance(path, ObjectPath):
        facts = path.facts()
        if facts is None:
            raise NothingFound(text, "file not found")
        return _of_object(path, facts)
    if not path.exists():
        raise NothingFound(text, "file not found")
    if not path.is_file():
        raise InputError(text, "not a regular file")
    return _stat(str(path), _slashed(places.folder), linked=path.is_symlink())


def _slashed(folder: Path) -> str:
    """The path of a folder with a slash at its end."""
    return folder.as_posix().rstrip("/") + "/"


def _stat(path: str, root: str, *, linked: bool) -> FileStat | None:
    """The facts of a regular file; None for anything else. Raises InputError where the system refuses them.

    Args:
        path: The file.
        root: The base folder, without links, and a slash.
        linked: Whether the path is that of a link.
    """
    name = path.removeprefix(root)
    try:
        facts = os.stat(path)  # noqa: PTH116  # no Path for each of thousands of files
    except OSError as wrong:
        if wrong.errno in (ENOENT, ENOTDIR, ELOOP):
            return None  # a link that leads nowhere, or gone since the folder was read
        raise InputError(name, wrong.strerror or str(wrong)) from None
    if not stat.S_ISREG(facts.st_mode):
        return None
    created = int(getattr(facts, "st_birthtime", facts.st_ctime) * 1e9)
    return FileStat(path, name, facts.st_size, facts.st_mtime_ns, created, identity=(facts.st_dev, facts.st_ino), linked=linked)


def _refuse_ways_out(files: Iterable[FileStat], root: Path) -> None:
    """Raise PathRefused for a file that is not really in a folder. Each folder is looked at once, not for each of its files."""
    is_in = cache(lambda folder: (root / folder).resolve().is_relative_to(root))
    for file in files:
        if not isinstance(file.at, ObjectPath) and not (file.path.resolve().is_relative_to(root) if file.linked else is_in(file.name.rpartition("/")[0])):
            raise PathRefused(f"path '{file.name}' is a link that leads out of the pipeline's folder")


def _refuse_other_names(files: Iterable[FileStat]) -> None:
    """Raise InputError for a file whose name is not UTF-8: neither the ledger nor a column of a table can hold it."""
    for file in files:
        if not file.name.isascii() and (shown := file.name.encode("utf-8", "backslashreplace").decode()) != file.name:
            raise InputError(shown, "the file's name is not UTF-8: rename it, or leave it out by `exclude`, with `?` for each such byte")


def _filtered(query: FileQuery, files: Iterable[FileStat], now: datetime) -> list[FileStat]:
    excluded = path_matcher(query.exclude)
    after = _nanoseconds(time_bound(query.modified_after, now), -math.inf)
    before = _nanoseconds(time_bound(query.modified_before, now), math.inf)
    least = size_bound(query.min_size) or 0
    most = sys.maxsize if query.max_size is None else size_bound(query.max_size) or 0

    def keep(file: FileStat) -> bool:
        return least <= file.size <= most and after <= file.mtime_ns < before

    return [file for file in files if keep(file) and not excluded(file.name)]


def _nanoseconds(instant: datetime | None, otherwise: float) -> float:
    """The nanoseconds of an instant since 1970, exact; `otherwise` where there is none."""
    return otherwise if instant is None else (instant - _EPOCH) // timedelta(microseconds=1) * 1000


def path_matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """A function that returns whether a path, or its last step, matches one of the globs. Raises PathRefused for an invalid glob."""
    known = tuple(patterns)
    fits = _matcher(known)
    return (lambda path: bool(fits(path) or fits(path.rpartition("/")[2]))) if known else lambda _: False


def _ordered(query: FileQuery, files: list[FileStat]) -> list[FileStat]:
    if query.paths is not None and query.sort_by is None:
        return files
    keys: dict[str, Callable[[FileStat], tuple[int, str]]] = {
        "name": lambda file: (0, file.name),
        "created": lambda file: (file.created_ns, file.name),
        "modified": lambda file: (file.mtime_ns, file.name),
    }
    return sorted(files, key=keys[query.sort_by or "name"], reverse=query.sort_order == "desc")


def _chosen(query: FileQuery, files: list[FileStat]) -> list[FileStat]:
    if query.take_first is not None:
        return files[: query.take_first]
    if query.take_last is not None:
        return files[max(0, len(files) - query.take_last) :]
    return files


class _Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes) -> object: ...
    def fullmatch(self, text: bytes) -> object: ...


def _quiet() -> re2.Options:
    """RE2's options, with errors raised only, not written to the terminal too."""
    options = re2.Options()
    options.log_errors = False
    return options


def pattern_of(pattern: str) -> _Pattern:
    """A compiled regular expression of RE2, which takes linear time for every pattern. Raises PathRefused for an invalid one."""
    try:
        return re2.compile(pattern, _quiet())  # type: ignore[no-any-return]  # re2 has no types
    except re2.error as wrong:
        reason = wrong.args[0].decode() if isinstance(wrong.args[0], bytes) else wrong
        raise PathRefused(f"regex '{pattern}' cannot be read: {reason}") from None


def _below(root: str, folder: str, *, recursive: bool) -> Iterator[tuple[str, bool]]:
    """The names, relative to the root, of everything below a folder except folders, and whether each is a link. Links to folders are not followed."""
    try:
        entries = sorted(os.scandir(root + folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        name = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False):
            if recursive:
                yield from _below(root, name, recursive=True)
        else:
            yield name, entry.is_symlink()


def _until_special(steps: Sequence[str]) -> Iterator[str]:
    for step in steps:
        if re.search(r"[*?\[]", step):
            return
        yield step


def _matcher(patterns: Iterable[str]) -> Callable[[str], object]:
    """A function that returns whether a whole name matches one of some globs. Raises PathRefused for an invalid one."""
    groups: dict[int, list[str]] = {}
    tests: list[Callable[[bytes], object]] = []
    length = 0
    for pattern in patterns:
        if len(pattern) > _TOGETHER:
            tests.append(_expression(pattern))
        else:
            length += len(pattern)
            groups.setdefault(length // _TOGETHER, []).append(pattern)
    tests += map(_together, groups.values())

    if len(tests) == 1:
        only = tests[0]
        return lambda name: only(_utf8(name))

    def match(name: str) -> bool:
        text = _utf8(name)
        return any(test(text) for test in tests)

    return match


def _together(patterns: Iterable[str]) -> Callable[[bytes], object]:
    """Some globs, matched at once."""
    globs = re2.Set.FullMatchSet(_quiet())
    for pattern in patterns:
        try:
            globs.Add(_translated(pattern))
        except re2.error:
            raise _unreadable(pattern) from None
    globs.Compile()
    return globs.Match  # type: ignore[no-any-return]  # re2 has no types


def _expression(pattern: str) -> Callable[[bytes], object]:
    """A glob, matched alone."""
    try:
        return pattern_of(_translated(pattern)).fullmatch
    except PathRefused:
        raise _unreadable(pattern) from None


def _unreadable(pattern: str) -> PathRefused:
    return PathRefused(f"glob '{pattern}' cannot be read: in a class such as [a-c] the first character comes before the last, or it is too long")


def _utf8(name: str) -> bytes:
    """A name in UTF-8, with a question mark for each byte of the system's name that is none."""
    return name.encode("utf-8", "replace")


def _translated(pattern: str) -> str:
    """The regular expression of a glob: `*` and `?` stay inside a step, `**` crosses steps, `[a-c]` and `[!a]` are classes."""
    out, at = [], 0
    token = re.compile(
        r"(?P<deep>\*\*/)|(?P<rest>\*\*)|(?P<star>\*)|(?P<one>\?)|\[(?P<no>[!^]?)(?P<set>\]?[^\]/]*)\]|(?P<text>.)", re.DOTALL
    )
    while at < len(pattern):
        found = token.match(pattern, at)
        assert found is not None
        out.append(_glob_part(found))
        at = found.end()
    return "(?s)" + "".join(out)


def _glob_part(found: re.Match[str]) -> str:
    if found["text"] is not None:
        return re.escape(found["text"])
    if found["set"] is not None:
        members = re.sub(r"([\\\[\]^&~|])", r"\\\1", found["set"])
        return f"[{'^' if found['no'] else ''}{members}]" if members else re.escape(found[0])
    return {"deep": "(?:[^/]+/)*", "rest": ".*", "star": "[^/]*", "one": "[^/]"}[str(found.lastgroup)]


def content_hash(path: Place) -> str:
    """The BLAKE3 hash of a file's bytes, in hexadecimal. Large files use all cores."""
    return store_of(path).digest(path)
