"""The setting of all tests: layers by folder, examples of property tests, engines, and where temporary files lie.

| layer | tests | command |
|---|---|---|
| `unit` | `tests/unit` and `tests/test_architecture.py`: no run of a pipeline | `make fast` |
| `end_to_end` | `tests/end_to_end` and the other modules of `tests/` | `make test`, with the units |
| `deep` | `tests/invariants` and tests marked `deep`; property tests again, with more examples | `make deep` |

A test marked `spark` starts Apache Spark. It belongs to the layer of its folder, and runs in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from storage.engines import EngineChoice
from storage.engines import engine as engine_of
from storage.engines.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.engines.base import Engine

ENGINES = ("sail", "spark")
HERE = Path(__file__).parent
LAYERS = {"unit": "unit", "invariants": "deep"}
"""Layer of each folder of `tests/`; of all others `end_to_end`."""
MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Free bytes that a folder in memory needs before temporary files go there."""

SLOW = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large)  # a busy machine is no defect

# "test" and "deep" take the same examples each time, so that a failure says something about the change. "search" looks for new ones.
for name, examples in {"test": 4, "deep": 50, "search": int(os.environ.get("ERRATA_TEST_EXAMPLES", "5000"))}.items():
    hypothesis.settings.register_profile(name, max_examples=examples, deadline=None, print_blob=True, derandomize=name != "search", suppress_health_check=SLOW)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--part K/N`: of the chosen tests, only every N-th from the K-th on."""
    parser.addoption("--part", default="0/1", metavar="K/N", help="run the K-th of N parts of the chosen tests")


def pytest_configure(config: pytest.Config) -> None:
    """Commands that a test calls run on Sail unless they name an engine. Temporary files lie in memory where there is room."""
    os.environ.setdefault("ERRATA_ENGINE", "sail")
    if not config.getoption("--hypothesis-profile", default=None):
        hypothesis.settings.load_profile("test")
    if config.option.basetemp is None and MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        tempfile.tempdir = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its layer, `spark` and `property`, before `-m` chooses; skip Spark where no Java is."""
    for item in items:
        item.add_marker(layer_of(item))
        parameters = getattr(item, "callspec", None)
        if parameters and "spark" in [value for value in parameters.params.values() if isinstance(value, str)]:
            item.add_marker("spark")
        if item.get_closest_marker("spark") and item.get_closest_marker("rarely_on_spark"):
            item.add_marker("deep")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if item.get_closest_marker("spark") and find_java() is None:
            item.add_marker(pytest.mark.skip(reason="Apache Spark needs Java 17 or later"))


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of `--part`. Names choose the part, so that each process of xdist keeps the same ones."""
    part, parts = map(int, config.getoption("--part").split("/"))
    kept = {item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part % parts}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def layer_of(item: pytest.Item) -> str:
    """Return the layer of a test, by its folder."""
    path = item.path.relative_to(HERE)
    return "unit" if path.name == "test_architecture.py" else LAYERS.get(path.parts[0], "end_to_end")


@pytest.fixture(autouse=True)
def no_jvm_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that starts a JVM without the mark `spark`."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("spark"):
            patch.setattr("storage.engines.spark.local._served", _refuse)
        yield


def _refuse(*_: object) -> None:
    raise AssertionError("a test without the mark 'spark' starts a JVM")


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, started once a process."""
    return engine_of(EngineChoice(kind=request.param))


@pytest.fixture(scope="session")
def sail() -> Engine:
    """The engine without a JVM, for what does not depend on the engine."""
    return engine_of(EngineChoice(kind="sail"))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a folder for the test: in memory where there is room, on a disk for a test marked `disk`."""
    if not request.node.get_closest_marker("disk"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)
