"""Run the conformance cases that lie beside the project, and judge them by `.ci/conformance-areas` and `.ci/conformance-exceptions`.

`python -m tests.conformance --engine sail --jobs 4`. Cases of the areas that the project covers must pass, but for the known
exceptions, which must not. All others are run and counted. The last line is `N passed, N failed`, of the covered cases; without
the cases beside the project nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch, translate
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = ROOT.parent / "shared" / "conformance"
ROOTS = {"": CASES, "next/": CASES / "next"}  # what the names of a root's cases begin with; the second one holds areas that are being built
AREAS = ROOT / ".ci" / "conformance-areas"
EXCEPTIONS = ROOT / ".ci" / "conformance-exceptions"
LONGEST = 40 * 60


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns of the covered cases, and the known exceptions with their reasons."""

    covered: tuple[str, ...]
    exceptions: dict[str, str]

    def covers(self, case: str) -> bool:
        return any(fnmatch(case, pattern) for pattern in self.covered)


def lines_of(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]


def read_rules() -> Rules:
    """The two files of `.ci`; an exception without its reason is an error."""
    exceptions = dict(line.partition(": ")[::2] for line in lines_of(EXCEPTIONS))
    if unexplained := [case for case, reason in exceptions.items() if not reason.strip()]:
        sys.exit(f"{EXCEPTIONS.name}: no sentence of the documents beside {', '.join(unexplained)}")
    return Rules(tuple(lines_of(AREAS)), exceptions)


def selection(options: argparse.Namespace, rules: Rules) -> list[str]:
    """The words for the runner that choose the cases."""
    if not options.covered:
        return ["all", "-k", options.keyword]
    names = [pattern.removeprefix("next/") for pattern in rules.covered]
    patterns = "|".join(translate(name.removeprefix("engine/")) for name in names if name.startswith("engine/"))
    return ["engine", "-k", f"^engine/(?:{patterns})"]


def run_cases(words: list[str], options: argparse.Namespace) -> dict[str, str | None]:
    """Every case's difference, None where it passed, over both roots of cases."""
    results: dict[str, str | None] = {}
    for prefix, root in ROOTS.items():
        if root.is_dir():
            results |= {prefix + case: difference for case, difference in run_root(root, words, options).items()}
    return results


def run_root(root: Path, words: list[str], options: argparse.Namespace) -> dict[str, str | None]:
    """The differences of the cases below one root. A case that the runner lists and does not answer has failed.

    Each of `--jobs` processes takes its share of the part that `--shard` names.
    """
    part, parts = map(int, options.shard.split("/"))
    shards = [f"{part % parts + parts * job}/{parts * options.jobs}" for job in range(options.jobs)]
    runner = [sys.executable, str(CASES / "run.py"), *words, "--cases", str(root)]
    listed = [name for shard in shards for name in listing([*runner, "--shard", shard])]
    with tempfile.TemporaryDirectory() as folder:
        answers = [Path(folder) / f"{job}.json" for job in range(options.jobs)]
        environment = {**os.environ, "ERRATA_ENGINE": options.engine}
        processes = [
            subprocess.Popen([*runner, "--engine", options.engine, "--shard", shard, "--json", str(answer)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
            for shard, answer in zip(shards, answers, strict=True)
        ]
        deadline = time.monotonic() + LONGEST
        try:
            for process in processes:
                process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"the cases were broken off after {LONGEST} s")
        finally:
            for process in processes:
                end_with_children(process)
        rows = [row for answer in answers if answer.exists() for row in json.loads(answer.read_text(encoding="utf-8"))]
    unanswered = {case: "the runner broke off before it" for case in listed if case.startswith("engine/")}
    return unanswered | {row["case"]: row["difference"] for row in rows}


def listing(words: list[str]) -> list[str]:
    """The names of the cases that the runner would run."""
    return subprocess.run([*words, "--list"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    """End the runner and the processes that it started; none is left where it came to its end by itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def verdict(results: dict[str, str | None], rules: Rules, *, verbose: bool) -> int:
    """Print what failed and what is not covered yet; the number of covered cases that failed."""
    covered = {case: difference for case, difference in results.items() if rules.covers(case)}
    expected = {case: (difference is None) == (case in rules.exceptions) for case, difference in covered.items()}
    for case in sorted(case for case, wrong in expected.items() if wrong):
        print(f"FAIL {case}" + (": listed as an exception, and passes" if covered[case] is None else ""))
        if verbose and covered[case]:
            print(f"    {covered[case]}")
    for case in sorted(rules.exceptions.keys() & covered.keys()):
        print(f"known exception {case}: {rules.exceptions[case]}")
    rest = results.keys() - covered.keys()
    passing = Counter(area_of(case) for case in rest if results[case] is None)
    for area, number in sorted(Counter(map(area_of, rest)).items()):
        print(f"not covered yet: {area}: {passing[area]} of {number} pass")
    failed = sum(expected.values())
    print(f"{len(covered) - failed} passed, {failed} failed")
    return failed


def area_of(case: str) -> str:
    return case.removeprefix("next/").split("/")[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["sail", "spark"], default="sail")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    parser.add_argument("--covered", action="store_true", help="only the engine cases of the covered areas")
    parser.add_argument("--shard", default="0/1", metavar="K/N", help="every N-th case from the K-th on")
    parser.add_argument("-k", dest="keyword", default="", help="only cases whose path matches this regular expression")
    parser.add_argument("-v", dest="verbose", action="store_true", help="show the difference of each failing case")
    options = parser.parse_args()
    if not CASES.is_dir():
        print("there are no conformance cases beside the project")
        return 0
    rules = read_rules()
    return 1 if verdict(run_cases(selection(options, rules), options), rules, verbose=options.verbose) else 0


if __name__ == "__main__":
    sys.exit(main())
