"""Commands on hostile input, each under a limit of memory, of processor time and of waiting.

`Bed.run` writes a small project, has `errata` work on it in a child process, and gives how that ended; a command beyond a limit is killed and raises
`Overrun`. One child runs one command after the other, with one engine, so that a command costs what it does and no start. `Bed.alone` takes a process of
its own, for what changes the process (`ulimit`) or ends it.

Memory is what the command adds to the resident memory that the child had before it: Sail and Arrow reserve far more address space than they use, so a
limit of address space says nothing. The parent looks 100 times a second; the highest value that the kernel notes covers the time between.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[3]
RUN = ("run", "pipeline.yaml", "-q")
HARMLESS = {
    "a.csv": "a\n1\n",
    "pipeline.yaml": """\
pipeline: { name: harmless }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: a.csv, schema: [{ name: a, type: int }] } }
  - { type: transform, name: t, input: s, config: { cxl: "emit z = a + 1" } }
  - { type: output, name: o, input: t, config: { name: o, type: csv, path: o.csv } }
""",
}
"""The first work of a new child, so that no command is charged with loading the engine."""
LOOK = 0.01
_TICKS = os.sysconf("SC_CLK_TCK")


class Overrun(AssertionError):
    """A command took more than it may."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. `code` is negative where a signal ended its process. `peak_mb`: megabytes beyond what the process had before,
    `seconds`: of processor time of all threads, `elapsed`: of the clock. `folder` has the project as the command left it.
    """

    code: int
    out: str
    err: str
    peak_mb: float
    seconds: float
    elapsed: float
    folder: Path


class Bed:
    """A place for projects below `place`, and the child that works on them."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._child: subprocess.Popen[str] | None = None
        self._count = 0

    def run(
        self, files: Mapping[str, str | bytes], words: Sequence[str] = RUN, *, limit_mb: float = 512, seconds: float = 5, elapsed: float = 120
    ) -> Ended:
        """One command in the folder of a project of these files. Raises Overrun."""
        folder = self._project(files)
        child = self._started()
        assert child.stdin
        assert child.stdout
        watch = _Watch(child.pid, limit_mb, seconds, elapsed)
        child.stdin.write(json.dumps({"folder": str(folder), "words": list(words)}) + "\n")
        child.stdin.flush()
        while not select.select([child.stdout], [], [], LOOK)[0]:
            if exceeded := watch.beyond():
                self.close()
                raise Overrun(_overrun_text(exceeded, words, folder))
        answer = child.stdout.readline()
        if not answer:
            code = child.wait()
            self._child = None
            return _ended(folder, code, watch.peak_mb, watch.seconds, watch.elapsed)
        known = json.loads(answer)
        ended = _ended(folder, known["code"], known["peak_mb"], known["seconds"], watch.elapsed)
        return _within(ended, limit_mb, seconds, words)

    def alone(
        self, files: Mapping[str, str | bytes], words: Sequence[str] = RUN, *, ulimit: str = "", limit_mb: float = 1024, seconds: float = 20, elapsed: float = 120
    ) -> Ended:
        """One command in a process of its own, started behind `ulimit` with these words. Raises Overrun."""
        folder = self._project(files)
        script = f'ulimit {ulimit or "-c 0"} && exec "$0" "$@"'
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(["/bin/sh", "-c", script, sys.executable, "-m", "errata", *words], cwd=folder, stdout=out, stderr=err, env=_environment())
        watch = _Watch(process.pid, limit_mb, seconds, elapsed)
        while process.poll() is None:
            if exceeded := watch.beyond():
                process.kill()
                process.wait()
                raise Overrun(_overrun_text(exceeded, words, folder))
            time.sleep(LOOK)
        return _ended(folder, process.returncode, watch.peak_mb, watch.seconds, watch.elapsed)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.send_signal(signal.SIGKILL)
            self._child.communicate()
            self._child = None

    def _project(self, files: Mapping[str, str | bytes]) -> Path:
        self._count += 1
        folder = Path(tempfile.mkdtemp(prefix=f"{self._count:03}-", dir=self._place))
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    def _started(self) -> subprocess.Popen[str]:
        """The child, which has said that it is there."""
        if self._child is None:
            words = [sys.executable, "-m", "tests.end_to_end.hostile.child"]
            self._child = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment())
            assert _line(self._child.stdout) == "ready\n"
            self.run(HARMLESS, limit_mb=2048, seconds=60)
        return self._child


class _Watch:
    """The use of memory and time by a process from now on."""

    def __init__(self, pid: int, limit_mb: float, seconds: float, elapsed: float) -> None:
        self._pid, self._limits = pid, {"MB of memory": limit_mb, "s of processor time": seconds, "s": elapsed}
        self._memory, self._processor, self._began = _memory(pid), _processor(pid), time.monotonic()
        self.peak_mb = self.seconds = 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def beyond(self) -> str:
        """The limit that is passed; nothing while all is well, or the process is gone."""
        try:
            self.peak_mb = max(self.peak_mb, _memory(self._pid) - self._memory)
            self.seconds = _processor(self._pid) - self._processor
        except OSError:
            return ""
        taken = zip(self._limits.items(), (self.peak_mb, self.seconds, self.elapsed), strict=True)
        return next((f"more than {limit:g} {unit}" for (unit, limit), value in taken if value > limit), "")


def _memory(pid: int) -> float:
    """Resident megabytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _processor(pid: int) -> float:
    """Seconds of processor time that a process has taken, with its children that ended."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15])) / _TICKS


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "ERRATA_ENGINE": "sail", "PYTHONUNBUFFERED": "1"}


def _line(stream: IO[str] | None) -> str:
    return stream.readline() if stream else ""


def _within(ended: Ended, limit_mb: float, seconds: float, words: Sequence[str]) -> Ended:
    if ended.peak_mb > limit_mb:
        raise Overrun(_overrun_text(f"{ended.peak_mb:.0f} MB of memory", words, ended.folder))
    if ended.seconds > seconds:
        raise Overrun(_overrun_text(f"{ended.seconds:.1f} s of processor time", words, ended.folder))
    return ended


def _overrun_text(taken: str, words: Sequence[str], folder: Path) -> str:
    return f"errata {' '.join(words)} took {taken} in {folder}: {(folder / 'stderr').read_text(errors='replace')[:500]}"


def _ended(folder: Path, code: int, peak_mb: float, seconds: float, elapsed: float) -> Ended:
    out, err = ((folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    return Ended(code, out, err, peak_mb, seconds, elapsed, folder)
