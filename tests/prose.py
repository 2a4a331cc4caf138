"""Look for phrases that hide what a sentence says, and for references to documents that are not in the repository.

`python -m tests.prose` reads docstrings and comments of Python files, and Markdown pages. It prints each finding as `path:line: phrase`.
A folder of `ALLOWED` may have that many findings, every other folder none.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

STILTED = re.compile(
    r"\b(?:is|are|was|were|be) told\b|\btold (?:of|by)\b|\btells? (?:of|what)\b|\bwhat (?:stands|stood|is told)\b|\b(?:that|which|as they|as it) (?:stand|stands|stood)\b"
    r"|\bby hand\b|\bso many\b|\bof which\b|\bbesides\b|\bas it is\b|\botherwise than\b|\bit is so\b|\bso (?:is|are) (?:it|they|those)\b|\bthose (?:of|that)\b",
    re.IGNORECASE,
)
OUTSIDE = re.compile(r"SPEC-DECISIONS|CONTRACT\b|\bDESIGN (?:section|\d)|\b(?:DESIGN|QUALITY|STYLE|REDESIGN)\.md|\(QUALITY, |[Uu]ser guide[,\"']|user-guide\.txt|correlation-keys\.txt|aggregate-nodes\.txt")

ALLOWED: dict[str, int] = {"changelog": 2}
"""How many findings a folder may still have. Numbers only go down."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A phrase in a file."""

    path: str
    line: int
    phrase: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase}"


def prose(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Return the lines of a Markdown page, or of the docstrings and comments of a module, with their numbers."""
    if suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from enumerate(node.value.value.splitlines(), node.lineno)


def findings(path: Path) -> list[Finding]:
    """Return the findings of one file."""
    lines = prose(path.read_text(encoding="utf-8"), path.suffix)
    name = path.relative_to(ROOT).as_posix()
    return sorted({Finding(name, line, match[0]) for line, text in lines for pattern in (STILTED, OUTSIDE) for match in pattern.finditer(text)})


def files() -> list[Path]:
    """Return the Python files and Markdown pages of the repository, but this one, which quotes the phrases."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in paths if path.exists() and path != Path(__file__).resolve()]


def folder_of(path: str) -> str:
    """Return the folder of `ALLOWED` that a file counts in: the longest that holds it, else its top folder."""
    holding = [folder for folder in ALLOWED if path.startswith(f"{folder}/")]
    return max(holding, key=len, default=path.split("/", maxsplit=1)[0])


def main() -> int:
    """Print the findings of each folder that has more than it may have."""
    found = defaultdict[str, list[Finding]](list)
    for path in files():
        for finding in findings(path):
            found[folder_of(finding.path)].append(finding)
    if "--count" in sys.argv:
        print("\n".join(f"{len(listed):5} {folder}" for folder, listed in sorted(found.items())))
    over = {folder: listed for folder, listed in found.items() if len(listed) > ALLOWED.get(folder, 0)}
    for folder, listed in sorted(over.items()):
        print(*listed, f"{folder}: {len(listed)} findings, {ALLOWED.get(folder, 0)} allowed", sep="\n")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
