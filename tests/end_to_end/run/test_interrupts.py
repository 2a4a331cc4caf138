"""A command that is interrupted at any moment ends soon, with exit code 130 and nothing half done."""

from __future__ import annotations

import _thread
import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from errata.cli.interrupts import interruptible
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: sums }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }, { name: v, type: int }], merge: { strategy: snapshot, primary_key: [id] } } }
  - { type: aggregate, name: sums, input: rows, config: { group_by: [v], cxl: "emit n = count(*)" } }
  - { type: output, name: out, input: sums, config: { name: out, type: csv, path: out.csv } }
"""
SECONDS = 1.6
"""The time of the run on a CI machine, with the start of interpreter and engine."""
MOMENTS = 8
random.seed(19)
AT = [SECONDS * (moment + random.random()) / MOMENTS for moment in range(MOMENTS)]  # no secret


def interrupt() -> None:
    """Interrupt as Ctrl-C does, without a signal: that would end the engine of other tests, and SIGINT may be ignored here."""
    _thread.interrupt_main(signal.SIGTERM)


def wait() -> None:
    """Wait for an interrupt."""
    ends = time.monotonic() + 10
    while time.monotonic() < ends:
        pass


def test_an_interrupt_within_an_import_waits_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("interrupted_module.py").write_text(f"from {__name__} import interrupt\ninterrupt()\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with interruptible(lambda: None), pytest.raises(KeyboardInterrupt):
        import_and_wait("interrupted_module")
    assert sys.modules["interrupted_module"].whole


def test_an_interrupt_within_an_import_ends_the_wait_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()
    tmp_path.joinpath("interrupted_earlier.py").write_text(f"from {__name__} import interrupt\ninterrupt()\n")
    monkeypatch.syspath_prepend(tmp_path)
    reading, writing = os.pipe()

    def give_up() -> None:
        given_up.set()
        os.close(writing)

    with interruptible(give_up), pytest.raises(KeyboardInterrupt):
        import_and_read("interrupted_earlier", reading)
    os.close(reading)
    assert not given_up.is_set()
    os.close(writing)


def test_a_lost_interrupt_is_silent_and_comes_again(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errata.cli.interrupts._PATIENCE", 0.05)
    with interruptible(lambda: None), pytest.raises(KeyboardInterrupt):
        lose_and_wait()
    assert capfd.readouterr().err == ""


BLOCKED = """
import contextlib, ctypes, os, signal, socket, sys
from errata.cli import interrupts

interrupts._IMPORT = interrupts._PATIENCE = 0.3
with contextlib.ExitStack() as around:
    if sys.argv[1] == "command":
        around.enter_context(interrupts.interruptible(lambda: os._exit(1)))
    elif sys.argv[1] == "event loop":
        loop, written = socket.socketpair()
        written.setblocking(False)
        signal.set_wakeup_fd(written.fileno())
    around.enter_context(interrupts.interruptible(lambda: os._exit(130)))
    ctypes.CDLL(None).system(b"kill -TERM $PPID; exec cat")  # the signal comes while this waits, and no exception ends the wait
"""


@pytest.mark.parametrize("around", ["nothing", "command", "event loop"])
def test_an_interrupt_ends_a_process_that_a_library_lets_wait_for_ever(around: str) -> None:
    with subprocess.Popen([sys.executable, "-c", BLOCKED, around], stdin=subprocess.PIPE) as process:
        try:
            assert process.wait(10) == 130
        finally:
            process.kill()


FORKED = """
import os, signal
from errata.cli.interrupts import interruptible

told, ready = os.pipe()
numbers, written = os.pipe()
os.set_blocking(written, False)
signal.set_wakeup_fd(written)
with interruptible(lambda: None) as handler:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
        os.write(ready, b"1")
        while True:
            signal.pause()
    os.read(told, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.raise_signal(signal.SIGUSR1)
    print(os.read(numbers, 1)[0] == signal.SIGUSR1, handler.came)
print(signal.set_wakeup_fd(-1) == written)
"""


def test_a_signal_to_a_forked_child_stays_there_and_others_reach_the_event_loop_around() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True False\nTrue\n"


def test_a_signal_that_somebody_else_handles_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errata.cli.interrupts._IMPORT", 0.05)
    monkeypatch.setattr("errata.cli.interrupts._PATIENCE", 0.05)
    came, ended = threading.Event(), threading.Event()
    with interruptible(ended.set) as handler:
        ours = signal.signal(signal.SIGTERM, lambda *_: came.set())
        interrupt()
        assert came.wait(10)
        assert not ended.wait(0.5)
        signal.signal(signal.SIGTERM, ours)
    assert not handler.came


def import_and_wait(module: str) -> None:
    importlib.import_module(module)
    wait()


def import_and_read(module: str, handle: int) -> None:
    importlib.import_module(module)
    os.read(handle, 1)


def lose_and_wait() -> None:
    lost = Losing()
    del lost
    wait()


class Losing:
    """Is interrupted where the interpreter ignores exceptions."""

    def __del__(self) -> None:
        interrupt()


@pytest.mark.parametrize(("after", "number"), [(after, signal.SIGTERM if at % 4 == 3 else signal.SIGINT) for at, after in enumerate(AT)])  # fmt: skip
def test_an_interrupt_leaves_nothing_half_done(tmp_path: Path, after: float, number: signal.Signals) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("rows.csv", "id,v\n1,5\n2,5\n3,6\n")
    process = subprocess.Popen([sys.executable, "-m", "errata", "run", str(tmp_path / "pipeline.yaml"), "--engine", "sail", "--quiet"], stderr=subprocess.PIPE)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    began = time.monotonic()
    said = process.communicate(timeout=10)[1].decode()
    assert time.monotonic() - began < 10
    assert process.returncode in (0, 130, -number) or said.startswith("Fatal Python error: init_"), said  # it was over, or the interpreter had not come to the command yet
    assert process.returncode != 130 or said == "error: interrupted\nNothing was changed.\n" or "Epoch 1" in said, said
    folder.run()
    assert folder.text("out.csv") == "v,n\n5,2\n6,1\n"
    assert folder.violations() == []
