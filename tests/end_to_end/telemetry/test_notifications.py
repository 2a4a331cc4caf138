"""Notifications: receivers hear what a run changed, and none that is missing changes how a run ends."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.project.model import Notify
from errata.telemetry.notifications import _commanded
from storage.stores.connections import StoreConnection, reach_by_environment
from tests.support.json_service import Answer, Asked, serving
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {{ name: told }}
error_handling: {{ strategy: continue }}
notify:
  - {notify}
nodes:
  - type: source
    name: orders
    config: {{ name: orders, type: csv, path: orders.csv, merge: {{ strategy: snapshot, primary_key: [id] }}, schema: [{{ name: id, type: int }}, {{ name: region, type: string }}, {{ name: v, type: int }}] }}
  - {{ type: aggregate, name: sums, input: orders, config: {{ group_by: [region], cxl: "emit total = sum(v)" }} }}
  - {{ type: output, name: report, input: sums, config: {{ name: report, type: csv, path: report.csv }} }}
"""
FIRST, SECOND = "id,region,v\n1,N,1\n2,N,2\n3,S,4\n4,W,8\n", "id,region,v\n1,N,1\n2,N,3\n3,S,4\n4,W,8\n"


@dataclass
class Hook:
    """A server that takes messages. `answers`: the statuses of its next answers, 200 behind them; `waits`: seconds before each."""

    answers: list[int] = field(default_factory=list)
    waits: float = 0
    got: list[Asked] = field(default_factory=list)
    url: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that it got."""
        return [json.loads(one.body) for one in self.got]

    def answer(self, request: Asked) -> Answer:
        """Take a message."""
        self.got.append(request)
        time.sleep(self.waits)
        return Answer(status=self.answers.pop(0) if self.answers else 200)


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    with serving(found.answer) as service:
        found.url = service.url
        yield found


def folder(path: Path, notify: str) -> Folder:
    made = Folder(path)
    made.write("pipeline.yaml", PIPELINE.format(notify=notify))
    made.write("orders.csv", FIRST)
    return made


def run(path: Path) -> tuple[int, list[str]]:
    """Run the pipeline: its exit code and its warnings."""
    with standing_in(path):
        code, _, said = command("run", "pipeline.yaml", "--engine", "sail")
    return code, [line for line in said.splitlines() if "W490" in line]


def test_a_message_says_what_changed(hook: Hook, tmp_path: Path) -> None:
    made = folder(tmp_path, f"{{ url: '{hook.url}/hook', secret: 'key', on: [changed, unchanged] }}")
    assert run(tmp_path) == (0, [])
    made.write("orders.csv", SECOND)
    assert run(tmp_path) == (0, [])
    assert run(tmp_path) == (0, [])
    first, second, third = hook.messages
    assert [one["outcome"] for one in hook.messages] == ["changed", "changed", "unchanged"]
    assert first["nodes"] == [{"node": "report", "live": 3, "added": 3, "removed": 0, "corrected": 0, "share": 1}]
    assert second["nodes"] == [{"node": "report", "live": 3, "added": 0, "removed": 0, "corrected": 1, "share": 0.333333}]
    assert second["sources"] == [{"node": "orders", "delivered": 4, "differ": 1, "causes": {"correction": 1}}]
    assert (second["version"], second["pipeline"], second["epoch"], second["exit_code"], second["error"]) == (1, "told", 2, 0, None)
    assert third["nodes"] == []
    sent = hook.got[1]
    assert sent.headers["errata-signature"] == "sha256=" + hmac.new(b"key", sent.body, hashlib.sha256).hexdigest()
    assert sent.headers["errata-message"] == second["execution_id"]


@pytest.mark.parametrize(
    ("asked", "outcomes"),
    [
        ("nodes: [sums], min_share: 0.4", ["changed"]),
        ("causes: [correct]", ["changed"]),
        ("causes: [rollback]", []),
        ("on: [failed]", []),
        ("on: [unchanged], min_share: 0.4", ["unchanged"]),
    ],
)  # fmt: skip
def test_filters(asked: str, outcomes: list[str], hook: Hook, tmp_path: Path) -> None:
    made = folder(tmp_path, f"{{ url: '{hook.url}/', {asked} }}")
    run(tmp_path)
    if "min_share" not in asked or "unchanged" in asked:
        hook.got.clear()
    made.write("orders.csv", SECOND)
    run(tmp_path)
    assert [one["outcome"] for one in hook.messages] == outcomes


def test_a_run_that_failed_is_told(hook: Hook, tmp_path: Path) -> None:
    made = folder(tmp_path, f"{{ url: '{hook.url}/', on: [failed] }}")
    made.remove("orders.csv")
    made.write("pipeline.yaml", made.text("pipeline.yaml").replace("path: orders.csv", "path: orders.csv, files: { on_no_match: error }"))
    code, _ = run(tmp_path)
    [message] = hook.messages
    assert (message["outcome"], message["exit_code"], message["nodes"]) == ("failed", code, [])
    assert "orders" in message["error"]


@pytest.mark.parametrize(
    ("answers", "tries", "warned"), [([503, 503], 3, False), ([503, 503], 2, True), ([404], 1, True), ([429], 2, False), ([302], 1, True)]
)
def test_it_is_tried_again_where_that_may_help(answers: list[int], tries: int, warned: bool, hook: Hook, tmp_path: Path) -> None:
    folder(tmp_path, f"{{ url: '{hook.url}/token', tries: {tries} }}")
    hook.answers = list(answers)
    code, said = run(tmp_path)
    assert (code, len(hook.got)) == (0, len(answers) if warned else len(answers) + 1)
    assert said == ([f"warning: W490: 127.0.0.1 was not notified: it answered {answers[-1]}{f' ({tries} tries)' if answers[-1] == 503 else ''}"] if warned else [])


def test_a_slow_receiver_holds_nobody_up(hook: Hook, tmp_path: Path) -> None:
    folder(tmp_path, f"{{ url: '{hook.url}/', timeout: 0.5 }}")
    hook.waits = 3
    began = time.monotonic()
    code, said = run(tmp_path)
    assert (code, len(said)) == (0, 1)
    assert "timed out" in said[0] or "longer than" in said[0]
    assert time.monotonic() - began < 60


def test_a_command_gets_the_message(tmp_path: Path) -> None:
    program = "import pathlib, sys; pathlib.Path('told.json').write_text(sys.stdin.read())"
    made = folder(tmp_path, json.dumps({"command": [sys.executable, "-c", program]}))
    assert run(tmp_path) == (0, [])
    assert json.loads(made.text("told.json"))["outcome"] == "changed"


def test_a_command_does_not_get_the_secrets_of_a_connection(tmp_path: Path) -> None:
    program = "import os, pathlib; pathlib.Path('told').write_text(str(dict(os.environ)))"
    settings = Notify.model_validate({"command": [sys.executable, "-c", program]})
    with mock.patch.dict(os.environ, FROM_OUTSIDE="is-there"):
        reach_by_environment([StoreConnection("lake", "s3://lake", (("access_key_id", "key"), ("secret_access_key", "of-a-lake")))])
        said = _commanded(settings, b"", tmp_path)
        reach_by_environment([])
    environment = (tmp_path / "told").read_text()
    assert (said, "is-there" in environment, "of-a-lake" in environment) == (None, True, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no such channel')"], "it ended with 1: no such channel"),
        (["./not-there"], "No such file or directory"),
        ([sys.executable, "-c", "import time; time.sleep(30)"], "it took longer than 0.5 s"),
    ],
)
def test_a_command_that_fails_is_a_warning(words: list[str], said: str, tmp_path: Path) -> None:
    folder(tmp_path, json.dumps({"command": words, "timeout": 0.5 if "sleep" in words[-1] else 30}))
    code, warned = run(tmp_path)
    assert (code, len(warned)) == (0, 1)
    assert said in warned[0]


def test_secrets_stay_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "http://127.0.0.1:1/TOKEN-7788")
    folder(tmp_path, "{ url: '${secret:HOOK}', tries: 1 }")
    with standing_in(tmp_path):
        code, out, said = command("run", "pipeline.yaml", "--engine", "sail", "-vv")
    assert (code, "W490: 127.0.0.1 was not notified" in said) == (0, True)
    assert not any(b"TOKEN-7788" in file.read_bytes() for file in (tmp_path / ".errata").rglob("*") if file.is_file())
    assert "TOKEN-7788" not in out + said


@pytest.mark.parametrize("wrong", ["{ on: [changed] }", "{ url: 'ftp://a/b' }", "{ url: 'http://a', command: [b] }", "{ url: 'http://[1' }", "{ url: 'http://a', nodes: [reprot] }"])
def test_receivers_that_cannot_be(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineErrors, match="E490"):
        folder(tmp_path, wrong).load()
