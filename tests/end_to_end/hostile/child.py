"""The child of the bed: a command a line of its input, an answer a line of its output. What a command prints goes to files of its folder."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Run commands until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    answers.write("ready\n")
    for line in sys.stdin:
        answers.write(json.dumps(_run(**json.loads(line))) + "\n")


def _run(folder: str, words: list[str]) -> dict[str, Any]:
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    before = _settled()
    began = time.process_time()
    from errata.cli import main as errata

    code = errata(words)
    sys.stdout.flush()
    sys.stderr.flush()
    return {"code": code, "peak_mb": _status("VmHWM") - before, "seconds": time.process_time() - began}


def _settled() -> float:
    """Resident megabytes, after what nobody uses was given back; the mark of the highest value begins anew."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> float:
    """Megabytes from the kernel's account of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
