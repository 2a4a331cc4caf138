"""The architecture as a test: what may import what, and what stays out of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("cxl", "changelog", "storage", "operators", "errata")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
HEAVY = {"pyspark", "pysail", "polars", "pyarrow", "deltalake", "pandas", "numpy", "rich", "httpx"}

FORBIDDEN = {
    "eval, exec or pickle": re.compile(r"(?<![\w.])(eval|exec)\(|^\s*(import|from) (pickle|cloudpickle)", re.MULTILINE),
    "SQL or an expression as formatted text": re.compile(r"\.sql\(\s*f[\"']|\bexpr\(\s*f[\"']|selectExpr\(\s*f[\"']"),
    "a promise to come back": re.compile(r"\b(TO" r"DO|FIX" r"ME|XXX|HACK)\b"),
    "a type: ignore without code and reason": re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]\s*#? ?\s*[-#(\w])"),
    "a place of one machine": re.compile(r"[\"'](/home|/root|/Users|/work)/"),
}
ONLY_IN_ENGINES = re.compile(r"\.rdd\b|\._jvm\b|\._jdf\b|\.sparkContext\b|\bpy4j\b")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def lines_with(pattern: re.Pattern[str], path: Path) -> list[str]:
    return [f"{relative(path)}:{number}: {line.strip()}" for number, line in enumerate(text_of(path).splitlines(), 1) if pattern.search(line)]


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_imports_go_one_way():
    checked = subprocess.run([Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout[-3000:] + checked.stderr[-2000:]


def test_of_the_language_only_the_spark_backend_imports_pyspark():
    importers = [relative(path) for path in MODULES if relative(path).startswith("cxl/") and "pyspark" in imported(path)]
    assert [name for name in importers if not re.match(r"cxl/spark(/|\.py)", name)] == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_code_is_free_of(what):
    assert [line for path in MODULES for line in lines_with(FORBIDDEN[what], path)] == []


def test_the_driver_s_inside_is_reached_only_in_the_engines():
    outside = [path for path in MODULES if not relative(path).startswith("storage/engines/")]
    assert [line for path in outside for line in lines_with(ONLY_IN_ENGINES, path)] == []


def test_no_module_is_a_drawer_of_odds_and_ends():
    assert [relative(path) for path in MODULES if re.search(r"\b(utils?|helpers?|common|misc|managers?)\b", relative(path))] == []


@pytest.mark.parametrize("module", ["errata.cli", "cxl.cli"])
def test_help_loads_nothing_heavy(module):
    program = f"import sys; from {module} import main; code = main(['--help']); print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert HEAVY & {module.split(".")[0] for module in answer.stderr.split()} == set()


@pytest.mark.parametrize("command", ["errata", "cxl"])
def test_the_command_is_installed(command):
    (script,) = entry_points(group="console_scripts", name=command)
    assert callable(script.load())


def test_the_wheel_holds_the_packages_with_their_files_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, tmp_path / "source"]
    copy_of_the_tree(tmp_path / "source")
    subprocess.run(build, check=True, capture_output=True)
    names = wheel_names(next(tmp_path.glob("*.whl")))
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == set(PACKAGES)
    assert shipped_files() - set(names) == set()


def shipped_files() -> set[str]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {relative(path) for path in files}


def copy_of_the_tree(target: Path) -> None:
    import shutil

    target.mkdir()
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target / name)


def wheel_names(wheel: Path) -> list[str]:
    from zipfile import ZipFile

    with ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements/build.lock"])
def test_lock_files_pin_by_hash_and_name_no_host(name):
    text = text_of(ROOT / name)
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s*#.*\n", "", text).strip())
    assert [entry for entry in entries if not re.match(r"[\w.-]+==\S+ (; [^\n]+ )?\\\n\s+--hash=sha256:", entry)] == []
    assert "://" not in text


def test_what_the_project_needs_is_locked():
    import tomllib

    needed = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["dependencies"]
    names = {re.match(r"[\w-]+", line)[0].lower() for line in needed}
    assert names - set(re.findall(r"(?m)^([\w.-]+)==", text_of(ROOT / "requirements.lock"))) == set()
