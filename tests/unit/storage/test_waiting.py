"""Waits for executors and servers end, and report progress."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from storage.engines import EngineChoice
from storage.engines.spark.remote import RemoteSpark
from storage.engines.waiting import Waiting
from storage.errors import EngineUnavailable
from tests.support.clusters import cluster
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIPELINE = """\
pipeline: { name: awaited }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }] } }
  - { type: transform, name: doubled, input: rows, config: { cxl: "emit twice = id * 2" } }
  - { type: output, name: out, input: doubled, config: { name: out, type: csv, path: out.csv } }
"""


@contextmanager
def server_that_hangs_up() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as place:

        def hang_up() -> None:
            while True:
                try:
                    place.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=hang_up, daemon=True).start()
        yield f"sc://127.0.0.1:{place.getsockname()[1]}"
        place.shutdown(socket.SHUT_RDWR)


def test_a_server_that_gives_no_answer_is_awaited_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.engines.waiting.REPORT_SECONDS", 0.0)
    monkeypatch.setattr("storage.engines.spark.remote.is_loopback", lambda host: False)
    messages: list[str] = []
    with server_that_hangs_up() as url:
        engine = RemoteSpark(url, 0.2)
        engine.tell = messages.append
        with pytest.raises(EngineUnavailable, match=f"the Spark Connect server at {url} gave no answer for 0 s") as caught:
            _ = engine.session
    assert caught.value.again
    assert messages[0] == f"waiting for the Spark Connect server at {url}, 0 s"


def test_a_wait_is_reported_from_time_to_time_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now, messages = [1000.0], list[str]()
    monkeypatch.setattr("storage.engines.waiting.monotonic", lambda: now[0])
    waiting = Waiting("executors of spark://here", 60, messages.append)

    def waited(seconds: float) -> bool:
        now[0] += seconds
        return waiting.goes_on()

    assert [waited(seconds) for seconds in (0, 10, 10, 19, 1, 20)] == [True, True, True, True, True, False]
    assert messages == [f"waiting for executors of spark://here, {seconds} s" for seconds in (20, 40, 60)]
    waiting.over()
    assert waited(1)


def test_two_waits_are_two_engines() -> None:
    assert EngineChoice(remote="sc://here", patience=1) != EngineChoice(remote="sc://here", patience=2)


@pytest.mark.spark
def test_a_cluster_without_workers_ends_a_run_and_the_next_one_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.engines.waiting.REPORT_SECONDS", 1.0)
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("rows.csv", "id\n" + "".join(f"{id}\n" for id in range(20_000)))
    with cluster(tmp_path / "cluster", workers=0) as empty:
        url = empty.url
        code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--engine", "spark", "--master", url, "--engine-wait", "3")
    assert code == 4
    assert f"waiting for executors of {url}, 1 s" in stderr
    assert f"no executor of {url} took work for 3 s" in stderr
    assert folder.run().exit_code == 0
    assert len(folder.rows("out.csv")) == 20_000
