"""The documents as programs: each command that README.md and docs/ show is run, and its answer compared with the one below it.

A fenced block of the kind `console` holds commands, each after `$ `, and below each what it writes. The blocks of a document
are run one after the other in one folder, which holds a fresh copy of `examples/`, on the engine that is chosen for so little work. `...` stands for any text of a line, and
on a line of its own for any lines. A block of the kind `pycon` is run by doctest in the same folder. A block with a title, ```csv title="shop/sales.csv",
is a file, which is written when its turn comes. A page that begins with `<!-- continues: PAGE -->` goes on where that page ends. Where the shell has nothing to do, `errata` is
called in this process, which has loaded what a new one would have to load each time; the commands of README.md are always run by a shell.
`python -m tests.documents --write` puts the answers of today into the documents, and writes the generated pages and pictures (`tests/site/generated.py`).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest import mock

from tests.site import generated

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^```(console|pycon|\w+ title="[^"\n]+")\n(.*?)^```$', re.MULTILINE | re.DOTALL)
CONTINUES = re.compile(r"<!-- continues: (\S+) -->\n")
PLAIN = re.compile(r"""errata ([^|&;<>$`*?~\\]+?)(; echo "exit code \$\?")?""")
SECONDS = re.compile(r"\d+\.\d+ ?s\b")
VARIES = "..."


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a document, what the document says that it writes, and where (the line of the command).

    Args:
        file: the text of a file; `command` is then its path
    """

    command: str
    answer: list[str]
    line: int
    file: str | None = None


def documents() -> list[Path]:
    """The documents whose commands are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(text: str) -> list[Shown]:
    """All commands of a document, in order."""
    return [shown for block in BLOCK.finditer(text) for shown in commands_of(block, text.count("\n", 0, block.start()) + 2)]


def commands_of(block: re.Match[str], line: int) -> Iterator[Shown]:
    if block[1] == "pycon":
        yield Shown(python_command(block[2]), [], line)
        return
    if block[1] != "console":
        yield Shown(block[1].split('"')[1], [], line, block[2])
        return
    lines = block[2].splitlines()
    starts = [number for number, text in enumerate(lines) if text.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Shown(lines[start].removeprefix("$ "), lines[start + 1 : end], line + start)


def python_command(block: str) -> str:
    return f"cat > session.txt <<'END'\n{block}END\npython -m doctest -o ELLIPSIS session.txt"


def workplace(folder: Path, document: Path | None = None) -> Path:
    """Lay out what the commands of a document find: the examples as they are, with nothing that a run has left behind, and what a page before it leaves."""
    leavings = shutil.ignore_patterns("out", ".errata", "__pycache__")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=leavings)
    if document is not None and (before := CONTINUES.match(document.read_text(encoding="utf-8"))):
        go_on(document.parent / before[1], folder)
    return folder


def go_on(document: Path, folder: Path) -> None:
    """Do what a page shows, after the page that it continues."""
    text = document.read_text(encoding="utf-8")
    if before := CONTINUES.match(text):
        go_on(document.parent / before[1], folder)
    for shown in commands(text):
        perform(shown, folder)


def perform(shown: Shown, folder: Path, *, anew: bool = False) -> list[str]:
    """Write the file, or run the command and return its answer."""
    if shown.file is None:
        return answer(shown.command, folder, anew=anew)
    path = folder / shown.command
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(shown.file, encoding="utf-8")
    return []


def answer(command: str, folder: Path, *, anew: bool = False) -> list[str]:
    """The output of a command, on either stream, as lines; `anew` has a process of its own made for it in any case."""
    plain = None if anew else PLAIN.fullmatch(command)
    written = by_shell(command, folder) if plain is None else in_process(shlex.split(plain[1]), folder, code=bool(plain[2]))
    return [line.rstrip() for line in written.splitlines()]


def environment() -> dict[str, str]:
    """The environment of the commands: the programs of this environment first, a terminal of one width without colours."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "ERRATA_ENGINE": "auto", "NO_COLOR": "1", "COLUMNS": "120", "TZ": "UTC"}


def by_shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    return done.stdout


def in_process(words: list[str], folder: Path, *, code: bool) -> str:
    """The same for the words after `errata`, and with `code` the exit code on a line of its own."""
    from errata.cli import main

    written = StringIO()
    with mock.patch.dict(os.environ, environment()), chdir(folder), redirect_stdout(written), redirect_stderr(written):
        ended = main(words)
    return written.getvalue() + (f"exit code {ended}\n" if code else "")


def matches(shown: list[str], written: list[str]) -> bool:
    """Whether the answer is the one shown, `...` standing for what varies."""
    pattern = "\n".join(".*" if line.strip() == VARIES else re.escape(line).replace(re.escape(VARIES), "[^\n]*") for line in shown)
    return re.fullmatch(pattern, "\n".join(written), re.DOTALL) is not None


def as_shown(written: list[str]) -> list[str]:
    """An answer as a document shows it: times vary."""
    return [SECONDS.sub(f"{VARIES} s", line) for line in written]


def rewritten(text: str, folder: Path) -> str:
    """The document with the answer of today wherever the one shown does not match."""

    def block_again(block: re.Match[str]) -> str:
        if block[1] != "console":
            for shown in commands_of(block, 0):
                perform(shown, folder)
            return block[0]
        lines = []
        for shown in commands_of(block, 0):
            written = answer(shown.command, folder)
            lines += [f"$ {shown.command}", *(shown.answer if matches(shown.answer, written) else as_shown(written))]
        return "\n".join(["```console", *lines, "```"])

    return BLOCK.sub(block_again, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", required=True, help="put the answers of today into the documents")
    parser.add_argument("document", nargs="*", type=Path, help="the documents; by default all, the generated pages and pictures too")
    named = [path.resolve() for path in parser.parse_args().document]
    made = generated.pages()
    generated.write({path: text for path, text in made.items() if not named or path in named})
    generated.write({} if named else generated.drawn())
    for document in named or documents():
        if document not in made:
            with tempfile.TemporaryDirectory() as folder:
                place = workplace(Path(folder), document)
                document.write_text(rewritten(document.read_text(encoding="utf-8"), place), encoding="utf-8")
                sys.stdout.write(f"{document}\n")


if __name__ == "__main__":
    main()
